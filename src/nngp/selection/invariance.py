"""Choice of an invariance: families of transformations of images, added one by one.

Families are added while the log evidence rises clearly and held-out rows are predicted better. The
kernel of an average has a smaller variance than what it averages, and leaves other noise. So each
is judged at the noise and the scale that are best for it, and both are found without computing its
kernel again.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Array
from nngp.architecture import Architecture
from nngp.errors import NotPositiveDefiniteError
from nngp.posterior.evidence.criteria import log_normal
from nngp.predictive.targets import TargetScaling
from nngp.selection.cost import averaged_work
from nngp.selection.families import Families, Shape, growing_shifts, small_families
from nngp.selection.judge import OF_INVARIANCES, Verdict, verdict_of
from nngp.selection.maximise import BestTrial, Budget
from nngp.selection.noise import kernel_on
from nngp.selection.objective import SCALES, Objective
from nngp.selection.problem import HyperparameterPoint, SelectionProblem, averaged
from nngp.selection.space import NOISE_BOUNDS, log_prior_of_noise

GAIN = 2.0  # of the log evidence, that a family must bring; of one-hot targets one for each class
MAX_TRANSFORMATIONS = 500  # transformations in all
STEPS = 20  # evaluations of the evidence for a kernel
Found = TypeVar("Found", bound=tuple[float, ...])
Kernel = Callable[[Families], Array]  # lower triangle of the matrix, for the rows of the search


class ScoredInvariance(NamedTuple):
    """Families, with the log evidence at their best noise and scale, and held-out rows there. Noise
    and scale are those to be used: the scale is one where the network's is not free.

    Classes are predicted by the largest mean, and kernel and noise times a number move no mean. So
    their noise is that of the best scale, over the scale."""

    families: Families
    score: float  # log evidence and log prior of the noise
    log_evidence: float
    noise_var: float
    scale: float
    verdict: Verdict


@dataclass(frozen=True)
class InvarianceSearch:
    """Search on the rows of an objective, whose raw targets are Y."""

    objective: Objective
    Y: Array
    targets: TargetScaling
    kernel: Kernel
    noise_var: float  # that was given, or that of the network without invariances
    noise_is_given: bool
    scale_is_free: bool
    classes: bool
    note: Callable[[ScoredInvariance], None]  # told of each that was judged
    budget: Budget

    def run(self, shape: Shape) -> ScoredInvariance:
        """Add families of images of that shape, as long as they pay; none at first."""
        gain = max(GAIN, self.Y.shape[1] if self.classes else 0.0)
        best = self.judged(())
        for family in small_families(shape):
            best = self._better(best, (*best.families, family), gain)
        for family in growing_shifts(shape):
            kept = tuple(one for one in best.families if one.name != family.name)
            found = self._better(best, (*kept, family), gain)
            if found is best:
                break
            best = found
        return best

    def _better(self, best: ScoredInvariance, families: Families, gain: float) -> ScoredInvariance:
        """The best with these families, if that is clearly better."""
        count = math.prod(len(one.weights) for one in families)
        if count > MAX_TRANSFORMATIONS or self.budget.is_spent:
            return best
        found = self.judged(families)
        rises = found.score > best.score + gain
        return found if rises and found.verdict.confirms(best.verdict, OF_INVARIANCES) else best

    def judged(self, families: Families) -> ScoredInvariance:
        """Compute a kernel, and find its noise and scale."""
        self.budget.may_spend()
        K = self.kernel(families)
        if self.noise_is_given:
            score, scale = self._best_scale(K)
            value, noise_var = score, self.noise_var
        else:
            score, value, noise_var, scale = self._best_noise(K, free=True)
        found = self._verdict(K * scale, noise_var)
        if not self.scale_is_free:
            if not self.noise_is_given:
                best = noise_var / scale
                noise_var = best if self.classes else self._best_noise(K, free=False)[2]
            scale = 1.0
        out = ScoredInvariance(families, score, value, noise_var, scale, found)
        self.note(out)
        return out

    def _best_noise(self, K: Array, *, free: bool) -> tuple[float, float, float, float]:
        """The largest log evidence with the prior of the noise, that without it, the noise, and the
        scale, which is one if it is not free."""

        def at(noise_var: float) -> tuple[float, float, float, float]:
            value, scale = self.objective.evidence_of(K, noise_var), 1.0
            if free:
                value, scale = self.objective.profiled_evidence_of(K, noise_var)
            found = noise_var * scale
            return value + log_prior_of_noise(found), value, found, scale

        return _largest(at, *NOISE_BOUNDS)

    def _best_scale(self, K: Array) -> tuple[float, float]:
        """The largest log evidence with the given noise, and its scale."""
        return _largest(lambda s: (self.objective.evidence_of(s * K, self.noise_var), s), *SCALES)

    def _verdict(self, K: Array, noise_var: float) -> Verdict:
        try:
            held_out = self.objective.held_out_of(K, noise_var)
        except NotPositiveDefiniteError:
            return Verdict(-np.inf, np.inf)
        found = verdict_of(held_out, self.objective, self.Y, self.targets)
        return found._replace(density=_density(*held_out)) if self.classes else found


def _density(residuals: Array, variance: Array) -> float:
    """Log density of a target as the process has it, on average. A mixture of widths, which suits
    measurements, would fit itself to targets that are 0 or 1."""
    return float(log_normal(residuals, variance[:, None]).mean())


def _largest(at: Callable[[float], Found], low: float, high: float) -> Found:
    """The result of the largest first entry, of some numbers between two, by their logarithms."""
    found: list[Found] = []

    def loss(log: float) -> float:
        found.append(at(float(np.exp(log))))
        return -found[-1][0]

    ends = float(np.log(low)), float(np.log(high))
    minimize_scalar(loss, bounds=ends, method="bounded", options={"maxiter": STEPS})
    return max(found, key=lambda one: one[0])


def rescaled(network: Architecture, scale: float) -> Architecture:
    """The network whose kernel is so many times as large: its last layer is."""
    weights, biases = list(network.weight_vars), list(network.bias_vars)
    weights[-1] *= scale
    biases[-1] *= scale
    return replace(network, weight_var=tuple(weights), bias_var=tuple(biases))


@dataclass(frozen=True)
class InvarianceStage:
    """Finalists on the rows of an objective, with the families that the user gave, or with those
    that suit the first of them."""

    problem: SelectionProblem
    objective: Objective
    targets: TargetScaling
    note: Callable[[BestTrial], None]  # told of each average that was computed
    budget: Budget

    def run(self, found: list[BestTrial]) -> list[BestTrial]:
        """The finalists, each averaged, at its noise and scale."""
        families, out = self.problem.invariance, []
        for one in found:
            if self.budget.is_spent or one.candidate.is_infinite:
                setting = replace(one.setting, invariance=families or ())
                out.append(one._replace(setting=setting))
                continue
            tried: dict[Families, BestTrial] = {(): one}
            search = self._search(one, tried)
            if families is None:
                assert self.problem.image_shape is not None
                families = search.run(self.problem.image_shape).families
            elif families:
                search.judged(families)
            out.append(tried[families])
        return out

    def _search(self, one: BestTrial, tried: dict[Families, BestTrial]) -> InvarianceSearch:
        """The search for a network; `tried` gets what is computed, at its noise and scale."""
        clock, points = time.perf_counter(), self.objective.count
        inputs = self.objective.inputs
        rows, X = inputs.rows(points), inputs.scaled(one.setting, points).X
        given, net, engine = one.candidate, one.setting.base, self.problem.engine

        def note(found: ScoredInvariance) -> None:
            nonlocal clock
            began, clock = clock, time.perf_counter()
            score, setting = found.score / self.objective.Y.size, self._setting(one, found)
            climb = BestTrial(score, found.log_evidence, setting, given, 1, clock - began, "")
            self.note(climb)
            if found.families:
                tried[found.families] = climb
            self.budget.tracker.advance(averaged_work(self.problem, found.families, points))

        return InvarianceSearch(
            self.objective,
            self.problem.Y[rows],
            self.targets,
            lambda families: kernel_on(engine, averaged(net, families), X),
            one.setting.noise_var,
            given.noise_var is not None,
            given.weight_var is None and given.bias_var is None,
            self.problem.classes,
            note,
            self.budget,
        )

    def _setting(self, one: BestTrial, found: ScoredInvariance) -> HyperparameterPoint:
        """The setting of a network with the families, noise and scale that were found."""
        net = one.setting.base
        return replace(
            one.setting,
            base=net if found.scale == 1.0 else rescaled(net, found.scale),
            noise_var=max(found.noise_var, self.targets.noise_floor),
            invariance=found.families,
        )
