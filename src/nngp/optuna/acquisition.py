"""Where to look next: log expected improvement with exact gradients, or Thompson sampling.

The expected improvement of a minimum on `best` is σ h(u), u = (best - μ) / σ, h(u) = φ(u) + u Φ(u).
Far from anything good it is 1e-100 and flat; its logarithm is not (Ament et al. 2023).
"""

import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from nngp._arrays import TINY, Array
from nngp.errors import NoiseWarning, ToleranceWarning
from nngp.optuna.space import SearchSpace
from nngp.optuna.surrogate import Surrogate

FAR = -1e3  # u, below which h is its first term
RANDOM, AROUND = 512, 128  # points that are looked at before gradients: anywhere, around the best
ASCENTS, STEPS, SWEEPS = 6, 40, 2
WIDTHS = (0.3, 0.1, 0.03)  # of coordinates around the best
DRAWN = 400  # points at which a function is drawn


def log_h(u: Array) -> tuple[Array, Array]:
    """log(φ(u) + u Φ(u)), and its derivative Φ/h."""
    log_phi = -0.5 * u**2 - 0.5 * np.log(2 * np.pi)
    near = np.clip(u, FAR, None)
    # Below zero Φ(u)/φ(u) = √(π/2) erfcx(-u/√2), so that h = φ (1 + u Φ/φ) without underflow.
    ratio = np.sqrt(np.pi / 2) * erfcx(-np.minimum(near, 0.0) / np.sqrt(2))
    rest = 1.0 + np.minimum(near, 0.0) * ratio
    above = np.exp(-0.5 * np.maximum(u, 0.0) ** 2) / np.sqrt(2 * np.pi) + u * ndtr(u)
    value = np.where(u > 0, np.log(np.maximum(above, TINY)), log_phi + np.log(rest))
    far = u < FAR
    value = np.where(far, log_phi - 2.0 * np.log(np.abs(np.where(far, u, 1.0))), value)
    slope = np.where(u > 0, np.exp(log_ndtr(u) - value), ratio / rest)
    return value, np.where(far, -u, slope)


def log_expected_improvement(mean: Array, variance: Array, best: float) -> Array:
    """The logarithm of E[max(best - f, 0)]."""
    deviation = np.sqrt(np.maximum(variance, TINY))
    return log_h((best - mean) / deviation)[0] + np.log(deviation)


def log_improvement_gradient(surrogate: Surrogate, Z: Array, best: float) -> tuple[Array, Array]:
    """The same at inputs, and its derivatives in them, (m, columns)."""
    mean, variance = surrogate.predict(Z)
    in_mean, in_variance = surrogate.predict_gradient(Z)
    variance = np.maximum(variance, TINY)
    deviation = np.sqrt(variance)
    u = (best - mean) / deviation
    value, slope = log_h(u)
    in_log = in_variance / (2.0 * variance)[:, None]
    in_u = -in_mean / deviation[:, None] - u[:, None] * in_log
    return value + np.log(deviation), in_log + slope[:, None] * in_u


def thompson(
    space: SearchSpace, surrogate: Surrogate, points: Array, rng: np.random.Generator
) -> Array:
    """The point at which a function that the data allow is smallest, of many."""
    some = points[rng.permutation(len(points))[:DRAWN]]
    drawn = surrogate.draw(space.inputs(some), int(rng.integers(2**31)))
    out: Array = some[int(drawn.argmin())]
    return out


def most_promising(space: SearchSpace, surrogate: Surrogate, points: Array, best: float) -> Array:
    """The point with the largest expected improvement: ascents from the best of some points, along
    gradients for numbers and level by level for what has few."""

    def score(points: Array) -> Array:
        return log_expected_improvement(*surrogate.predict(space.inputs(points)), best)

    order = np.argsort(-score(points))
    starts = points[order[:ASCENTS]]
    for _ in range(SWEEPS):
        starts = space.rounded(_climb(space, surrogate, starts, best))
        moved = _sweep(space, starts, score)
        if np.array_equal(moved, starts, equal_nan=True):
            break
        starts = moved
    every = np.vstack([starts, points[order[:ASCENTS]]])
    out: Array = every[int(np.argmax(score(every)))]
    return out


def candidate_points(space: SearchSpace, known: Array, rng: np.random.Generator) -> Array:
    """Points of a quasi-random sequence, and around good ones, the best first."""
    from scipy.stats import qmc  # slow to import

    sequence = qmc.Sobol(len(space), seed=rng)
    anywhere = space.random(sequence.random(RANDOM))
    good = known[rng.integers(min(len(known), 5), size=AROUND)].copy()
    fresh = space.random(rng.random(good.shape))
    width = rng.choice(WIDTHS, size=(AROUND, 1))
    # In many dimensions a few coordinates are moved at a time, so that most stay good.
    moved = rng.random(good.shape) < max(0.3, 3.0 / len(space)) if len(space) > 3 else True
    continuous = space.is_continuous
    step = np.where(continuous, width * rng.standard_normal(good.shape), 0.0)
    jump = np.where(continuous, good + step, np.where(rng.random(good.shape) < 0.3, fresh, good))
    around = np.where(moved, jump, good)
    around = np.where(np.isnan(around), np.nan_to_num(fresh), around)
    return np.vstack([anywhere, space.rounded(around)])


def _climb(space: SearchSpace, surrogate: Surrogate, starts: Array, best: float) -> Array:
    """Ascents of all starts at once: their sum is one function of all coordinates."""
    from scipy.optimize import minimize  # slow to import

    free = np.isfinite(starts) & space.is_continuous
    if not free.any():
        return starts

    def loss(coordinates: Array) -> tuple[float, Array]:
        points = starts.copy()
        points[free] = coordinates
        value, slope = log_improvement_gradient(surrogate, space.inputs(points), best)
        return -float(value.sum()), -space.in_points(slope)[free]

    bounds = [(0.0, 1.0)] * int(free.sum())
    options = {"maxiter": STEPS, "maxfun": 2 * STEPS}
    found = minimize(
        loss, starts[free], jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    out = starts.copy()
    out[free] = found.x
    return out


def _sweep(space: SearchSpace, starts: Array, score: Callable[[Array], Array]) -> Array:
    """For each point the best of those that differ in one parameter with few values."""
    out = starts.copy()
    for i, point in enumerate(starts):
        others = [point]
        for j, levels in enumerate(space.levels):
            if levels is None or np.isnan(point[j]):
                continue
            for level in levels:
                # What becomes active begins in the middle.
                other = np.where(np.isnan(point), 0.5, point)
                other[j] = level
                others.append(other)
        if len(others) > 1:
            tried = space.rounded(np.array(others))
            out[i] = tried[int(np.argmax(score(tried)))]
    return out


Result = TypeVar("Result")


def quietly(function: Callable[..., Result], *arguments: object) -> Result:
    """Call without warnings of noise that had to be raised: points close to each other are what a
    search ends with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        warnings.simplefilter("ignore", ToleranceWarning)
        return function(*arguments)
