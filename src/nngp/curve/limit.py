"""Infinite depth: the proportions of the deficits, once more layers no longer change them.

In the ordered phase a layer multiplies small deficits by chi < 1, so D vanishes with depth. But all
deficits vanish alike: with s = D(0), that of orthogonal inputs, D/s converges, to the Koenigs
function of the correlation map composed with the layers before the variance settles. So the
infinitely deep network has a kernel of its own,

    K / s -> M + offset 11ᵀ,    M = 1 - lim D/s,    offset = lim K(0)/s,

with M(1) = 1, M(0) = 0, and an offset that is infinite where the bias keeps the variance up: a
constant function with a flat prior. (Without bias the variance itself may vanish; the layers then
become linear, and the offset is finite.) In the chaotic phase and at criticality D/s tends to one
for every pair of different inputs: that kernel would know duplicates only, and is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nngp._safe import TINY
from nngp.architecture import Architecture
from nngp.curve.recursion import State, Tangents, propagate
from nngp.errors import NoLimitError, VarianceError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
MOST_LAYERS = 4000
SETTLED = 1e-14  # relative change of all deficits in all the layers to come


@dataclass(frozen=True)
class Limit:
    """Where the proportions settle: after how many layers, what is then still to come of them
    (relative), and the offset."""

    layers: int
    to_come: float
    offset: float


def find_limit(architecture: Architecture, input_var: float) -> Limit:
    """Run the recursion at some angles until D/s has converged, or is seen not to."""
    try:
        return _settle(architecture, propagate(architecture, input_var, *_probes()))
    except NoLimitError:
        raise
    except VarianceError as error:
        raise NoLimitError(f"{architecture} has no limit kernel: {error}") from None


def _settle(architecture: Architecture, states: Iterator[State]) -> Limit:
    before, last, rate = next(states), 0.0, 1.0
    for layers, state in enumerate(states, start=1):
        change, rounding = _change(before, state), 4 * (state.e_error - before.e_error)
        if not architecture.bias_var:
            change = max(change, abs(_offset(state) - _offset(before)) / (1 + _offset(state)))
        if change > 16 * rounding:  # below, what is measured is not the limit's approach
            rate = min(change / last, 1.0) if last > 0 else 1.0
        to_come = change * rate / (1 - rate) if rate < 1 else np.inf
        settled = to_come <= SETTLED or (change <= rounding and layers > 1)
        if settled and _tells_duplicates_only(state):
            raise NoLimitError(
                f"{architecture} has no limit kernel: in the chaotic phase all different inputs "
                "become equally correlated; use a finite depth or a smaller weight_var"
            )
        if settled:
            # A bias that stays, beside deficits that vanish, is infinitely larger.
            offset = np.inf if architecture.bias_var else _offset(state)
            return Limit(layers, to_come if rate < 1 else rounding, offset)
        if layers == MOST_LAYERS:
            break
        before, last = state, change
    raise NoLimitError(
        f"{architecture} is too near criticality to have a limit kernel ({MOST_LAYERS} layers "
        "still change it); use a finite depth"
    )


def in_units_of_scale(state: State, found: Limit) -> State:
    """The state that the limit is read from (its last node has c = 0): K/s, without an infinite
    offset."""
    return replace(
        state,
        variance=1.0 if found.offset == np.inf else 1.0 + found.offset,
        deficit=state.deficit / state.deficit[-1],
        variance_error=0.0,
        e_error=2 * state.e_error + found.to_come,
    )


def _probes() -> tuple[Mask, Array]:
    """Angles of either sign, from near ones to the right angle, which is the last."""
    m = np.exp2(-np.arange(50.0, -0.5, -0.5))
    return np.repeat([True, False], len(m)), np.tile(m, 2)


def in_proportion(state: State, tangents: Tangents, offset: float) -> Tangents:
    """Derivatives of D/s and of the offset, from those of D and the variance."""
    scale, shape = state.deficit[-1], state.deficit / state.deficit[-1]
    moved = tangents.deficit[:, -1:] / scale  # d log s
    deficit = tangents.deficit / scale - shape * moved
    if offset == np.inf:  # a flat prior stays flat
        variance = np.zeros_like(tangents.variance)
    else:
        variance = tangents.variance / scale - (1 + offset) * moved[:, 0]
        variance[1:] = np.inf  # any bias would make the offset infinite
    return Tangents(variance, deficit, tangents.slope / scale)


def _change(before: State, state: State) -> float:
    """Largest relative change of D/s in one layer."""
    if not (before.deficit[-1] > 0 and state.deficit[-1] > 0):
        raise VarianceError(
            "all inputs look the same to it (zero inputs, or an activation that is constant)"
        )
    shape, old = state.deficit / state.deficit[-1], before.deficit / before.deficit[-1]
    return float(np.max(np.abs(shape - old) / np.maximum(old, TINY)))


def _tells_duplicates_only(state: State) -> bool:
    """Whether even the nearest inputs are as far apart as orthogonal ones."""
    return bool(state.deficit[len(state.deficit) // 2] > 1e-3 * state.deficit[-1])


def _offset(state: State) -> float:
    """K(0)/s."""
    return float(max(state.variance / state.deficit[-1] - 1, 0.0))
