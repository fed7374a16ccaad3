"""A network on triples (q, q', K): the walk for inputs of any norms.

A `Triple` has the variances of the rows, those of the columns, and the covariances of the pairs, as
arrays that broadcast against each other: scalars for one pair, a column, a row and a matrix for a
block. The six operations of `architecture/walk.py` act on the three alike, over NumPy or JAX. A
triple without columns and pairs is the diagonal: it gives the variances of every point.

Where units have positions in an image, each of the three is `Planes`: arrays with two more axes in
front (`architecture/planes.py`). The rows then are the covariances of an input with itself, whose
plane of offset 0 has the variances.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from nngp._arrays import EPS, Array, Floats, Namespace
from nngp._safe import correlation
from nngp._threads import in_threads
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Node, Windowed
from nngp.architecture.planes import Axis, AxisWindow, PlanePlan
from nngp.architecture.walk import Number, Pair, RangeCheck, output, walk
from nngp.covariance import closed_form, derivative_of, layer_covariance, second_moment
from nngp.curve import SMALLEST, negative_variance
from nngp.errors import VarianceError
from nngp.gram.inputs import InputSet

OWN = 128  # images whose own values are computed at a time
SNAP = 1 - 8 * EPS  # correlations beyond are those of parallel inputs


class Triple(NamedTuple):
    """Variances of the rows, variances of the columns, covariances of the pairs."""

    rows: Any
    columns: Any = None
    cov: Any = None


class Planes:
    """Covariances of pairs of positions, for one or many pairs of inputs.

    The first axis of `values` has an entry for each offset and position along the height of the
    image, the second likewise for the width; pairs of inputs come last.
    """

    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to this class

    def __init__(self, values: Any, height: Axis, width: Axis) -> None:
        self.values, self.height, self.width = values, height, width

    @property
    def is_plain(self) -> bool:
        """Whether there is one plane."""
        return self.height.is_plain and self.width.is_plain

    @property
    def first(self) -> Any:
        """The plane of offset 0."""
        return self.values[: self.height.size, : self.width.size]

    def own(self, plane: Any) -> Any:
        """One number for each position, at the position p of every entry."""
        return plane if self.is_plain else plane[self.height.own][:, self.width.own]

    def partner(self, plane: Any) -> Any:
        """One number for each position, at the position p' of every entry."""
        return plane if self.is_plain else plane[self.height.partner][:, self.width.partner]

    def like(self, values: Any) -> "Planes":
        """Other values at the same entries."""
        return Planes(values, self.height, self.width)

    def with_first(self, plane: Any) -> "Planes":
        """Other values at offset 0."""
        if self.is_plain:
            return self.like(plane)
        h, w = self.height.size, self.width.size
        if isinstance(self.values, np.ndarray):
            values = self.values.copy()
            values[:h, :w] = plane
            return self.like(values)
        return self.like(self.values.at[:h, :w].set(plane))

    def with_planes(self, height: Axis, width: Axis) -> Any:
        """The values of some of the planes."""
        values = self.values
        if height != self.height:
            values = values[self.height.restricted(height.offsets)]
        if width != self.width:
            values = values[:, self.width.restricted(width.offsets)]
        return values

    def __add__(self, other: Any) -> "Planes":
        return self._with(other, lambda a, b: a + b)

    def __mul__(self, other: Any) -> "Planes":
        return self._with(other, lambda a, b: a * b)

    __radd__, __rmul__ = __add__, __mul__

    def _with(self, other: Any, rule: Callable[[Any, Any], Any]) -> "Planes":
        """A rule for numbers, or for the planes that both have."""
        if not isinstance(other, Planes):
            return self.like(rule(self.values, other))
        axes = self.height.shared(other.height), self.width.shared(other.width)
        return Planes(rule(self.with_planes(*axes), other.with_planes(*axes)), *axes)


def image_planes(plan: PlanePlan, left: Any, right: Any) -> Planes:
    """The covariances of pixels, from images (height, width, channels, ...) that broadcast."""
    empty = Planes(None, plan.height, plan.width)
    parts = (empty.own(left[:, :, c]) * empty.partner(right[:, :, c]) for c in range(plan.channels))
    total = next(parts)
    for part in parts:
        total = total + part
    return empty.like(total / plan.channels)


def windowed(xp: Namespace, state: Planes, node: Windowed) -> Any:
    """Means over windows: `Planes`, or plain arrays where the window is the whole image."""
    if node.kind == "image":
        return state
    if node.window is None:
        return (state.first if node.kind == "flat" else state.values).mean(axis=(0, 1))
    down = AxisWindow.of(node, 0, state.height.size)
    across = AxisWindow.of(node, 1, state.width.size)
    values = _sums(xp, state.values, 0, state.height, down)
    values = _sums(xp, values, 1, state.width, across)
    weight = down.weight * across.weight
    if weight != 1.0:
        values = values * weight
    return Planes(values, down.behind(state.height), across.behind(state.width))


def _sums(xp: Namespace, values: Any, axis: int, before: Axis, window: AxisWindow) -> Any:
    """Sums over a window along one axis. Every sum adds the same few numbers in one order, so equal
    pixels have equal sums, whatever is elsewhere in the images."""
    if window.window == 1 and window.stride == 1:
        return values
    if before.is_plain and not window.mean:
        return _plain_sums(xp, values, axis, window)
    total = None
    for entries in window.sources(before):
        part = xp.take(values, np.maximum(entries, 0), axis=axis)
        outside = entries < 0
        if outside.any():
            inside = ~outside.reshape(outside.shape + (1,) * (part.ndim - 1 - axis))
            part = part * inside
        total = part if total is None else total + part
    return total


def _plain_sums(xp: Namespace, values: Any, axis: int, window: AxisWindow) -> Any:
    """Of the plane of offset 0: shifted copies of the padded array."""
    values = _padded(xp, values, axis, window)
    reach, total = (window.out - 1) * window.stride + 1, None
    for start in range(window.window):
        part = values[(slice(None),) * axis + (slice(start, start + reach, window.stride),)]
        total = part if total is None else total + part
    return total


def _padded(xp: Namespace, values: Any, axis: int, window: AxisWindow) -> Any:
    if window.low == 0 and window.high == 0:
        return values
    if window.padding == "circular":
        index = np.arange(-window.low, window.size + window.high) % window.size
        return xp.take(values, index, axis=axis)
    shape = values.shape
    zeros = [
        xp.zeros((*shape[:axis], count, *shape[axis + 1 :]), dtype=values.dtype)
        for count in (window.low, window.high)
    ]
    return xp.concatenate([zeros[0], values, zeros[1]], axis=axis)


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
        if isinstance(by.rows, Planes):
            roots = _each(lambda q: self._xp.sqrt(q.first), Triple(by.rows, by.columns))
            return _of_pairs(state, roots, lambda part, a, b: part.values / (a * b))
        roots = _each(self._xp.sqrt, Triple(by.rows, by.columns))
        scales = Triple(by.rows, by.columns, None if by.cov is None else roots.rows * roots.columns)
        return _each(lambda a, b: a / b, state, scales)

    def mask(self, state: Triple, keep: float) -> Triple:
        def own(q: Any) -> Any:  # masks of two positions are independent too
            return q.with_first(q.first / keep) if isinstance(q, Planes) else q / keep

        return _each(own, Triple(state.rows, state.columns))._replace(cov=state.cov)

    def window(self, state: Triple, node: Windowed) -> Triple:
        return _each(lambda part: windowed(self._xp, part, node), state)


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


def _of_pairs(state: Triple, each: Triple, rule: Callable[[Planes, Any, Any], Any]) -> Triple:
    """A rule of planes and of something that the inputs of a pair have at each position; rows and
    columns are pairs of an input with itself."""
    sides = Triple((each.rows, each.rows), (each.columns, each.columns), (each.rows, each.columns))

    def values(part: Planes, side: tuple[Any, Any]) -> Planes:
        return part.like(rule(part, part.own(side[0]), part.partner(side[1])))

    return Triple(
        *(
            None if part is None else values(part, side)
            for part, side in zip(state, sides, strict=True)
        )
    )


def _through_planes(layer: Layer, state: Triple) -> Triple:
    variances = _each(lambda q: q.first, Triple(state.rows, state.columns))
    own = _each(layer.variance, variances)
    if state.cov is None and state.rows.is_plain:
        return _each(state.rows.like, own)
    moved = _of_pairs(state, variances, lambda part, q1, q2: layer.covariance(q1, q2, part.values))
    exact = _each(lambda part, first: part.with_first(first), moved._replace(cov=None), own)
    return exact._replace(cov=moved.cov)


def _through(layer: Layer, state: Triple) -> Triple:
    if isinstance(state.rows, Planes):
        return _through_planes(layer, state)
    own = _each(layer.variance, Triple(state.rows, state.columns))
    return own if state.cov is None else own._replace(cov=layer.covariance(*state))


class _Moments(NamedTuple):
    """A layer in NumPy; covariances are those of an image's positions with each other."""

    variance: Callable[[Array], Array]
    covariance: Callable[[Array, Array, Array], Array]


def _by_position(rule: Callable[..., Array], phi: Activation) -> Callable[[Array], Array]:
    return lambda var: rule(phi, var.ravel()).reshape(var.shape)


class Variances(Triples):
    """The operations on variances of many points, which find integrals where no form is known."""

    def __init__(self) -> None:
        super().__init__(
            np,
            lambda phi: _Moments(_by_position(moments, phi), partial(covariances, phi)),
            lambda phi: _Moments(_by_position(slope_moments, phi), partial(slopes, phi)),
        )

    def normalise(self, state: Triple, by: Triple) -> Triple:
        if np.any((by.rows.first if isinstance(by.rows, Planes) else by.rows) == 0):
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


def own_variances(network: Network, inputs: InputSet) -> Array:
    """The kernel of every input with itself, from x·x/d or from the images."""
    plan = network.planes
    if plan is None:
        return output_variances(network, inputs.var)
    X = np.asarray(inputs)
    plan.check_columns(X.shape[1])

    def values(some: slice) -> Array:
        return image_variances(network, as_images(plan, X[some]))

    return np.concatenate(
        in_threads(values, [slice(start, start + OWN) for start in range(0, len(X), OWN)])
    )


def moments(phi: Activation, var: Array) -> Array:
    """E[phi²] at each variance."""
    if phi.closed_form is None:
        return second_moment(phi, var)
    form = closed_form(phi.closed_form)
    return np.asarray(form.value(np, var, var, np.where(var > 0, 1.0, 0.0)))


def slope_moments(phi: Activation, var: Array) -> Array:
    """E[phi'²] at each variance."""
    return moments(derivative_of(phi, float(var.max(initial=1e-300))), var)


def covariances(phi: Activation, q1: Array, q2: Array, cov: Array) -> Array:
    """E[phi(u) phi(v)], elementwise."""
    return layer_covariance(phi, q1, q2, snapped_correlation(np, cov, q1, q2))


def slopes(phi: Activation, q1: Array, q2: Array, cov: Array) -> Array:
    """E[phi'(u) phi'(v)], elementwise."""
    if phi.closed_form is not None:
        corr = snapped_correlation(np, cov, q1, q2)
        return np.asarray(closed_form(phi.closed_form).slope(np, q1, q2, corr))
    slope = derivative_of(phi, float(max(q1.max(), q2.max(), 1e-300)))
    return covariances(slope, q1, q2, cov)


def image_variances(
    network: Network, images: Array, operations: "Variances | None" = None
) -> Array:
    """The kernel of every image with itself; images are (height, width, channels, n)."""
    plan = network.planes
    assert plan is not None
    inputs = Triple(image_planes(plan, images, images))
    with np.errstate(over="ignore", invalid="ignore"):
        out: Array = output(walk(network, operations or Variances(), inputs)).rows
    _check_range(out, len(network.weight_vars), np.zeros_like(out))
    return out


def as_images(plan: PlanePlan, X: Array) -> Array:
    """Rows as images (height, width, channels, n)."""
    shape = plan.height.size, plan.width.size, plan.channels
    return np.ascontiguousarray(X.T).reshape(*shape, len(X))


def _check_range(var: Array, layer: int, before: Array) -> None:
    """Raise VarianceError outside the range of float64, unless a variance is 0 all along."""
    lost = (var < SMALLEST) & (before > 0) | ~np.isfinite(var)
    if (var < 0).any():
        raise VarianceError(negative_variance(f"layer {layer}", float(var.min())))
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
