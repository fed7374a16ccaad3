"""Leave-one-out verdict on transforms, maps and invariances: what the evidence prefers must predict
no worse.

Two transforms of the targets, or two sets of maps, are different models, and the evidence of the
wrong one can be larger by much: it adds up how surprising the first points were. Left out one by
one, the points say what a prediction is worth, in the units of the data.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.posterior.evidence.criteria import HeldOut
from nngp.predictive.blend import Blend
from nngp.predictive.predictive import Predictive
from nngp.predictive.targets import TargetScaling
from nngp.selection.objective import Objective
from nngp.selection.problem import HyperparameterPoint


class Allowance(NamedTuple):
    """By how much the error may be larger: a ratio, and what is added to it for each nat that the
    density of a target gains. Intervals that fit are worth a little error of the mean."""

    ratio: float
    for_a_nat: float


AT_THE_END = Allowance(1.01, 0.25)
OF_INVARIANCES = Allowance(1.0, 0.0)
OF_MAPS = Allowance(1.05, 0.0)  # judged before they are climbed on more data
OF_TRANSFORMS = Allowance(1.05, 1.0)  # judged before their maps are chosen, and again at the end
NOISES = (1.0, 4.0, 16.0)
SURE = 1.5  # deviations by which classes must be predicted more often


class Verdict(NamedTuple):
    """Leave-one-out log density of a target in its units, on average, and the error of means."""

    density: float
    error: float  # root mean square, in deviations of the targets

    def confirms(self, other: "Verdict", allowed: Allowance = AT_THE_END) -> bool:
        """Whether this predicts better than the other, and errs little more."""
        gain = self.density - other.density
        if not gain > 0:
            return False
        return self.error <= (allowed.ratio + allowed.for_a_nat * gain) * other.error


def more_are_right(
    objective: Objective, at: HyperparameterPoint, other: HyperparameterPoint
) -> bool:
    """Whether, left out one by one, more classes are predicted than at the other setting, by more
    than chance explains: of the rows that only one predicts."""
    try:
        means = [objective.Y - objective.held_out(one).residuals for one in (at, other)]
    except (NotPositiveDefiniteError, VarianceError):
        return False
    truth = objective.Y.argmax(axis=1)
    first, second = (mean.argmax(axis=1) == truth for mean in means)
    won, lost = int((first & ~second).sum()), int((second & ~first).sum())
    return won - lost > SURE * np.sqrt(won + lost)


def verdict(
    objective: Objective, at: HyperparameterPoint, Y: Array, targets: TargetScaling
) -> Verdict:
    """Judge a setting on the objective's rows, whose raw targets are Y, with the best of a few
    noises: that of fewer points is too small for more of them."""
    settings = [replace(at, noise_var=at.noise_var * factor) for factor in NOISES]
    return max(_verdict(objective, one, Y, targets) for one in settings)


def _verdict(
    objective: Objective, at: HyperparameterPoint, Y: Array, targets: TargetScaling
) -> Verdict:
    try:
        found = objective.held_out(at)
    except (NotPositiveDefiniteError, VarianceError):
        return Verdict(-np.inf, np.inf)
    return verdict_of(found, objective, Y, targets)


def verdict_of(
    held_out: HeldOut, objective: Objective, Y: Array, targets: TargetScaling
) -> Verdict:
    """Judge the leave-one-out residuals and variances of the objective's rows."""
    residuals, variance = held_out
    predictive = _predictive(residuals, objective.Y, variance, Y, targets)
    w = np.ones(len(Y)) if objective.weights is None else objective.weights
    spread = Y.var(axis=0)
    squares = np.square(Y - predictive.mean())[:, spread > 0] / spread[spread > 0]
    error = np.sqrt(np.average(squares, axis=0, weights=w).mean()) if squares.size else 0.0
    density = np.average(predictive.log_density(Y).mean(axis=1), weights=w)
    return Verdict(float(density), float(error))


def _predictive(
    residuals: Array, scaled: Array, variance: Array, Y: Array, targets: TargetScaling
) -> Predictive:
    """Predictions of held-out points as a fit makes them in the end: the mean of the targets, not
    their middle, and the mixture of widths that suits them, so that one surprise does not
    decide."""
    z = residuals / np.sqrt(variance)[:, None]
    plain = targets.log_slopes(Y) - 0.5 * np.log(2 * np.pi * variance)[:, None] - 0.5 * z**2
    blend = Blend.learn(z.reshape(-1, 1), plain.reshape(-1, 1))
    return blend.predictive([scaled - residuals], [variance[:, None]], [targets])
