"""The kernel of infinite depth: the limit of the deficits divided by that of orthogonal inputs.

In the ordered phase a layer multiplies small deficits by chi < 1, so D vanishes with depth. But all
deficits vanish at the same rate: with s = D(0), that of orthogonal inputs, D/s converges, to the
Koenigs function of the correlation map composed with the layers before the variance converges. So
the infinitely deep network has a kernel,

    K / s -> M + offset 11ᵀ,    M = 1 - lim D/s,    offset = lim K(0)/s,

with M(1) = 1, M(0) = 0, and an offset that is infinite where the bias keeps the variance positive:
a constant function with a flat prior. (Without bias the variance itself may vanish; the layers then
become linear, and the offset is finite.) In the chaotic phase and at criticality D/s tends to one
for every pair of different inputs: that kernel would only distinguish duplicates from other inputs,
and `NoLimitError` is raised.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nngp._arrays import TINY, Array, Mask
from nngp.architecture import Network
from nngp.curve.deficits import LayerState, Rates, propagate
from nngp.errors import NoLimitError, VarianceError

MOST_LAYERS = 4000
CONVERGED = 1e-14  # relative change of D/s over all further layers


@dataclass(frozen=True)
class DepthLimit:
    """Convergence of D/s with depth."""

    layers: int  # after which D/s has converged
    to_come: float  # estimated relative change in all further layers
    offset: float  # lim K(0)/s


def find_limit(network: Network, input_var: float) -> DepthLimit:
    """Run the recursion at some angles until D/s has converged; NoLimitError if it does not."""
    try:
        return _converge(network, propagate(network, input_var, *_probes()))
    except NoLimitError:
        raise
    except VarianceError as error:
        raise NoLimitError(f"{network!r} has no limit kernel: {error}") from None


def _converge(network: Network, states: Iterator[LayerState]) -> DepthLimit:
    """Follow the states until D/s has converged, by extrapolating its geometric approach."""
    biased = next(network.nodes()).bias_var > 0  # type: ignore[union-attr]
    before, last, rate = next(states), 0.0, 1.0
    for layers, state in enumerate(states, start=1):
        change, rounding = _change(before, state), 4 * (state.e_error - before.e_error)
        if not biased:
            change = max(change, abs(_offset(state) - _offset(before)) / (1 + _offset(state)))
        if change > 16 * rounding:  # smaller changes are rounding, not the approach to the limit
            rate = min(change / last, 1.0) if last > 0 else 1.0
        to_come = change * rate / (1 - rate) if rate < 1 else np.inf
        converged = to_come <= CONVERGED or (change <= rounding and layers > 1)
        if converged and _tells_duplicates_only(state):
            raise NoLimitError(
                f"{network!r} has no limit kernel: in the chaotic phase all different inputs "
                "become equally correlated; use a finite depth or a smaller weight_var"
            )
        if converged:
            # K(0) tends to a positive constant and s to zero, so K(0)/s to infinity.
            offset = np.inf if biased else _offset(state)
            return DepthLimit(layers, to_come if rate < 1 else rounding, offset)
        if layers == MOST_LAYERS:
            break
        before, last = state, change
    raise NoLimitError(
        f"{network!r} is too near criticality to have a limit kernel ({MOST_LAYERS} layers "
        "still change it); use a finite depth"
    )


def in_units_of_scale(state: LayerState, found: DepthLimit) -> LayerState:
    """Divide a state by s, its deficit at the last node, which has c = 0.

    An infinite offset is left out of the variance.
    """
    return replace(
        state,
        variance=1.0 if found.offset == np.inf else 1.0 + found.offset,
        deficit=state.deficit / state.deficit[-1],
        variance_error=0.0,
        e_error=2 * state.e_error + found.to_come,
    )


def _probes() -> tuple[Mask, Array]:
    """Correlations of either sign, from nearly ±1 to 0, which is the last."""
    m = np.exp2(-np.arange(50.0, -0.5, -0.5))
    return np.repeat([True, False], len(m)), np.tile(m, 2)


def in_proportion(state: LayerState, offset: float) -> Rates:
    """Derivatives of D/s and of the offset from those of D and of the variance."""
    own, scale, shape = state.rates, state.deficit[-1], state.deficit / state.deficit[-1]
    moved = own.deficit[:, -1:] / scale  # d log s
    deficit = own.deficit / scale - shape * moved
    if offset == np.inf:  # a flat prior stays flat
        variance = np.zeros_like(own.variance)
    else:
        variance = own.variance / scale - (1 + offset) * moved[:, 0]
        variance[1:] = np.inf  # any bias would make the offset infinite
    return Rates(variance, deficit, own.slope / scale)


def _change(before: LayerState, state: LayerState) -> float:
    """Largest relative change of D/s in one layer."""
    if not (before.deficit[-1] > 0 and state.deficit[-1] > 0):
        raise VarianceError(
            "all inputs look the same to it (zero inputs, or an activation that is constant)"
        )
    shape, old = state.deficit / state.deficit[-1], before.deficit / before.deficit[-1]
    return float(np.max(np.abs(shape - old) / np.maximum(old, TINY)))


def _tells_duplicates_only(state: LayerState) -> bool:
    """Whether even nearly parallel inputs have about the deficit of orthogonal ones."""
    return bool(state.deficit[len(state.deficit) // 2] > 1e-3 * state.deficit[-1])


def _offset(state: LayerState) -> float:
    """K(0)/s."""
    return float(max(state.variance / state.deficit[-1] - 1, 0.0))
