"""A wide network that has learned the objective: one of a few kernels, chosen by its evidence.

Inputs come from the space, their relevances are learned. The candidates are networks on these
inputs, and a network without hidden layers on the sphere: an input z goes to the point
(2z, |z|² - 1) / (|z|² + 1) of a sphere of one dimension more, and the kernel there is linear. In
many dimensions that is enough, and finds what richer kernels lose (Doumont et al. 2025).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from nngp._arrays import Array, Index
from nngp.architecture import Architecture
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.posterior import Posterior, condition
from nngp.posterior.evidence.dense_evidence import DenseEvidence
from nngp.predictive.transforms import TargetMap

CANDIDATES = (("plain", 1, "erf"), ("plain", 1, "sin"), ("sphere", 0, "relu"))
STARTS = {"weight_var": 3.0, "bias_var": 0.5, "noise_var": 1e-3}
BOUNDS = {"weight_var": (1e-2, 1e3), "bias_var": (1e-4, 1e2), "noise_var": (1e-6, 1.0)}
SPREAD = {"weight_var": 1.5, "bias_var": 1.5, "noise_var": 3.0}  # of priors of logarithms
RELEVANCES, RELEVANCE_SPREAD = (1e-4, 1e4), 1.0
STEPS = 60  # of an ascent


@dataclass(frozen=True)
class Features:
    """Inputs of a network: columns times roots of their relevances, perhaps on the sphere."""

    kind: str
    relevance: Array

    def __call__(self, Z: Array) -> Array:
        z = Z * np.sqrt(self.relevance)
        if self.kind == "plain":
            return z
        size = (z**2).sum(axis=1, keepdims=True)
        root = np.sqrt(z.shape[1] + 1.0)  # x·x/d is one on the sphere
        out: Array = root * np.hstack([2.0 * z, size - 1.0]) / (size + 1.0)
        return out

    def back(self, Z: Array, G: Array) -> Array:
        """Derivatives in √relevance Z of what has the derivatives G in the features."""
        if self.kind == "plain":
            return G
        z = Z * np.sqrt(self.relevance)
        more, root = 1.0 + (z**2).sum(axis=1, keepdims=True), np.sqrt(z.shape[1] + 1.0)
        G = root * G
        along = (G[:, :-1] * z).sum(axis=1, keepdims=True)
        out: Array = 2.0 * G[:, :-1] / more + 4.0 * z * (G[:, -1:] - along) / more**2
        return out


@dataclass(frozen=True)
class Hyperparameters:
    """A candidate with its variances, noise and relevances."""

    features: Features
    network: Architecture
    noise_var: float

    def condition(self, Z: Array, y: Array) -> Posterior:
        noise = self.noise_var
        X = self.features(Z)
        return condition(self.network, X, y, noise_var=noise, engine="cpu", progress=False)


class _Fit:
    """The logarithms of all hyper-parameters of one candidate, their prior, and the evidence."""

    def __init__(
        self, candidate: tuple[str, int, str], groups: Index, Z: Array, y: Array, *, exact: bool
    ) -> None:
        self.kind, self.depth, self.activation = candidate
        self.groups, self.Z, self.Y, self.exact = groups, Z, y[:, None], exact
        layers, self.dense = self.depth + 1, DenseEvidence()
        self.ends = np.cumsum([layers, layers, 1])
        names = ["weight_var"] * layers + ["bias_var"] * layers + ["noise_var"]
        count = int(groups.max()) + 1
        self.center = np.append([np.log(STARTS[n]) for n in names], np.zeros(count))
        self.spread = np.append([SPREAD[n] for n in names], np.full(count, RELEVANCE_SPREAD))
        bounds = [BOUNDS[n] for n in names] + [RELEVANCES] * count
        self.bounds = np.log(np.array(bounds))
        if exact:  # rounding is all the noise there is
            self.bounds[self.ends[1]] = np.log([1e-6, 1.0001e-6])
        self.center = np.clip(self.center, *self.bounds.T)

    def at(self, theta: Array) -> Hyperparameters:
        weights, biases, noise, relevance = np.split(np.exp(theta), self.ends)
        network = Architecture(self.depth, self.activation, tuple(weights), tuple(biases))
        return Hyperparameters(
            Features(self.kind, relevance[self.groups]), network, float(noise[0])
        )

    def loss(self, theta: Array) -> tuple[float, Array]:
        """Minus the log posterior density of the hyper-parameters, and its gradient."""
        one, distance = self.at(theta), (theta - self.center) / self.spread
        prior, by_prior = 0.5 * float(distance @ distance), distance / self.spread
        noise = np.full(len(self.Y), one.noise_var)
        try:
            found = self.dense.evaluate(one.network, one.features(self.Z), self.Y, noise)
        except (NotPositiveDefiniteError, VarianceError):
            return 1e10 + prior, by_prior
        inner = one.features.back(self.Z, found.inputs)
        scaled = self.Z * np.sqrt(one.features.relevance)
        by_relevance = np.bincount(self.groups, 0.5 * np.einsum("ij,ij->j", inner, scaled))
        by_noise = [float(found.noise.sum()) * one.noise_var]
        variances = np.exp(theta[: self.ends[1]])
        by_variances = np.concatenate([found.weight_vars, found.bias_vars]) * variances
        slope = np.concatenate([by_variances, by_noise, by_relevance])
        return prior - found.value, by_prior - slope

    def climb(self, starts: Sequence[Array]) -> tuple[float, Array]:
        from scipy.optimize import minimize  # slow to import

        best = np.inf, self.center
        for start in starts:
            options = {"maxiter": STEPS, "maxfun": 2 * STEPS}
            found = minimize(
                self.loss, start, jac=True, method="L-BFGS-B", bounds=self.bounds, options=options
            )
            if found.fun < best[0]:
                best = float(found.fun), found.x
        return best


@dataclass(frozen=True)
class Surrogate:
    """A posterior of standardised, perhaps transformed values of the objective, small ones good.

    `thetas` are the logarithms of each candidate's hyper-parameters, from where the next fit
    starts.
    """

    chosen: Hyperparameters
    posterior: Posterior
    Z: Array
    y: Array
    target: TargetMap
    scale: tuple[float, float]
    thetas: tuple[Array, ...]

    @classmethod
    def fit(
        cls,
        Z: Array,
        values: Array,
        groups: Index,
        *,
        exact: bool = False,
        before: "Surrogate | None" = None,
        candidates: Sequence[tuple[str, int, str]] = CANDIDATES,
    ) -> "Surrogate":
        """Learn from inputs and values; columns of one group share their relevance."""
        target = TargetMap.learn(values, "yeo-johnson")
        t = target(values)
        scale = float(t.mean()), float(t.std()) or 1.0
        y = (t - scale[0]) / scale[1]
        fits = [_Fit(one, groups, Z, y, exact=exact) for one in candidates]
        known = None if before is None else before.thetas
        found = []
        for k, fit in enumerate(fits):
            starts = [fit.center]
            if known is not None and known[k].shape == fit.center.shape:
                starts = [np.clip(known[k], *fit.bounds.T)]
            found.append(fit.climb(starts))
        best = int(np.argmin([loss for loss, _ in found]))
        chosen, thetas = fits[best].at(found[best][1]), tuple(theta for _, theta in found)
        return cls(chosen, chosen.condition(Z, y), Z, y, target, scale, thetas)

    def scaled(self, values: Array) -> Array:
        """Values of the objective as the posterior has them."""
        return (self.target(values) - self.scale[0]) / self.scale[1]

    def updated(self, Z: Array, y: Array) -> "Surrogate":
        """The same network after more points, whose factor is extended; this one stays as it is."""
        posterior = copy(self.posterior)  # `update` changes the one that it is called on
        posterior.update(self.chosen.features(Z), y)
        both = np.vstack([self.Z, Z]), np.append(self.y, y)
        return replace(self, posterior=posterior, Z=both[0], y=both[1])

    def expecting(self, Z: Array) -> "Surrogate":
        """After trials that are still running, as if each gave what is expected of it: the mean
        stays, and the variance there is gone."""
        return self.updated(Z, self.mean(Z)) if len(Z) else self

    def mean(self, Z: Array) -> Array:
        return self.posterior.mean(self.chosen.features(Z))

    def predict(self, Z: Array) -> tuple[Array, Array]:
        """Mean and variance at inputs."""
        return self.posterior.predict(self.chosen.features(Z))

    def predict_gradient(self, Z: Array) -> tuple[Array, Array]:
        """Derivatives of mean and variance in inputs."""
        features, root = self.chosen.features, np.sqrt(self.chosen.features.relevance)
        mean, variance = self.posterior.predict_gradient(features(Z))
        assert variance is not None  # asked for
        return features.back(Z, mean) * root, features.back(Z, variance) * root

    def draw(self, Z: Array, seed: int) -> Array:
        """One function that the data allow, at inputs."""
        return self.posterior.sample(self.chosen.features(Z), 1, seed)[0]
