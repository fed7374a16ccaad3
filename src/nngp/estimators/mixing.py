"""Mixtures of fitted networks: shares from held-out rows, means, draws, and derivatives.

The derivatives are those of predictions in the inputs, both in the units of the data. Each network
predicts a mean and a variance of scaled targets, whose derivatives the posterior gives and the
scaling of the inputs carries back. What the mixture makes of them, mean and standard deviation of
transformed targets, is a smooth function of these numbers for each row and output by itself: its
derivatives in them are differences of fourth order, good to about 1e-10.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Index
from nngp.estimators.fitted_network import FittedNetwork, LeftOut
from nngp.predictive.blend import Blend, stack
from nngp.predictive.predictive import Predictive

STEP = 1e-3  # of the differences, in deviations; of a variance relative to itself


class PredictionGradient(NamedTuple):
    """Derivatives of the predicted mean and, if asked for, of the standard deviation, (m, columns)
    or (m, columns, outputs); and the columns, those of numbers."""

    mean: Array
    std: Array | None
    columns: tuple[str, ...]


def mixture_gradient(
    networks: Sequence[FittedNetwork], blend: Blend, inputs: Array, *, std: bool, plain: bool
) -> tuple[Array, Array | None]:
    """Derivatives of mean and deviation in encoded inputs, (m, d, outputs); `plain` if the mean
    follows from the scaled means alone."""
    from_means = plain and not std
    if not from_means and any(one.varying is not None for one in networks):
        raise ValueError(
            "derivatives are not known of a noise that depends on the inputs; fit with "
            "noise='constant', or ask for the mean alone without a target transform"
        )
    parts = [_of_network(one, inputs, variance=not from_means) for one in networks]
    if from_means:
        shares = zip(networks, blend.network_weights, parts, strict=True)
        return sum(w * one.targets.spread * found[0] for one, w, found in shares), None
    both = [one.predict(inputs, noise=True) for one in networks]
    means = [mean for mean, _ in both]
    variances = [np.broadcast_to(v, m.shape).copy() for m, v in both]

    def predictive() -> Predictive:
        return blend.predictive(means, variances, [one.targets for one in networks])

    in_mean = np.zeros((*inputs.shape, means[0].shape[1]))
    in_std = np.zeros_like(in_mean)
    for k, (of_mean, of_variance) in enumerate(parts):
        moved = means[k], STEP * np.sqrt(variances[k]), of_mean
        more = variances[k], STEP * variances[k], of_variance[:, :, None]
        for values, step, rates in (moved, more):
            by_mean, by_std = _slopes(predictive, values, step)
            in_mean += by_mean[:, None] * rates
            in_std += by_std[:, None] * rates
    return in_mean, in_std if std else None


def _of_network(one: FittedNetwork, inputs: Array, *, variance: bool) -> tuple[Array, Array]:
    """Derivatives of one network's scaled mean, (m, d, outputs), and variance, (m, d)."""
    found = one.posterior.predict_gradient(one.inputs(inputs), variance=variance)
    mean = one.inputs.back(inputs, found.mean)
    if found.variance is None:
        return mean, np.empty(0)
    return mean, one.inputs.back(inputs, found.variance)


def _slopes(
    predictive: Callable[[], Predictive], values: Array, step: Array
) -> tuple[Array, Array]:
    """Derivatives of mean and deviation in some of what they are made of, which is moved in place
    and put back."""
    own, found = values.copy(), []
    for steps in (-2, -1, 1, 2):
        values[...] = own + steps * step
        moved = predictive()
        found.append((moved.mean(), moved.std()))
    values[...] = own
    first, second, third, last = (np.stack(pair) for pair in found)
    slopes = (8 * (third - second) - (last - first)) / (12 * step)
    return slopes[0], slopes[1]


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
