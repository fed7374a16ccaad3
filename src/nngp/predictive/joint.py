"""Covariance between predictions of several rows, in the units of the data.

A target is a function of a standard Gaussian, y_i = G_i(z_i), and the z of two rows have the
correlation ρ. In normalized Hermite polynomials, G_i = Σ_k c_ik h_k, the covariance is
Σ_k c_ik c_jk ρ^k over k >= 1 (Mehler's formula, which the kernels of this package rest on too).
"""

from functools import cache

import numpy as np

from nngp._arrays import Array
from nngp.predictive.predictive import Predictive

NODES, TERMS = 64, 40  # of the quadrature; of the series


def joint_covariance(predictive: Predictive, covariances: list[Array]) -> Array:
    """Covariance of the mixture, (m, m, outputs), given that of each part's scaled targets.

    Its diagonal is the variance of the mixture.
    """
    m, outputs = predictive.shape
    mean, out = predictive.mean(), np.zeros((m, m, outputs))
    for cell in predictive.cells:
        own, covariance = _of_part(predictive, cell.part, cell.factor, covariances[cell.part])
        away, root = own - mean, np.sqrt(cell.weight)  # which may differ by row, given a bound
        shared = root[:, None] * root[None, :]
        out += shared * (covariance + away[:, None] * away[None, :])
    rows = np.arange(m)
    out[rows, rows] = predictive.std() ** 2
    return out


def _of_part(predictive: Predictive, k: int, factor: float, scaled: Array) -> tuple[Array, Array]:
    """Mean (m, outputs) and covariance (m, m, outputs) of one part."""
    part = predictive.parts[k]
    if not part.targets.transforms and not predictive.is_bounded:
        covariance = scaled[:, :, None] * (factor * part.targets.spread) ** 2
        return part.targets.undo(part.mean), covariance
    nodes, weights, polynomials = _hermite()
    values = predictive.from_process(part.mean + part.std * nodes[:, None, None], k, factor)
    if part.targets.reach is not None:  # as means and deviations have it
        values = np.clip(values, *part.targets.reach)
    coefficients = np.einsum("kq,q,qmo->kmo", polynomials, weights, values)
    correlation = _correlation(scaled)
    covariance, power = np.zeros((*correlation.shape, values.shape[2])), np.ones_like(correlation)
    for c in coefficients[1:]:
        power = power * correlation
        covariance += power[:, :, None] * (c[:, None] * c[None, :])
    return coefficients[0], covariance


def _correlation(scaled: Array) -> Array:
    deviation = np.sqrt(np.diagonal(scaled))
    over = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.asarray(np.clip(scaled * np.outer(over, over), -1.0, 1.0))


@cache
def _hermite() -> tuple[Array, Array, Array]:
    """Nodes and weights of the standard Gaussian, and normalized Hermite polynomials at them."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    rows = [np.ones_like(nodes), nodes]
    for k in range(1, TERMS):
        rows.append((nodes * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1))
    return nodes, weights / weights.sum(), np.array(rows)
