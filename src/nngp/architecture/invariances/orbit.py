"""The kernels that an invariant kernel is the average of.

With g and h drawn from the product of some families, k_G(x, x') = E[k(g x, h x')]. Of column orders
only u = g⁻¹h counts, so equal ones are collected: |G| of them where G is a group, and for shifts
from -s to s those from -2s to 2s, with triangular weights. Row functions come first and have no
such rule: every pair of them is a kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import product
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp.architecture.invariances.family import ColumnOrder, Family, RowFunction

MAX_COMPARED_NUMBERS = 2_000_000_000  # numbers in all products g⁻¹h: more take minutes to compare


class OrbitTerm(NamedTuple):
    """One kernel of the average: k(f x, u f' x') with its weight; functions by their number."""

    weight: float
    share: float  # of the two functions: the weight over that of the order
    left: int
    right: int
    order: ColumnOrder
    place: int  # of the order

    @property
    def is_same(self) -> bool:
        """Whether both inputs are transformed alike."""
        return self.left == self.right and self.order.is_identity


@dataclass(frozen=True, eq=False)
class Orbit:
    """All kernels of an average, for inputs of one number of columns.

    `functions` are applied to both inputs, a None leaves them; then `orders` to the second one.
    `slopes` are derivatives of the weights of the orders, by parameter of a family.
    """

    functions: tuple[RowFunction | None, ...]
    function_weights: Array
    orders: tuple[ColumnOrder, ...]
    order_weights: Array
    slopes: dict[str, Array]

    @property
    def has_functions(self) -> bool:
        return self.functions != (None,)

    @property
    def products(self) -> int:
        """How many matrices of inner products a kernel matrix takes."""
        return len(self.terms())

    def terms(self, *, every: bool = False) -> list[OrbitTerm]:
        """All kernels whose weight is not zero, or really all."""
        shares = np.outer(self.function_weights, self.function_weights)
        orders = list(zip(self.orders, self.order_weights, strict=True))
        found = [
            OrbitTerm(float(shares[i, j] * weight), float(shares[i, j]), i, j, order, place)
            for i, j in np.ndindex(shares.shape)
            for place, (order, weight) in enumerate(orders)
        ]
        return found if every else [term for term in found if term.weight > 0]


@lru_cache(maxsize=64)
def orbit_of(families: tuple[Family, ...], d: int) -> Orbit:
    """The orbit of inputs with d columns."""
    functions, weights = _functions([one for one in families if one.of_functions], d)
    ordered = tuple(one for one in families if not one.of_functions)
    relations = _relations(tuple(one.regular() for one in ordered), d)
    own = [one.weights for one in ordered]
    joint = _joint(own)
    slopes = {}
    for k, one in enumerate(ordered):
        for name, slope in one.slopes().items():
            moved = _joint([*own[:k], slope, *own[k + 1 :]])
            slopes[f"{one.label}.{name}"] = 2 * relations.collect(moved, joint)
    return Orbit(functions, weights, relations.orders, relations.collect(joint, joint), slopes)


def _functions(families: Sequence[Family], d: int) -> tuple[tuple[RowFunction | None, ...], Array]:
    """One function after the other, for each choice of one of every family."""
    if not families:
        return (None,), np.ones(1)
    lists = [one.elements(d) for one in families]
    composed = tuple(_Composed(chosen) for chosen in product(*lists))
    return composed, _joint([one.weights for one in families])


@dataclass(frozen=True)
class _Composed:
    functions: tuple[RowFunction, ...]

    def __call__(self, X: Array) -> Array:
        return reduce(lambda rows, function: function(rows), self.functions, X)


def _joint(weights: Sequence[Array]) -> Array:
    """Products of one weight of every family."""
    return reduce(lambda one, other: np.outer(one, other).ravel(), weights, np.ones(1))


@dataclass(frozen=True, eq=False)
class _Relations:
    """The different g⁻¹h of a family, and which one each pair (g, h) has."""

    orders: tuple[ColumnOrder, ...]
    which: NDArray[np.intp]  # (|G|, |G|)

    def collect(self, left: Array, right: Array) -> Array:
        """Weights of the orders from those of g and h, the same for an order and its inverse."""
        pairs = 0.5 * (np.outer(left, right) + np.outer(right, left))
        out: Array = np.bincount(self.which.ravel(), pairs.ravel(), len(self.orders)).astype(float)
        return out


@lru_cache(maxsize=32)
def _relations(families: tuple[Family, ...], d: int) -> _Relations:
    lists = [cast(Sequence[ColumnOrder], one.elements(d)) for one in families]
    identity = ColumnOrder(np.arange(d))
    size = int(np.prod([len(one) for one in lists], dtype=float))
    if float(size) ** 2 * d > MAX_COMPARED_NUMBERS:
        raise ValueError(
            f"these transformations are {size} in all, too many to average over both inputs; "
            "take fewer families, or shifts by fewer pixels"
        )
    group = [reduce(ColumnOrder.then, chosen, identity) for chosen in product(*lists)]
    orders: dict[bytes, int] = {}
    found: list[ColumnOrder] = []
    which = np.empty((size, size), dtype=np.intp)
    for i, g in enumerate(group):
        for j, h in enumerate(group):
            order = h.then(g.inverse)
            which[i, j] = orders.setdefault(order.key, len(found))
            if which[i, j] == len(found):
                found.append(order)
    return _Relations(tuple(found), which)
