"""Noise that depends on the inputs: a second process, of its logarithm.

The squared residual of a point left out, over its expectation v + s (variances of the function and
of the noise), is χ² with one degree of freedom for each output, and E log χ² is known. So

    log r² - E log χ² - log((v + s) / s)

is log s with an error of known variance. It is regressed on the scaled inputs with a small network,
and the first process is conditioned again with the noise of each row, for a fixed number of
alternations (Goldberg, Williams and Bishop 1998, with residuals left out instead of samples). The
noise is kept if held-out points gain log density by it, their noise being left out, too.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, polygamma

from nngp._arrays import Array
from nngp._progress import Callback
from nngp.architecture import Network, as_activation
from nngp.linsolve import Engine
from nngp.posterior import Posterior, condition
from nngp.posterior.evidence.criteria import log_normal
from nngp.predictive.targets import TargetScaling
from nngp.selection import SelectionProblem, choose
from nngp.selection.problem import Candidate

ALTERNATIONS = 3
LEAST_POINTS = 40  # fewer say nothing about how noise varies
MOST_POINTS = 2000  # that the process of the noise learns from
SMALLEST_SHARE = 1e-4  # of what was expected, a squared residual: logarithms of less mean nothing
LARGEST_RATIO = 1e4  # of a noise variance over that of all rows
LEAST_GAIN = 3.0  # in log density: chance alone gives about one
BUDGET = 60  # networks tried for the noise, at first


@dataclass(frozen=True)
class VaryingNoise:
    """The variance of the noise as a function of the scaled inputs.

    Attributes
    ----------
    posterior : Posterior
        Of the logarithm of the noise over `level`.
    level : float
        The variance where that is zero.
    least : float
        No variance is smaller.
    row_noise : array, (n,)
        Variance at the training rows, without what is known; empty after loading.
    gain : float
        What the log density of held-out points won, summed.
    """

    posterior: Posterior
    level: float
    least: float
    row_noise: Array
    gain: float

    def noise_at(self, Xs: Array) -> Array:
        """Variance of the noise at scaled inputs, (m,)."""
        return _variances(self.posterior.mean(Xs), self.level, self.least)


class _State(NamedTuple):
    """Residuals of held-out points, (n, outputs), and the variance of the function there. The noise
    of a row is (known + what is learned) / weight."""

    residuals: Array
    variance: Array
    known: Array
    weights: Array

    def expected(self, noise: Array) -> Array:
        """Variance of each residual."""
        return self.variance + (self.known + noise) / self.weights


@dataclass(frozen=True)
class _Process:
    """The first process on some rows, with any noise."""

    network: Network
    X: Array
    Y: Array
    known: Array
    weights: Array
    engine: str | Engine
    progress: Callback | bool | None

    def left_out(self, noise: Array) -> _State:
        posterior = condition(
            self.network,
            self.X,
            self.Y,
            noise_var=(self.known + noise) / self.weights,
            solver="cholesky",
            engine=self.engine,
            progress=self.progress,
        )
        mean, variance = posterior.leave_one_out(noise=False)
        return _State(self.Y - mean, variance, self.known, self.weights)


def learn_varying_noise(
    network: Network,
    X: Array,
    Y: Array,
    noise_var: float,
    *,
    least: float = 0.0,
    known: Array | None = None,
    weights: Array | None = None,
    engine: str | Engine = "cpu",
    progress: Callback | bool | None = None,
    seed: int = 0,
) -> VaryingNoise | None:
    """Learn how the noise varies; None if held-out points do not gain by it.

    Parameters
    ----------
    network : Network
        Of the network that predicts the targets.
    X, Y : array, (n, d) and (n, outputs)
        Scaled inputs and targets.
    noise_var : float
        The variance of all rows' noise that was chosen before.
    least : float
        Least variance, by the resolution of the targets.
    known, weights : array, (n,), optional
        Variance of each row's noise beside the learned one, and the weight of the row: its noise
        is (known + learned) / weight.
    engine, progress
        As `condition` takes them.
    seed : int
        Of the rows that are used where there are many.
    """
    n = len(X)
    if n < LEAST_POINTS:
        return None
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(n)[:MOST_POINTS])
    known = np.zeros(n) if known is None else known
    weights = np.ones(n) if weights is None else weights
    first = _Process(network, X[some], Y[some], known[some], weights[some], engine, progress)
    noise = np.full(len(some), max(noise_var, least, np.finfo(float).tiny))
    state = first.left_out(noise)
    for _ in range(ALTERNATIONS):  # one number for all rows gets the same chance
        level = _best_level(state, np.zeros(len(some)), float(noise[0]))
        noise = np.full(len(some), max(level, least))
        state = first.left_out(noise)
    noise_var, before = float(noise[0]), _log_density(state, noise)
    chosen: _NoiseNetwork | None = None
    for _ in range(ALTERNATIONS):
        logs = _log_noise(state, noise) - np.log(noise_var)
        chosen = chosen or _NoiseNetwork.choose(first, logs, rng)
        posterior = chosen.condition(first, logs)
        level = _best_level(state, posterior.mean(first.X), noise_var)
        noise = _variances(posterior.mean(first.X), level, least)
        state = first.left_out(noise)
    # The noise of each point without its own residual, too.
    left_out = _variances(posterior.leave_one_out().mean, level, least)
    gain = _log_density(state, left_out) - before
    if gain < LEAST_GAIN:
        return None
    rows = _variances(posterior.mean(X), level, least)
    return VaryingNoise(posterior, level, least, rows, gain)


@dataclass(frozen=True)
class _NoiseNetwork:
    """The network of the logarithm of the noise, and the variance of its observations."""

    network: Network
    noise_var: float

    @classmethod
    def choose(cls, first: _Process, logs: Array, rng: np.random.Generator) -> "_NoiseNetwork":
        """Choose it by evidence; inputs are scaled as they are for the first process."""
        error = float(polygamma(1, first.Y.shape[1] / 2))
        candidates = [
            Candidate(as_activation(name), depth, noise_var=error)
            for name in ("erf", "relu")
            for depth in (1, 2)
        ]
        Y = logs[:, None]
        chosen = choose(
            SelectionProblem(
                candidates=candidates,
                criterion="evidence",
                size=500,
                budget=BUDGET,
                scaling="none",
                effort="fast",
                X=first.X,
                Y=Y,
                targets=(TargetScaling(np.zeros(1), np.ones(1)),),
                engine=first.engine,
                rng=rng,
                progress=first.progress,
            )
        ).best
        return cls(chosen.network, chosen.noise_var)

    def condition(self, first: _Process, logs: Array) -> Posterior:
        return condition(
            self.network,
            first.X,
            logs,
            noise_var=self.noise_var,
            solver="cholesky",
            engine=first.engine,
            progress=first.progress,
        )


def _log_noise(state: _State, noise: Array) -> Array:
    """An unbiased estimate of each point's log variance, from its residual."""
    outputs = state.residuals.shape[1]
    share = (state.residuals**2).mean(axis=1) / state.expected(noise)
    bias = float(digamma(outputs / 2) - np.log(outputs / 2))
    return np.log(np.maximum(share, SMALLEST_SHARE)) - bias + np.log(noise)


def _variances(logs: Array, level: float, least: float) -> Array:
    bound = np.log(LARGEST_RATIO)
    return np.maximum(level * np.exp(np.clip(logs, -bound, bound)), least)


def _best_level(state: _State, logs: Array, noise_var: float) -> float:
    """The level at which the residuals are most probable."""

    def loss(shift: float) -> float:
        return -_log_density(state, _variances(logs, noise_var * np.exp(shift), 0.0))

    return noise_var * float(np.exp(minimize_scalar(loss, bounds=(-4, 4), method="bounded").x))


def _log_density(state: _State, noise: Array) -> float:
    variance = state.expected(noise)[:, None]
    return float(log_normal(state.residuals, variance).sum())
