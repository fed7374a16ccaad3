"""Mixtures of fitted networks: shares from held-out rows, means, and draws."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Index
from nngp.estimators.fitted_network import FittedNetwork, LeftOut
from nngp.predictive.blend import Blend
from nngp.predictive.predictive import Predictive
from nngp.predictive.stacking import stack

EQUAL_ROWS = 60.0  # rows that the prior of equal shares counts as


def learn_blend(
    networks: Sequence[FittedNetwork], left_out: Sequence[LeftOut], size: int, *, widths: bool
) -> Blend:
    """Shares of networks and, with `widths`, factors of their deviations, from the same rows left
    out of each; `size` is the most points that their hyper-parameters were fitted to."""
    residuals, log_densities = [], []
    for network, one in zip(networks, left_out, strict=True):
        z, targets = one.standardized, network.targets
        slopes = targets.log_slopes(targets.undo(one.Y))
        deviation = 0.5 * np.log(2 * np.pi * one.variance)[:, None]
        residuals.append(z.ravel())
        log_densities.append((slopes - deviation - 0.5 * z**2).ravel())
    if not widths:
        return Blend(np.ones(1), stack(np.column_stack(log_densities))[:, None])
    outputs = left_out[0].Y.shape[1]
    found = Blend.learn(
        np.column_stack(residuals),
        np.column_stack(log_densities),
        # Rows of folds were not seen when the numbers were fitted that predict them.
        [0 if one.folds else one.hyperparameters for one in networks],
        outputs * min(size, len(left_out[0].rows)),
    )
    # Few rows hardly tell the shares of networks, and a mean of several errs less than one.
    few = all(one.folds for one in networks)
    return found.towards_equal(len(left_out[0].rows), EQUAL_ROWS) if few else found


def left_out_predictive(
    left_out: Sequence[LeftOut], networks: Sequence[FittedNetwork], blend: Blend
) -> Predictive:
    """Predictions of held-out rows, in the units of the data."""
    means, variances = zip(*((one.mean, one.variance[:, None]) for one in left_out), strict=True)
    return blend.predictive(means, variances, [one.targets for one in networks])


def mixed_mean(means: Sequence[Array], weights: Array) -> Array:
    """Mean of a mixture, given that of each network."""
    if len(means) == 1:
        return means[0]
    return np.asarray(sum(w * mean for w, mean in zip(weights, means, strict=True)))


class Draws(NamedTuple):
    """Which of some draws are of one network and factor."""

    network: int
    part: int  # of the predictive distribution, which has networks with a share only
    factor: float
    which: Index
    seed: int


def drawn_from(blend: Blend, count: int, seed: int) -> Iterator[Draws]:
    """Assign draws to networks and factors by their shares."""
    if blend.weights.size == 1:
        yield Draws(0, 0, float(blend.factors[0]), np.arange(count), seed)
        return
    rng = np.random.default_rng(seed)
    chosen = rng.choice(blend.weights.size, count, p=blend.weights.ravel())
    parts = np.cumsum(blend.network_weights > 0) - 1
    for cell in np.unique(chosen):
        network, j = divmod(int(cell), len(blend.factors))
        which = np.flatnonzero(chosen == cell)
        own = int(rng.integers(2**31))
        yield Draws(network, int(parts[network]), float(blend.factors[j]), which, own)
