"""Unbiased estimates of the mean square of an average over infinitely many networks.

Takes deviations d of M independent networks from a reference (the process, or the targets); gives
estimates of |E d|², the mean square that the average of infinitely many networks would have. The
average of M has more,

    E |mean d|² = |E d|² + (trace of the covariance of d) / M,

so pairs of different networks are used alone: E d_i·d_j = |E d|² for i ≠ j. That estimate may be
negative. Standard errors are the jackknife's, which leaves out one network after the other; where
E d = 0 it overstates the variance of such a mean of pairs, by a factor of two at most.
"""

from typing import NamedTuple

import numpy as np

from nngp_paper.arrays import Array

FEWEST = 3  # networks, of which one can be left out


class Estimate(NamedTuple):
    """A number with its standard error."""

    value: float
    error: float


def mean_over_networks(values: Array) -> Estimate:
    """Mean of one number of each network."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def square_of_one(deviations: Array) -> Estimate:
    """Mean square of the deviations of a single network: (networks, ...)."""
    return mean_over_networks(_products(deviations).diagonal())


def square_of_all(deviations: Array) -> Estimate:
    """Mean square of the deviations of infinitely many networks' average: (networks, ...)."""
    products = _products(deviations)
    count = len(products)
    if count < FEWEST:
        raise ValueError(f"an estimate needs {FEWEST} networks or more, got {count}")
    own = products.sum(axis=1) - products.diagonal()  # of each network with the others
    without = (own.sum() - 2 * own) / ((count - 1) * (count - 2))
    error = np.sqrt((count - 1) * np.mean((without - without.mean()) ** 2))
    return Estimate(float(own.sum() / (count * (count - 1))), float(error))


def _products(deviations: Array) -> Array:
    """Inner products of the networks' deviations, over the number of entries."""
    flat = deviations.reshape(len(deviations), -1)
    return np.asarray(flat @ flat.T / flat.shape[1])
