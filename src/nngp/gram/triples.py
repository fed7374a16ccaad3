"""A network on triples (q, q', K): the walk for inputs of any norms.

A `Triple` has the variances of the rows, those of the columns, and the covariances of the pairs, as
arrays that broadcast against each other: scalars for one pair, a column, a row and a matrix for a
block. The six operations of `architecture/walk.py` act on the three alike, over NumPy or JAX. A
triple without columns and pairs is the diagonal: it gives the variances of every point.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from nngp._arrays import EPS, Array, Floats, Namespace
from nngp._safe import correlation
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Affine, Node
from nngp.architecture.walk import Number, Pair, RangeCheck, output, walk
from nngp.covariance import closed_form, derivative_of, second_moment
from nngp.curve import SMALLEST
from nngp.errors import VarianceError

SNAP = 1 - 8 * EPS  # correlations beyond are those of parallel inputs


class Triple(NamedTuple):
    """Variances of the rows, variances of the columns, covariances of the pairs."""

    rows: Any
    columns: Any = None
    cov: Any = None


class Layer(Protocol):
    """E[phi(u) phi(v)] as a function of (q, q', K), and E[phi²] as one of the variance."""

    @property
    def variance(self) -> Callable[[Any], Any]: ...

    @property
    def covariance(self) -> Callable[[Any, Any, Any], Any]: ...


class Triples:
    """The operations of a walk on triples. `value` and `slope` give the layers of phi and phi'."""

    def __init__(
        self, xp: Namespace, value: Callable[[Activation], Layer], slope: Callable[..., Layer]
    ) -> None:
        self._xp, self._value, self._slope = xp, value, slope

    def mix(self, weights: Sequence[Number], states: Sequence[Triple], constant: Number) -> Triple:
        return _each(lambda *parts: mixture(weights, parts, constant), *states)

    def times(self, one: Triple, other: Triple) -> Triple:
        return _each(lambda a, b: a * b, one, other)

    def dual(self, phi: Activation, state: Triple) -> Triple:
        return _through(self._value(phi), state)

    def slope(self, phi: Activation, state: Triple) -> Triple:
        return _through(self._slope(phi), state)

    def normalise(self, state: Triple, by: Triple) -> Triple:
        roots = _each(self._xp.sqrt, Triple(by.rows, by.columns))
        scales = Triple(by.rows, by.columns, None if by.cov is None else roots.rows * roots.columns)
        return _each(lambda a, b: a / b, state, scales)

    def mask(self, state: Triple, keep: float) -> Triple:
        more = _each(lambda q: q / keep, Triple(state.rows, state.columns))
        return more._replace(cov=state.cov)


def mixture(weights: Sequence[Number], parts: Sequence[Any], constant: Number) -> Any:
    """constant + Σ w x. Ones and zeros cost nothing: an array is large beside a number."""
    scaled = [_scaled(weight, part) for weight, part in zip(weights, parts, strict=True)]
    total = scaled[0]
    if not _is(constant, 0.0):
        total = constant + total
    for part in scaled[1:]:
        total = total + part
    return total


def _scaled(weight: Number, part: Any) -> Any:
    return part if _is(weight, 1.0) else weight * part


def _is(number: Number, value: float) -> bool:
    return isinstance(number, float) and number == value


def _each(rule: Callable[..., Any], *triples: Triple) -> Triple:
    """A rule for rows, columns and pairs; what a triple lacks stays absent."""
    parts = zip(*triples, strict=True)
    return Triple(*(None if some[0] is None else rule(*some) for some in parts))


def _through(layer: Layer, state: Triple) -> Triple:
    own = _each(layer.variance, Triple(state.rows, state.columns))
    return own if state.cov is None else own._replace(cov=layer.covariance(*state))


class _Moments(NamedTuple):
    """A layer of which only the variances are wanted."""

    variance: Callable[[Array], Array]
    covariance: Any = None


class Variances(Triples):
    """The operations on variances of many points, which find integrals where no form is known."""

    def __init__(self) -> None:
        super().__init__(
            np,
            lambda phi: _Moments(lambda var: moments(phi, var)),
            lambda phi: _Moments(lambda var: slope_moments(phi, var)),
        )

    def normalise(self, state: Triple, by: Triple) -> Triple:
        if np.any(by.rows == 0):
            raise VarianceError(
                "layer norm divides by the variance of the units, and it is zero; give the "
                "nngp.Dense before it a bias_var, or leave inputs of zeros out"
            )
        return super().normalise(state, by)


def _variance_steps(
    network: Network, input_var: Array, operations: Variances | None
) -> Iterator[tuple[Node, Pair[Triple]]]:
    """Yield every node with K(x, x), and Θ(x, x) of a tangent kernel, of every point."""
    check = RangeCheck(input_var, _check_range)
    for node, states in walk(network, operations or Variances(), Triple(input_var)):
        check(node, states.cov.rows)
        yield node, states


def output_variances(
    network: Network, input_var: Array, operations: "Variances | None" = None
) -> Array:
    """The kernel of every input with itself."""
    with np.errstate(over="ignore"):
        out: Array = output(_variance_steps(network, input_var, operations)).rows
    return out


def layer_variances(network: Network, input_var: Array) -> list[Array]:
    """K^l(x, x) of every point behind each affine map."""
    with np.errstate(over="ignore"):
        steps = _variance_steps(network, input_var, None)
        return [states.cov.rows for node, states in steps if isinstance(node, Affine)]


def moments(phi: Activation, var: Array) -> Array:
    """E[phi²] at each variance."""
    if phi.closed_form is None:
        return second_moment(phi, var)
    form = closed_form(phi.closed_form)
    return np.asarray(form.value(np, var, var, np.where(var > 0, 1.0, 0.0)))


def slope_moments(phi: Activation, var: Array) -> Array:
    """E[phi'²] at each variance."""
    return moments(derivative_of(phi, float(var.max(initial=1e-300))), var)


def _check_range(var: Array, layer: int, before: Array) -> None:
    """Raise VarianceError outside the range of float64, unless a variance is 0 all along."""
    lost = (var < SMALLEST) & (before > 0) | ~np.isfinite(var)
    if lost.any():
        remedy = "use a smaller depth, or a weight_var nearer to where the variance stays put"
        raise VarianceError(
            f"the variance of layer {layer} is {var[lost][0]:.3g} for input "
            f"{int(np.argmax(lost))}, past the range of float64; "
            f"{remedy if layer else 'rescale the inputs, or use another weight_var'}"
        )


def snapped_correlation(xp: Namespace, cov: Floats, q1: Floats, q2: Floats) -> Floats:
    """The correlation, exactly ±1 for parallel inputs: rounding alone keeps them from it, and an
    activation that jumps would see the root of that."""
    corr = correlation(xp, cov, q1, q2)
    return xp.where(xp.abs(corr) > SNAP, xp.sign(corr), corr)
