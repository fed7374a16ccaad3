"""Derivatives of a mixture's predictions in the inputs, in the units of the data.

Each network predicts a mean and a variance of scaled targets, whose derivatives the posterior gives
and the scaling of the inputs carries back. What the mixture makes of them, mean and deviation of
transformed targets, is a smooth function of these numbers for each row and output by itself: its
derivatives in them are differences of fourth order, good to about 1e-10.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.estimators.fitted_network import FittedNetwork
from nngp.predictive.blend import Blend
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
