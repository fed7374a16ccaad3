"""Sums Σ G dK/dθ of kernels that are averaged over transformations, in host memory.

θ are the variances of the network, and the parameters of the families: a kernel is Σ v_u K_u over
orders u, so its derivative in a parameter is Σ dv_u/dθ K_u, and the sums Σ G K_u are all that is
needed.
"""

import threading

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Invariant
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.gram.host.gradient import CurveGradient
from nngp.gram.host.invariant import InvariantMatrix
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient, GradientRequest
from nngp.gram.orbit_inputs import cut
from nngp.gram.sensitivities import CurveSensitivities, by_name


def check_request(request: GradientRequest) -> Invariant:
    """The network of a request, if its derivatives are known; ValueError otherwise."""
    assert isinstance(request.architecture, Invariant)
    if request.per_input:
        raise ValueError(
            "derivatives in the inputs (per_input=True) are not available for an nngp.Invariant; "
            "take those of its network"
        )
    return request.architecture


class InvariantGradient:
    """`GradientSums` of an `Invariant` network."""

    def __init__(
        self, request: GradientRequest, inputs: Inputs, sensitivities: CurveSensitivities | None
    ) -> None:
        network = check_request(request)
        self._request, self._sensitivities = request, sensitivities
        self._matrix = InvariantMatrix(network, inputs, split=request.split)
        self._orbit = self._matrix.orbit
        self._terms = self._orbit.terms(every=bool(self._orbit.slopes))
        self._by_order = np.zeros(len(self._orbit.orders))
        self._total: Array | float = 0.0
        self._lock = threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        G = np.asarray(G)
        by_order, total = np.zeros_like(self._by_order), np.zeros(1)
        for term in self._terms:
            if term.weight > 0:
                total = total + term.weight * self._in_variances(term, G, rows, columns)
            if self._orbit.slopes:
                values = self._matrix.term_block(term, rows, columns)
                by_order[term.place] += term.share * np.vdot(G, values)
        with self._lock:
            self._by_order += by_order
            self._total = self._total + total

    def _in_variances(self, term: OrbitTerm, G: Array, rows: slice, columns: slice) -> Array:
        """Sums over one block for the weight variances, then the bias variances."""
        lefts, rights = self._matrix.lefts, self._matrix.rights
        if term.is_same:
            return self._sums(lefts[term.left], None, G, rows, columns)
        left, right = cut(lefts[term.left], rows), cut(rights[term.right], columns)
        moved = Inputs(term.order(right.X), right.var)
        here = slice(0, len(left)), slice(0, len(right))
        return self._sums(left, moved, G, *here)

    def _sums(
        self, left: Inputs, right: Inputs | None, G: Array, rows: slice, columns: slice
    ) -> Array:
        if self._sensitivities is not None:
            return CurveGradient(self._sensitivities, left, right).sums(G, rows, columns)
        if right is not None:  # its gradient knows one set of inputs
            columns = slice(len(left) + columns.start, len(left) + columns.stop)
            left = left.joined(right)
        request = self._request
        pairs = PairwiseGradient(
            request.architecture.base, left, request.per_layer, False, request.split
        )
        pairs.contract(G, rows, columns)
        found = pairs.result(0.0)
        return np.concatenate([np.atleast_1d(found[name]) for name in ("weight_var", "bias_var")])

    def result(self, sum_of_all: float) -> Gradient:
        return finished(
            self._request, self._sensitivities, np.asarray(self._total), self._by_order, sum_of_all
        )


def finished(
    request: GradientRequest,
    sensitivities: CurveSensitivities | None,
    total: Array,
    by_order: Array,
    sum_of_all: float,
) -> Gradient:
    """The sums by parameter: of the network, then of its families."""
    network = check_request(request)
    if sensitivities is not None:
        out = sensitivities.by_parameter(total, sum_of_all)
    else:
        out = by_name(total, request.per_layer)
    slopes = network.orbit(request.inputs.shape[1]).slopes
    return {**out, **{name: float(slope @ by_order) for name, slope in slopes.items()}}
