"""A network that was chosen and conditioned on data, with all that its predictions need."""

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nngp._arrays import Array, Index
from nngp._progress import Callback
from nngp.architecture import Network
from nngp.estimators.training_rows import TrainingRows
from nngp.estimators.variance_estimate import VarianceEstimate
from nngp.estimators.varying_noise import VaryingNoise, learn_varying_noise
from nngp.frames.scaling import InputScaling
from nngp.linsolve import CG, Engine
from nngp.posterior import Posterior, condition
from nngp.predictive.targets import TargetScaling
from nngp.selection import Hyperparameters
from nngp.selection.problem import are_copies

LEAVE_OUT = 4000  # held-out points, one at a time; more are a random part of that size


class LeftOut(NamedTuple):
    """Rows, their scaled targets, and predictions for each from all the others."""

    rows: Index
    Y: Array  # (m, outputs)
    mean: Array  # (m, outputs)
    variance: Array  # (m,), of one observation each, whatever the weights

    @property
    def standardized(self) -> Array:
        """Residuals in units of their deviations, (m, outputs)."""
        out: Array = (self.Y - self.mean) / np.sqrt(self.variance)[:, None]
        return out


class ComputeSettings(NamedTuple):
    """Where the final system is solved, and where smaller ones are."""

    solver: str | CG
    engine: str | Engine
    small: str | Engine
    progress: Callback | bool | None


@dataclass(frozen=True)
class FittedNetwork:
    """A posterior of scaled targets, and its scalings.

    Attributes
    ----------
    posterior : Posterior
    inputs : InputScaling
    targets : TargetScaling
    noise_var : float
        Of new observations, in units of the scaled targets.
    varying : VaryingNoise or None
        How the noise depends on the inputs, if it does.
    weights : array (n,) or None
        Of the training rows; the noise of a row that the posterior has is over its weight.
    """

    posterior: Posterior
    inputs: InputScaling
    targets: TargetScaling
    noise_var: float
    varying: VaryingNoise | None = None
    weights: Array | None = None
    # Rows, and the network that was chosen without them, conditioned on all rows: to predict rows
    # from the others by nothing that has seen them. Not saved: only `fit` needs them.
    folds: tuple[tuple[Index, "FittedNetwork"], ...] = ()
    # By how many rows: widths of intervals, the noise floor and trees ask for the same ones.
    _left_out: dict[int, LeftOut] = field(default_factory=dict, init=False, repr=False)
    _estimates: list[VarianceEstimate] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def condition(
        cls, chosen: Hyperparameters, rows: TrainingRows, machine: ComputeSettings
    ) -> "FittedNetwork":
        """Condition the chosen network on all rows."""
        noise = rows.noise(chosen)
        posterior = condition(
            chosen.network,
            chosen.inputs(rows.X),
            chosen.targets(rows.Y),
            noise_var=noise,
            solver=machine.solver,
            engine=machine.engine,
            progress=machine.progress,
        )
        noise_var = max(chosen.noise_var, _common_noise(posterior))
        with warnings.catch_warnings():  # this one has told already
            warnings.simplefilter("ignore")
            quiet = machine._replace(progress=False)
            folds = tuple((part, cls.condition(one, rows, quiet)) for part, one in chosen.folds)
        targets = chosen.targets.reaching(posterior.targets)
        return cls(posterior, chosen.inputs, targets, noise_var, None, rows.weights, folds)

    @property
    def network(self) -> Network:
        return self.posterior.network

    @property
    def log_evidence(self) -> float:
        """Log density of the targets in their own units; whole weights count copies of rows."""
        posterior, targets, weights = self.posterior, self.targets, self.weights
        slopes = targets.log_slopes(targets.undo(posterior.targets))
        if weights is None or not are_copies(weights):
            return posterior.log_evidence + float(slopes.sum())
        noise = np.maximum(weights * posterior.noise_var, np.finfo(float).tiny)
        extra = 0.5 * ((1 - weights) * np.log(2 * np.pi * noise) - np.log(weights)).sum()
        copies = targets.outputs * extra + (weights[:, None] * slopes).sum()
        return posterior.log_evidence + float(copies)

    def predict(self, X: Array, *, noise: bool) -> tuple[Array, Array]:
        """Means (m, outputs) and variances (m, 1) of scaled targets at encoded inputs: of
        observations, or of the function behind them."""
        Xs = self.inputs(X)
        mean, variance = self.posterior.predict(Xs, noise=self.noise(Xs, noise))
        return mean, variance[:, None]

    def variance_estimate(self, machine: ComputeSettings) -> VarianceEstimate:
        """What estimates the variance of the function; learned on first use."""
        if not self._estimates:
            self._estimates.append(VarianceEstimate.learn(self.posterior, machine.small))
        return self._estimates[0]

    def predict_quickly(
        self, X: Array, machine: ComputeSettings, *, noise: bool
    ) -> tuple[Array, Array]:
        """As `predict`, with estimated variances."""
        Xs = self.inputs(X)
        variance = self.variance_estimate(machine)(Xs) + self.noise(Xs, noise)
        return self.posterior.mean(Xs), variance[:, None]

    def noise(self, Xs: Array, wanted: bool) -> float | Array:
        """The noise to add to the variance of the function at scaled inputs."""
        if not wanted:
            return 0.0
        return self.noise_var if self.varying is None else self.varying.noise_at(Xs)

    def with_varying_noise(self, rows: TrainingRows, machine: ComputeSettings) -> "FittedNetwork":
        """Let the noise depend on the inputs, where held-out rows gain by it."""
        posterior, chosen = self.posterior, self._chosen
        X, Y = np.asarray(posterior.inputs), posterior.targets
        found = learn_varying_noise(
            posterior.network,
            X,
            Y,
            self.noise_var,
            least=self.targets.noise_floor,
            known=rows.scaled_known_noise(chosen),
            weights=rows.weights,
            engine=machine.small,
            progress=machine.progress,
        )
        if found is None:
            return self
        again = self._conditioned(
            rows.noise(chosen, found.row_noise), machine.solver, machine.engine, machine.progress
        )
        folds = tuple((part, one._with_noise_of(rows, found, machine)) for part, one in self.folds)
        return replace(self, posterior=again, varying=found, folds=folds)

    def _with_noise_of(
        self, rows: TrainingRows, found: VaryingNoise, machine: ComputeSettings
    ) -> "FittedNetwork":
        """This network with a noise of the rows that another one found."""
        noise = rows.noise(self._chosen, found.row_noise)
        return replace(self, posterior=self._conditioned(noise, machine.solver, machine.engine))

    def _conditioned(
        self, noise: Array | float, solver: str | CG, engine: str | Engine, progress: Any = False
    ) -> Posterior:
        """The same network and rows with another noise."""
        posterior = self.posterior
        return condition(
            posterior.network,
            np.asarray(posterior.inputs),
            posterior.targets,
            noise_var=noise,
            solver=solver,
            engine=engine,
            progress=progress,
        )

    @property
    def _chosen(self) -> Hyperparameters:
        return Hyperparameters(self.network, self.noise_var, self.inputs, self.targets)

    @property
    def hyperparameters(self) -> int:
        """How many numbers were fitted: variances, noise, for each input a relevance and the choice
        of a map, the maps' powers, and the strength of whitening."""
        net = self.network
        layers = 1 if net.is_infinite else len(net.weight_vars)
        relevances = len(np.unique(self.inputs.relevance))
        powers = sum(one.kind == "yeo-johnson" for one in self.inputs.maps)
        strengths = self.inputs.whitening is not None
        return 2 * layers + 1 + (2 * relevances if relevances > 2 else 0) + powers + strengths

    def left_out(self, machine: ComputeSettings, most: int = LEAVE_OUT) -> LeftOut:
        """Predict training rows from all the others; from some if there are many, or no factor."""
        count = min(self.posterior.n, most)
        if count not in self._left_out:
            self._left_out[count] = self._leave_out(machine, most)
        return self._left_out[count]

    def _leave_out(self, machine: ComputeSettings, most: int) -> LeftOut:
        posterior, n = self.posterior, self.posterior.n
        rows = np.arange(n)
        if self.folds and n <= most:
            parts = [(part, one._leave_out(machine, most)) for part, one in self.folds]
            mean, variance = np.empty_like(posterior.targets), np.empty(n)
            for part, one in parts:
                mean[part], variance[part] = one.mean[part], one.variance[part]
            return LeftOut(rows, posterior.targets, mean, variance)
        if n > most or posterior.report.solver != "cholesky":
            rows = np.sort(np.random.default_rng(0).permutation(n)[:most])
            posterior = self.on(rows, machine)
        mean, variance = posterior.leave_one_out(noise=self.weights is None)
        if self.weights is not None:  # the posterior has the noise of a row's mean
            variance = variance + self.weights[rows] * posterior.noise_var
        return LeftOut(rows, posterior.targets, mean, variance)

    def on(self, rows: Index, machine: ComputeSettings) -> Posterior:
        """Condition the same network on some of the training rows."""
        posterior = self.posterior
        noise = posterior.noise_var
        return condition(
            posterior.network,
            posterior.inputs.take(rows).X,
            posterior.targets[rows],
            noise_var=noise[rows] if isinstance(noise, np.ndarray) else noise,
            solver="cholesky",
            engine=machine.small,
            progress=machine.progress,
        )

    def updated(self, rows: TrainingRows) -> "FittedNetwork":
        """The network conditioned on more rows as well; this one stays as it is."""
        Xs, targets = self.inputs(rows.X), self.targets.holding(rows.Y)
        learned = None if self.varying is None else self.varying.noise_at(Xs)
        noise = rows.noise(self._chosen, learned)
        by_row = np.ndim(noise) > 0 or np.ndim(self.posterior.noise_var) > 0
        posterior = copy(self.posterior)  # `update` changes the one that it is called on
        posterior.update(Xs, targets(rows.Y), noise_var=noise if by_row else None)
        noise_var = max(self.noise_var, _common_noise(posterior))
        n, m = self.posterior.n, len(rows.X)
        weights = _joined(self.weights, n, rows.weights, m)
        folds = [(part, one.updated(rows)) for part, one in self.folds]
        if folds:  # nothing was chosen by the new rows, so any of the networks may predict them
            folds[0] = np.append(folds[0][0], np.arange(n, n + m)), folds[0][1]
        return replace(
            self,
            posterior=posterior,
            targets=targets.reaching(posterior.targets),
            noise_var=noise_var,
            weights=weights,
            folds=tuple(folds),
        )


def _joined(old: Array | None, n: int, new: Array | None, m: int) -> Array | None:
    """Weights of n rows and m more; None if all are one."""
    if old is None and new is None:
        return None
    return np.concatenate([np.ones(n) if old is None else old, np.ones(m) if new is None else new])


def _common_noise(posterior: Posterior) -> float:
    """The noise that all rows share, which may have been raised; zero if rows have their own."""
    noise = posterior.noise_var
    return 0.0 if isinstance(noise, np.ndarray) else noise
