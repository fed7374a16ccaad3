"""Preconditioned conjugate gradients for B X = Y, all right-hand sides at once.

The vectors are rows of host arrays (s, n); what is large, the product with B and that with P⁻¹, is
done on an engine. Each row has scalars of its own, and a converged row is no longer moved. A
direction is made conjugate to the last with β = z₁ᵀ(r₁ - r₀)/r₀ᵀz₀, which forgives a preconditioner
that rounds; as the step took a q from r, with q = B p, that is -a qᵀz₁/r₀ᵀz₀.

Convergence is judged on the recomputed residual, not on the recurrence's. Where the two differ, the
iteration goes on from the recomputed one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Mask
from nngp.errors import NotConvergedError, NotPositiveDefiniteError

RESTARTS = 5
GAIN = 4.0  # by which a restart must lessen the residual, or rounding is all that is left of it


@dataclass
class CGState:
    """The state of an iteration: solutions, residuals, directions, and rᵀz of each row."""

    x: Array
    r: Array
    p: Array
    rz: Array
    iteration: int = 0

    @property
    def residual(self) -> Array:
        return norms(self.r)


class RowSolutions(NamedTuple):
    """X, the iterations it took, the largest relative residual, and the residuals themselves, both
    recomputed."""

    x: Array
    iterations: int
    residual: float
    missed: Array

    def forms(self, right: Array) -> Array:
        """yᵀB⁻¹y of every row, less |x - B⁻¹y|² in the norm of B: never too large."""
        return _dots(self.x, right + self.missed)


Map = Callable[[Array], Array]


def conjugate_gradients(
    product: Map,
    precondition: Map,
    right: Array,
    *,
    tolerance: float,
    max_iterations: int,
    start: Array | None = None,
    state: CGState | None = None,
    told: Callable[[CGState, float], None] = lambda state, residual: None,
) -> RowSolutions:
    """The rows of X from those of `right`; from `start`, or from the `state` of an earlier call.

    `told` is called after every iteration with the state, which is never changed afterwards, and
    the largest relative residual. Raises `NotConvergedError`, or `NotPositiveDefiniteError` where
    a direction has pᵀBp <= 0.
    """
    sizes = norms(right)
    sizes = np.where(sizes > 0, sizes, 1.0)
    state = state or _begin(product, precondition, right, start)
    best = np.inf
    for _ in range(RESTARTS):
        state = _iterate(product, precondition, state, sizes, tolerance, max_iterations, told)
        missed = right - product(state.x)
        residual = float((norms(missed) / sizes).max())
        if residual <= tolerance:
            return RowSolutions(state.x, state.iteration, residual, missed)
        if state.iteration >= max_iterations or not residual < best / GAIN:
            break
        best = residual
        state = _from(precondition, state.x, missed, state.iteration)
    raise _missed(state.iteration, residual, tolerance, max_iterations)


def norms(rows: Array) -> Array:
    return np.sqrt(_dots(rows, rows))


def _dots(a: Array, b: Array) -> Array:
    return np.einsum("ij,ij->i", a, b)


def _begin(product: Map, precondition: Map, right: Array, start: Array | None) -> CGState:
    if start is None:
        return _from(precondition, np.zeros_like(right), right, 0)
    return _from(precondition, start, right - product(start), 0)


def _from(precondition: Map, x: Array, r: Array, iteration: int) -> CGState:
    z = precondition(r)
    return CGState(x, r, z, _dots(r, z), iteration)


def _iterate(
    product: Map,
    precondition: Map,
    state: CGState,
    sizes: Array,
    tolerance: float,
    max_iterations: int,
    told: Callable[[CGState, float], None],
) -> CGState:
    """Iterate until all rows have converged by the recurrence, or no iterations are left."""
    residual = state.residual / sizes
    while not (residual <= tolerance).all() and state.iteration < max_iterations:
        state = _step(product, precondition, state, residual > tolerance)
        residual = state.residual / sizes
        if not np.isfinite(residual).all():
            raise _missed(state.iteration, float("nan"), tolerance, max_iterations)
        told(state, float(residual.max()))
    return state


def _step(product: Map, precondition: Map, old: CGState, moving: Mask) -> CGState:
    """One step of the rows that move. Nothing of `old` is changed: it may yet be written down."""
    q = product(old.p)
    curvature = _dots(old.p, q)
    if (moving & (curvature <= 0)).any():
        raise NotPositiveDefiniteError("a direction of conjugate gradients has no positive length")
    a = np.where(moving, old.rz / np.where(moving, curvature, 1.0), 0.0)[:, None]
    with np.errstate(invalid="ignore", over="ignore"):  # the caller notices
        x, r = old.x + a * old.p, old.r - a * q
    z = precondition(r)
    rz = np.where(moving, _dots(r, z), old.rz)
    b = -a * (_dots(q, z) / np.where(old.rz != 0, old.rz, 1.0))[:, None]
    p = np.where(moving[:, None], z + b * old.p, old.p)
    return CGState(x, r, p, rz, old.iteration + 1)


def _missed(
    iterations: int, residual: float, tolerance: float, max_iterations: int
) -> NotConvergedError:
    if not np.isfinite(residual):
        remedy = "something became too large for float64: rescale the network or the targets"
    elif residual >= 1:
        remedy = "the matrix is nearly singular: pass a larger noise_var"
    elif iterations >= max_iterations:
        remedy = "allow more with max_iterations, or pass a larger noise_var or rank"
    else:
        remedy = "rounding allows no more: ask for a larger tolerance, or pass a larger noise_var"
    error = NotConvergedError(
        f"conjugate gradients reached a relative residual of {residual:.1e} in {iterations} "
        f"iterations and {tolerance:.1e} was asked for; {remedy}"
    )
    error.iterations, error.residual = iterations, residual
    return error
