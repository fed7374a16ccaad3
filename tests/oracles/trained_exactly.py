"""Trained ensembles of relu networks with mpmath: kernels by recursion, dynamics by eigenvectors.

Nothing is taken from the package. Numbers have DIGITS digits, so that a kernel whose entries agree
to 60 digits is as good as any."""

from functools import lru_cache

import mpmath as mp
import numpy as np

DIGITS = 150


def kernels(depth, weight_var, bias_var, X):
    """K and Θ of a relu network of `depth` hidden layers, for rows of equal norm."""
    w, b = mp.mpf(weight_var), mp.mpf(bias_var)
    n = len(X)
    rows = [[mp.mpf(float(x)) for x in row] for row in X]
    K, T = mp.matrix(n, n), mp.matrix(n, n)
    for i in range(n):
        for j in range(i + 1):
            dot = mp.fsum(x * y for x, y in zip(rows[i], rows[j], strict=True))
            norms = mp.sqrt(mp.fsum(x * x for x in rows[i]) * mp.fsum(x * x for x in rows[j]))
            found = pair(depth, w, b, mp.mpf(1) if i == j else dot / norms)
            K[i, j], T[i, j] = K[j, i], T[j, i] = found
    return K, T


@lru_cache(maxsize=1)
def joint(depth, weight_var, bias_var, shape, values):
    return kernels(depth, weight_var, bias_var, np.frombuffer(values).reshape(shape))


def pair(depth, w, b, cosine):
    """K and Θ of two inputs with x·x/d = 1."""
    q, k = b + w, b + w * cosine
    theta = k
    for _ in range(depth):
        c = min(max(k / q, mp.mpf(-1)), mp.mpf(1))
        angle = mp.acos(c)
        slope = (mp.pi - angle) / (2 * mp.pi)
        value = q * (mp.sqrt(1 - c * c) + (mp.pi - angle) * c) / (2 * mp.pi)
        q, k = b + w * q / 2, b + w * value
        theta = k + w * slope * theta
    return k, theta


def moments(depth, weight_var, bias_var, X, Y, Xs, time, noise_var=0.0):
    """Mean (m, outputs) and covariance (m, m) over K(1) - K(0), and that scale. The noise is in
    units of Θ(1) - Θ(0)."""
    with mp.workdps(DIGITS):
        n = len(X)
        both = np.concatenate([X, Xs])
        K, T = joint(depth, weight_var, bias_var, both.shape, both.tobytes())
        unit = [mp.mpf(1), mp.mpf(0)]
        one, zero = (pair(depth, mp.mpf(weight_var), mp.mpf(bias_var), c) for c in unit)
        noise = mp.mpf(noise_var) * (one[1] - zero[1])
        B = T[:n, :n] + noise * mp.eye(n)
        values, U = mp.eigsy(B)
        clock = mp.inf if time == np.inf else mp.mpf(time) / Y.size
        gains = [(1 - mp.exp(-clock * v)) / v for v in values]
        A = U * mp.diag(gains) * U.T
        W = T[n:, :n] * A
        mean = W * mp.matrix(Y.tolist())
        cross = K[n:, :n]
        covariance = K[n:, n:] - W * cross.T - cross * W.T + W * K[:n, :n] * W.T
        scale = one[0] - zero[0]
        return as_array(mean), as_array(covariance / scale), float(scale)


def as_array(M):
    return np.array(M.tolist(), dtype=float)
