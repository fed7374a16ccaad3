"""Weights of a mixture by stacking (Yao, Vehtari, Simpson and Gelman 2018).

The weights w of k predictive densities maximise Σ_i log Σ_k w_k p_k(y_i), where p_k(y_i) is that of
point i, left out. The problem is concave. With the constraint Σ w = 1 moved into the objective
(-mean log Pw + Σ w over w >= 0 has the same solution) a step of Newton's method is a non-negative
least-squares problem, and max_k of the mean of p_k / Pw, less one, bounds how much is missing.
"""

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from nngp._arrays import Array

TOLERANCE = 1e-9  # of the mean log density
STEPS = 100
MIN_RELATIVE_DENSITY = (
    1e-100  # density of a point over its best: the square of one over it is a number
)


def stack(log_densities: Array, counts: Array | None = None) -> Array:
    """Weights, (k,), that maximise the log density of the mixture, summed over points.

    Parameters
    ----------
    log_densities : array, (n, k)
        Of each point, left out, under each predictive density. A row may have -inf, but not alone.
    counts : array, (n,), optional
        How often each point counts.
    """
    best = log_densities.max(axis=1, keepdims=True)
    P = np.exp(log_densities - best)
    share = np.full(len(P), 1.0 / len(P)) if counts is None else counts / counts.sum()
    w = np.full(P.shape[1], 1.0 / P.shape[1])
    for _ in range(STEPS):
        A = P / (P @ w)[:, None]
        gradient = share @ A  # one on the support of the solution, less elsewhere
        if gradient.max() - 1.0 <= TOLERANCE:
            break
        w = _improved(P, share, w, _newton(A, share, gradient))
    w = np.where(w < 1e-12, 0.0, w)
    return np.asarray(w / w.sum())


def _newton(A: Array, share: Array, gradient: Array) -> Array:
    """The minimum over v >= 0 of the objective's second-order expansion."""
    H = (A * share[:, None]).T @ A
    H.flat[:: len(H) + 1] += 1e-10 * np.trace(H) / len(H)  # densities may coincide
    R = cholesky(H)
    found, _ = nnls(R, solve_triangular(R, 2 * gradient - 1.0, trans=1), maxiter=100 * len(H))
    return np.asarray(found)


def _improved(P: Array, share: Array, w: Array, v: Array) -> Array:
    """A point between w and v that is better than w; a step of EM if there is none."""
    before = float(share @ np.log(P @ w))
    step = 1.0
    while step > 1e-4:
        new = (1 - step) * w + step * v
        new /= new.sum()
        mixed = P @ new
        if mixed.min() > MIN_RELATIVE_DENSITY and float(share @ np.log(mixed)) > before:
            return np.asarray(new)
        step /= 2
    return np.asarray(w * (share @ (P / (P @ w)[:, None])))
