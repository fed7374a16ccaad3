"""Objective of the search and its gradient: evidence or leave-one-out density, plus the prior."""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.linsolve import Engine
from nngp.posterior import condition
from nngp.predictors.selection.problem import Hyperparameters
from nngp.predictors.selection.space import Space


class ObjectiveValue(NamedTuple):
    """Objective per target at one theta; -inf, with a zero gradient, if it has no value there."""

    score: float
    gradient: Array
    log_evidence: float  # of all targets, whatever the criterion
    failure: str = ""  # the error that prevented it


@dataclass(frozen=True)
class Objective:
    """Log posterior density of hyper-parameters, given data."""

    X: Array
    Y: Array
    criterion: str  # "evidence" or "loo"
    engine: str | Engine

    def evaluate(self, space: Space, theta: Array, at: Hyperparameters) -> ObjectiveValue:
        """Evaluate at theta, whose hyper-parameters are `at`."""
        failure, value, gradient, log_evidence = "", -np.inf, np.zeros_like(theta), -np.inf
        try:
            found, slope, evidence = self._likelihood(space, theta, at)
            if np.isfinite(found) and np.isfinite(slope).all():
                value, gradient, log_evidence = found, slope, evidence
        except (NotPositiveDefiniteError, VarianceError, ActivationError) as error:
            failure = str(error)
        prior, slope = space.log_prior(theta)
        size = self.Y.size
        score, gradient = (value + prior) / size, (gradient + slope) / size
        return ObjectiveValue(score, gradient, log_evidence, failure)

    def _likelihood(
        self, space: Space, theta: Array, at: Hyperparameters
    ) -> tuple[float, Array, float]:
        """Return the criterion, summed over all targets, its gradient in theta, the evidence."""
        net, noise = at.architecture, at.noise_var
        X = self.X if at.relevance is None else self.X * np.sqrt(at.relevance)
        options = {"per_layer": not space.candidate.is_infinite, "per_input": space.inputs > 0}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = condition(
                net, X, self.Y, noise_var=noise, engine=self.engine, progress=False
            )
            if posterior.noise_var > noise and space.candidate.noise_var is None:
                return -np.inf, theta, -np.inf  # the noise was raised: not the network at theta
            value = evidence = posterior.log_evidence
            if self.criterion == "loo":
                value, by_name = posterior.leave_one_out_density(**options)
            else:
                by_name = posterior.evidence_gradient(**options) if len(theta) else {}
        return value, space.gradient(theta, by_name) if len(theta) else theta, evidence
