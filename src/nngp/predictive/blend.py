"""Blend: the weights of several networks, and how much wider than they say each may be.

A process is as sure as its hyper-parameters make it, and real errors have longer tails than one
Gaussian. So the deviation of each network is multiplied by one of a set of factors, with a
probability each. All probabilities, those of networks and those of factors, are found at once by
stacking the log densities of held-out points (`stack`): the density is the scale mixture of
Gaussians that is most likely, and intervals follow from it.

Points left out in closed form were seen when the hyper-parameters were chosen. With p of them
fitted to n points, errors are smaller by a share of p/n of their variance than they would be at
other parameters, and those of new points larger by as much; so residuals are multiplied by
√((n + p) / (n - p)) first. `PRIOR` points more that are sure of the factor one keep few points from
saying otherwise.

Stacking (Yao, Vehtari, Simpson and Gelman 2018): the weights w of k predictive densities maximise
Σ_i log Σ_k w_k p_k(y_i), where p_k(y_i) is the leave-one-out density of point i. The problem is
concave. With the constraint Σ w = 1 moved into the objective (-mean log Pw + Σ w over w >= 0 has
the same solution) a step of Newton's method is a non-negative least-squares problem, and max_k of
the mean of p_k / Pw, less one, bounds how much is missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from nngp._arrays import Array
from nngp._records import Range, Shaped
from nngp.predictive.predictive import Predictive, PredictivePart
from nngp.predictive.targets import TargetScaling

TOLERANCE = 1e-9  # of the mean log density
STEPS = 100
MIN_RELATIVE_DENSITY = (
    1e-100  # density of a point over its best: the square of one over it is a number
)


def stack(log_densities: Array, counts: Array | None = None) -> Array:
    """Weights, (k,), that maximise the log density of the mixture, summed over points.

    Parameters
    ----------
    log_densities : array, (n, k)
        Of each point, left out, under each predictive density. A row may have -inf, but not alone.
    counts : array, (n,), optional
        How often each point counts.
    """
    best = log_densities.max(axis=1, keepdims=True)
    P = np.exp(log_densities - best)
    share = np.full(len(P), 1.0 / len(P)) if counts is None else counts / counts.sum()
    w = np.full(P.shape[1], 1.0 / P.shape[1])
    for _ in range(STEPS):
        A = P / (P @ w)[:, None]
        gradient = share @ A  # one on the support of the solution, less elsewhere
        if gradient.max() - 1.0 <= TOLERANCE:
            break
        w = _improved(P, share, w, _newton(A, share, gradient))
    w = np.where(w < 1e-12, 0.0, w)
    return np.asarray(w / w.sum())


def _newton(A: Array, share: Array, gradient: Array) -> Array:
    """The minimum over v >= 0 of the objective's second-order expansion."""
    H = (A * share[:, None]).T @ A
    H.flat[:: len(H) + 1] += 1e-10 * np.trace(H) / len(H)  # densities may coincide
    R = cholesky(H)
    found, _ = nnls(R, solve_triangular(R, 2 * gradient - 1.0, trans=1), maxiter=100 * len(H))
    return np.asarray(found)


def _improved(P: Array, share: Array, w: Array, v: Array) -> Array:
    """A point between w and v that is better than w; a step of EM if there is none."""
    before = float(share @ np.log(P @ w))
    step = 1.0
    while step > 1e-4:
        new = (1 - step) * w + step * v
        new /= new.sum()
        mixed = P @ new
        if mixed.min() > MIN_RELATIVE_DENSITY and float(share @ np.log(mixed)) > before:
            return np.asarray(new)
        step /= 2
    return np.asarray(w * (share @ (P / (P @ w)[:, None])))


PRIOR = 2.0  # points
RATIO = 1.12  # of factors that follow each other
NARROWEST, WIDEST, MOST = 8, 18, 60  # powers of RATIO: 0.4; 7.7 or what the residuals need; 900
NARROW, WIDE = 0.999 * RATIO**-NARROWEST, 1.001 * RATIO**MOST  # in a file
NEGLIGIBLE = 1e-6  # a weight
LARGEST_SHARE = 0.5  # of the points, to count as hyper-parameters


@dataclass(frozen=True)
class Blend:
    """Probabilities of each network with each factor of its deviation.

    Attributes
    ----------
    factors : array, (j,)
    weights : array, (networks, j)
    """

    factors: Annotated[Array, Shaped("factors"), Range(NARROW, WIDE)]
    weights: Annotated[Array, Shaped("networks", "factors"), Range(0.0, 2.0)]

    @classmethod
    def plain(cls, networks: int = 1) -> "Blend":
        """Equal weights, and deviations as they are."""
        return cls(np.ones(1), np.full((networks, 1), 1.0 / networks))

    @classmethod
    def learn(
        cls,
        residuals: Array,
        log_densities: Array,
        parameters: Sequence[int] | None = None,
        fitted: int | None = None,
    ) -> "Blend":
        """Learn from held-out points; several outputs of a point are points here.

        Parameters
        ----------
        residuals : array, (n, networks)
            Errors over the deviations that were predicted for them.
        log_densities : array, (n, networks)
            Of the targets in the units of the data, as each network predicted them.
        parameters : sequence of int, optional
            Hyper-parameters that each network was fitted with.
        fitted : int, optional
            Points that they were fitted to; n by default.
        """
        n, networks = residuals.shape
        count = n if fitted is None else min(fitted, n)
        z = residuals * _optimism(count, parameters or [0] * networks)
        factors = _factors(float(np.abs(z).max(initial=0.0)))
        wider = -0.5 * (z[..., None] / factors) ** 2 - np.log(factors)
        table = (log_densities + 0.5 * residuals**2)[..., None] + wider
        sure = np.where(factors == 1.0, 0.0, -np.inf)  # of the factor, not of the network
        rows = np.concatenate([table, np.broadcast_to(sure, (1, *table.shape[1:]))])
        flat = rows.reshape(len(rows), networks * len(factors))
        weights = stack(flat, np.append(np.ones(n), PRIOR)).reshape(networks, -1)
        return cls(factors, weights)._without_negligible()

    def predictive(
        self,
        means: Sequence[Array],
        variances: Sequence[Array],
        targets: Sequence[TargetScaling],
    ) -> Predictive:
        """The mixture of the networks' predictions, scaled as `PredictivePart` has them."""
        parts = []
        for mean, variance, scaling, weights in zip(
            means, variances, targets, self.weights, strict=True
        ):
            if (some := weights > 0).any():
                factors = self.factors[some]
                parts.append(PredictivePart(mean, variance, scaling, factors, weights[some]))
        return Predictive(parts)

    def towards_equal(self, n: int, prior: float) -> "Blend":
        """Shares of the networks that n held-out rows found, and that as many rows as the prior
        would leave equal; the factors of deviations as they are."""
        factors = self.weights.sum(axis=0)
        equal = np.broadcast_to(factors / len(self.weights), self.weights.shape)
        return Blend(self.factors, (n * self.weights + prior * equal) / (n + prior))

    def of_networks(self, which: Sequence[int]) -> "Blend":
        """Some of the networks, with weights that add up to one."""
        weights = self.weights[list(which)]
        return Blend(self.factors, weights / weights.sum())

    @property
    def network_weights(self) -> Array:
        """Weight of each network, (networks,)."""
        return np.asarray(self.weights.sum(axis=1))

    def check_saved(self) -> None:
        """Raise ValueError for weights that are no probabilities."""
        if abs(self.weights.sum() - 1) > 1e-9:
            raise ValueError("its weights of networks do not add up to one")

    def _without_negligible(self) -> "Blend":
        weights = np.where(self.weights < NEGLIGIBLE, 0.0, self.weights)
        some = weights.any(axis=0)
        return Blend(self.factors[some], weights[:, some] / weights.sum())


def _optimism(n: int, parameters: Sequence[int]) -> Array:
    share = np.minimum(np.asarray(parameters, dtype=float) / max(n, 1), LARGEST_SHARE)
    return np.asarray(np.sqrt((1 + share) / (1 - share)))


def _factors(largest: float) -> Array:
    """Powers of a ratio, one among them, up to the largest residual."""
    needed = int(np.ceil(np.log(max(largest, 1.0)) / np.log(RATIO)))
    return np.asarray(RATIO ** np.arange(-NARROWEST, min(max(WIDEST, needed), MOST) + 1.0))
