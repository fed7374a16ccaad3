"""Objective of the search and its gradient: evidence or leave-one-out density, plus the prior."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import has_lower_triangle
from nngp.linsolve import Engine
from nngp.posterior import condition
from nngp.posterior.evidence.criteria import HeldOut
from nngp.posterior.evidence.dense_evidence import DenseEvidence, DenseValue
from nngp.selection.inputs import Scaled, SearchInputs
from nngp.selection.problem import HyperparameterPoint, are_copies, row_noise
from nngp.selection.space import Slopes, Space

LEAST_NOISE = 1e-300  # whose logarithm is a number: the user may have set it to zero
SCALES = (1e-3, 1e3)  # of a kernel and its noise
# Log evidence and Y·(K + noise)⁻¹Y, summed over outputs, of Y and a noise for each row.
NoiseEvidence = Callable[[Array, Array], tuple[float, float]]


class ObjectiveValue(NamedTuple):
    """Objective per target at one theta; -inf, with a zero gradient, if it has no value there."""

    score: float
    gradient: Array
    log_evidence: float  # of all scaled targets, whatever the criterion
    failure: str = ""  # the error that prevented it


@dataclass(frozen=True)
class Objective:
    """Log posterior density of hyper-parameters, given the first `count` rows of the data."""

    inputs: SearchInputs
    count: int
    Y: Array  # scaled, of these rows
    criterion: str  # "evidence" or "loo"
    dense: DenseEvidence
    engine: str | Engine
    weights: Array | None = None
    known: Array | float = 0.0  # noise variance beside the learned one, scaled

    def evaluate(
        self, space: Space, theta: Array, at: HyperparameterPoint, *, gradient: bool = True
    ) -> ObjectiveValue:
        """Evaluate at theta, whose setting is `at`; without a gradient it is zero."""
        failure, value, slope, log_evidence = "", -np.inf, np.zeros_like(theta), -np.inf
        try:
            found, by_theta, evidence = self._likelihood(space, theta, at, gradient)
            if np.isfinite(found) and np.isfinite(by_theta).all():
                value, slope, log_evidence = found, by_theta, evidence
        except (NotPositiveDefiniteError, VarianceError, ActivationError) as error:
            failure = str(error)
        prior, by_prior = space.log_prior(theta)
        size = self.Y.size
        score, slope = (value + prior) / size, (slope + by_prior) / size
        return ObjectiveValue(score, slope, log_evidence, failure)

    def score(self, space: Space, at: HyperparameterPoint) -> float:
        """The objective per target, alone."""
        return self.evaluate(space, space.pack(at), at, gradient=False).score

    def score_by(
        self, evidence: NoiseEvidence, space: Space, at: HyperparameterPoint
    ) -> tuple[float, float]:
        """The objective per target by the evidence, and the log evidence; -inf if it has none."""
        try:
            value = evidence(self.Y, self._noise_of_rows(at.noise_var))[0]
        except NotPositiveDefiniteError:
            return -np.inf, -np.inf
        value += self._weights_term(at.noise_var)[0]
        return (value + space.log_prior(space.pack(at))[0]) / self.Y.size, value

    def evidence_of(self, K: Array, noise_var: float) -> float:
        """The log evidence, given the kernel; -inf if it has none."""
        try:
            value = self.dense.log_evidence_of(K, self.Y, self._noise_of_rows(noise_var))
        except NotPositiveDefiniteError:
            return -np.inf
        return value + self._weights_term(noise_var)[0]

    def profiled_evidence_of(self, K: Array, noise_var: float) -> tuple[float, float]:
        """The largest log evidence of a factor times the kernel and the noise, and that factor. It
        is one where the noise of rows is known, which is not multiplied."""
        try:
            value, misfit = self.dense.log_evidence_and_misfit(
                K, self.Y, self._noise_of_rows(noise_var)
            )
        except NotPositiveDefiniteError:
            return -np.inf, 1.0
        value += self._weights_term(noise_var)[0]
        if np.any(self.known):
            return value, 1.0
        w = np.ones(len(self.Y)) if self.weights is None else self.weights
        targets = self.Y.shape[1] * (float(w.sum()) if are_copies(w) else len(w))
        scale = float(np.clip(misfit / targets, *SCALES))
        return value + 0.5 * (misfit - misfit / scale - targets * np.log(scale)), scale

    def held_out_of(self, K: Array, noise_var: float) -> HeldOut:
        """Leave-one-out residuals and variances, given the kernel."""
        return self.dense.held_out_of(K, self.Y, self._noise_of_rows(noise_var))

    def held_out(self, at: HyperparameterPoint) -> HeldOut:
        """Leave-one-out residuals and variances, of networks that `dense_evidence` supports."""
        X = self.inputs.scaled(at, self.count).X
        noise = np.broadcast_to(self._noise(at), len(X))
        found = self.dense.evaluate(
            at.base,
            X,
            self.Y,
            noise,
            criterion="loo",
            weights=self.weights,
            gradient=False,
        )
        assert found.held_out is not None  # asked for
        return found.held_out

    def _noise(self, at: HyperparameterPoint) -> Array | float:
        return row_noise(at.noise_var, self.weights, self.known)

    def _noise_of_rows(self, noise_var: float) -> Array:
        return np.broadcast_to(row_noise(noise_var, self.weights, self.known), len(self.Y))

    def _likelihood(
        self, space: Space, theta: Array, at: HyperparameterPoint, gradient: bool
    ) -> tuple[float, Array, float]:
        """Return the criterion, summed over all targets, its gradient in theta, the evidence."""
        scaled = self.inputs.scaled(at, self.count)
        gradient = gradient and len(theta) > 0
        extra, extra_slope = self._weights_term(at.noise_var)
        if has_lower_triangle(at.base):
            noise = np.broadcast_to(self._noise(at), len(self.Y))
            try:
                found = self.dense.evaluate(
                    at.base,
                    scaled.X,
                    self.Y,
                    noise,
                    criterion=self.criterion,
                    weights=self.weights,
                    gradient=gradient,
                )
            except NotPositiveDefiniteError:
                if space.candidate.noise_var is None:
                    raise
                # Noise that the user fixed is raised where it must be, as in the final fit.
            else:
                if not gradient:
                    return found.value + extra, np.zeros_like(theta), found.log_evidence + extra
                slopes = self._slopes(found, scaled, extra_slope)
                by_theta = space.gradient(theta, slopes)
                return found.value + extra, by_theta, found.log_evidence + extra
        return self._by_condition(space, theta, at, scaled, gradient)

    def _weights_term(self, noise_var: float) -> tuple[float, float]:
        """Contribution of weights to the evidence (log N(y; f, s²)^w is not a normalized density),
        and its derivative in the noise."""
        counted = self.weights is not None and are_copies(self.weights)
        if self.weights is None or not counted or self.criterion != "evidence":
            return 0.0, 0.0
        w, outputs = self.weights, self.Y.shape[1]
        total = np.maximum(noise_var + self.known, LEAST_NOISE)
        value = 0.5 * float(((1 - w) * np.log(2 * np.pi * total) - np.log(w)).sum())
        return outputs * value, outputs * 0.5 * float(((1 - w) / total).sum())

    def _slopes(self, found: DenseValue, scaled: Scaled, extra: float) -> Slopes:
        """Derivatives in the hyper-parameters, by the chain rule."""
        moving = np.empty(0)
        if scaled.by_power.shape[1]:
            columns = scaled.moving
            moving = np.einsum("ij,ij->j", found.inputs[:, columns], scaled.by_power)
        relevance = 0.5 * np.einsum("ij,ij->j", found.inputs, scaled.X)
        by_noise_var = self._by_noise(found.noise) + extra
        return Slopes(found.weight_vars, found.bias_vars, by_noise_var, relevance, moving)

    def _by_noise(self, by_row: Array) -> float:
        """The derivative in the learned noise, from those in the noise of the rows."""
        return float((by_row if self.weights is None else by_row / self.weights).sum())

    def _by_condition(
        self, space: Space, theta: Array, at: HyperparameterPoint, scaled: Scaled, gradient: bool
    ) -> tuple[float, Array, float]:
        """The same by the general posterior, for other networks."""
        noise, infinite = self._noise(at), space.candidate.is_infinite
        options = {"per_layer": not infinite, "per_input": space.groups is not None}
        extra, extra_slope = self._weights_term(at.noise_var)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = condition(
                at.base,
                scaled.X,
                self.Y,
                noise_var=noise,
                engine=self.engine,
                progress=False,
            )
            if np.any(posterior.noise_var > noise) and space.candidate.noise_var is None:
                return -np.inf, theta, -np.inf  # the noise was raised: not the network at theta
            value = evidence = posterior.log_evidence
            by_name: dict[str, Array | float] = {}
            if self.criterion == "loo":
                value, by_name = posterior.leave_one_out_density(**options)
            elif gradient:
                by_name = posterior.evidence_gradient(**options)
        if not gradient:
            return value + extra, np.zeros_like(theta), evidence + extra
        slopes = Slopes(
            np.atleast_1d(by_name["weight_var"]),
            np.atleast_1d(by_name["bias_var"]),
            self._by_noise(np.asarray(by_name["noise_var"])) + extra_slope,
            np.asarray(by_name.get("relevance", 0.0)),
            np.zeros(scaled.by_power.shape[1]),
            np.array([by_name[name] for name in at.base.params]),
        )
        return value + extra, space.gradient(theta, slopes), evidence + extra
