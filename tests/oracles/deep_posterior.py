"""A deep network's posterior in mpmath with hundreds of digits: K is formed whole, and inverted.

Nothing of nngp is used. Inputs are taken to have norm one (x·x/d = 1) exactly; what the rounding of
their norms would add is far below what is compared.
"""

import mpmath as mp
import numpy as np


def relu(q, c):
    return q / (2 * mp.pi) * (mp.sqrt(1 - c * c) + (mp.pi - mp.acos(c)) * c)


def erf(q, c):
    return 2 / mp.pi * mp.asin(2 * q * c / (1 + 2 * q))


LAYERS = {"relu": relu, "erf": erf}


def cosines(X1, X2):
    """Between the rows, in the current precision."""

    def unit(x):
        x = [mp.mpf(float(v)) for v in x]
        size = mp.sqrt(sum(v * v for v in x))
        return [v / size for v in x]

    left, right = [unit(x) for x in X1], [unit(x) for x in X2]
    return mp.matrix([[sum(a * b for a, b in zip(x, y, strict=True)) for y in right] for x in left])


def kernel(activation, depth, w, b, C):
    """K of every cosine in the matrix C, and of cosine one."""
    layer, w, b = LAYERS[activation], mp.mpf(w), mp.mpf(b)
    q, K = b + w, C.apply(lambda c: b + w * c)
    for _ in range(depth):
        K = K.apply(lambda k, q=q: b + w * layer(q, min(k / q, mp.mpf(1))))
        q = b + w * layer(q, mp.mpf(1))
    return K, q


def posterior(activation, depth, w, b, X, y, Xs, noise, relative):
    """Mean and variance at Xs, evidence, leave-one-out mean and variance (of observations)."""
    C = cosines(X, X)
    K, q = kernel(activation, depth, w, b, C)
    scale = q - kernel(activation, depth, w, b, mp.matrix([[0]]))[0][0]
    noise = mp.mpf(noise) * (scale if relative else 1)
    n = len(X)
    for i in range(n):
        K[i, i] = q + noise
    cross = kernel(activation, depth, w, b, cosines(Xs, X))[0]
    y = mp.matrix([mp.mpf(float(v)) for v in y])
    P = K**-1
    alpha = P * y
    mean = cross * alpha
    variance = [q - (cross[i, :] * P * cross[i, :].T)[0] for i in range(len(Xs))]
    evidence = -((y.T * alpha)[0] + mp.log(mp.det(K)) + n * mp.log(2 * mp.pi)) / 2
    left = [y[i] - alpha[i] / P[i, i] for i in range(n)], [1 / P[i, i] for i in range(n)]
    density = sum(mp.log(P[i, i] / (2 * mp.pi)) - alpha[i] ** 2 / P[i, i] for i in range(n)) / 2
    return {
        "scale": scale,
        "mean": list(mean),
        "variance": variance,
        "evidence": evidence,
        "left_mean": left[0],
        "left_variance": left[1],
        "density": density,
    }


def gradients(activation, depth, w, b, X, y, noise, relative):
    """Derivatives of the evidence and of the leave-one-out density in w, b and the noise."""
    step = mp.mpf(10) ** -(mp.mp.dps // 4)

    def at(w, b, noise):
        found = posterior(activation, depth, w, b, X, y, X[:1], noise, relative)
        return mp.matrix([found["evidence"], found["density"]])

    start, centre = [mp.mpf(w), mp.mpf(b), mp.mpf(noise)], at(w, b, noise)
    out = []
    for k in range(3):
        moved = [v + (step * v if i == k else 0) for i, v in enumerate(start)]
        out.append((at(*moved) - centre) / (step * start[k]))
    return [[float(column[i]) for column in out] for i in (0, 1)]


def as_floats(values):
    return np.array([float(v) for v in values])
