"""Transformations of the columns and rows of tables, for `nngp.Invariant`."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import permutations as all_orders
from typing import Any, ClassVar

import numpy as np

from nngp._arrays import Array
from nngp._numbers import as_reals, whole_number
from nngp.architecture.invariances.family import ColumnOrder, Family, RowFunction, as_probability

MAX_EXCHANGED_BLOCKS = 6  # blocks that are exchanged in all orders: 720 of them
KINDS = ("all", "cyclic")


def permutations(blocks: Sequence[Any], *, kind: str = "all") -> Family:
    """Exchange columns, or blocks of columns: the members of a set, sensors that are alike.

    Parameters
    ----------
    blocks : sequence of int, or of sequences of int
        Columns that are interchangeable, or blocks of columns of one length that are.
    kind : {"all", "cyclic"}
        All orders of the blocks, of which there may be 6 at most, or those that move every block
        on by the same number of places.

    Examples
    --------
    >>> import nngp
    >>> pair = nngp.symmetries.permutations([[0, 1], [2, 3]])  # two points in the plane
    >>> net = nngp.Invariant(nngp.Architecture(2), pair)
    >>> K = nngp.kernel(net, [[1.0, 2.0, 3.0, 4.0], [3.0, 4.0, 1.0, 2.0]])
    >>> bool(abs(K - K[0, 0]).max() < 1e-12)
    True
    """
    return Permutations(_blocks(blocks), kind)


def signs(columns: Sequence[int] | None = None, *, probability: float = 0.5) -> Family:
    """Multiply columns by -1, all at once: functions that are even in them.

    Parameters
    ----------
    columns : sequence of int, optional
        All columns by default.
    probability : float
        Of the other sign, in the average; functions are even at 0.5.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Invariant(nngp.Architecture(2), nngp.symmetries.signs())
    >>> K = nngp.kernel(net, [[1.0, 2.0], [-1.0, -2.0]])
    >>> bool(abs(K - K[0, 0]).max() < 1e-12)
    True
    """
    chosen = None if columns is None else tuple(whole_number("a column", c, 0) for c in columns)
    return Signs(chosen, as_probability(probability))


def functions(*maps: Callable[[Array], Array], weights: Sequence[float] | None = None) -> Family:
    """Functions of rows: any transformations of your own.

    A kernel matrix takes as many products as there are pairs of transformations, as both inputs
    are transformed: (1 + number of functions)².

    Parameters
    ----------
    *maps : callable
        Each takes inputs (n, d) and gives inputs (n, d), row by row.
    weights : sequence of float, optional
        Of the inputs as they are, then of each function; equal by default.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> mirror = nngp.symmetries.functions(lambda X: X[:, ::-1])
    >>> net = nngp.Invariant(nngp.Architecture(2), mirror)
    >>> K = nngp.kernel(net, [[1.0, 2.0], [2.0, 1.0]])
    >>> bool(abs(K - K[0, 0]).max() < 1e-12)
    True
    """
    for one in maps:
        if not callable(one):
            raise TypeError(f"functions takes functions of rows, got {type(one).__name__}")
    if not maps:
        raise ValueError("functions needs at least one function of rows")
    shares = np.ones(1 + len(maps)) if weights is None else as_reals(weights, "weights")
    usable = shares.shape == (1 + len(maps),) and np.isfinite(shares).all()
    if not usable or (shares < 0).any() or not shares.sum() > 0:
        raise ValueError(
            f"weights must be {1 + len(maps)} numbers of at least 0: one for the inputs as they "
            "are, then one for each function"
        )
    return Functions(maps, tuple((shares / shares.sum()).tolist()))


@dataclass(frozen=True, repr=False)
class Permutations(Family):
    """Exchanged blocks of columns."""

    blocks: tuple[tuple[int, ...], ...]
    kind: str

    name: ClassVar[str] = "permutations"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        if self.kind == "all" and len(self.blocks) > MAX_EXCHANGED_BLOCKS:
            raise ValueError(
                f"{len(self.blocks)} blocks have {math.factorial(len(self.blocks)):,} orders, too "
                f"many to average over; use kind='cyclic', or at most {MAX_EXCHANGED_BLOCKS} blocks"
            )

    @property
    def _orders(self) -> list[tuple[int, ...]]:
        count = len(self.blocks)
        if self.kind == "all":
            return list(all_orders(range(count)))
        return [tuple((k + move) % count for k in range(count)) for move in range(count)]

    def elements(self, d: int) -> list[ColumnOrder]:
        columns = np.array(self.blocks)
        _check_columns(columns.ravel().tolist(), d)
        out = []
        for order in self._orders:
            index = np.arange(d)
            index[columns] = columns[list(order)]
            out.append(ColumnOrder(index))
        return out

    @property
    def weights(self) -> Array:
        count = len(self._orders)
        return np.full(count, 1.0 / count)

    @property
    def details(self) -> tuple[str, ...]:
        return f"{len(self.blocks)} blocks of {len(self.blocks[0])}", self.kind


@dataclass(frozen=True, repr=False)
class Signs(Family):
    """Columns times -1."""

    columns: tuple[int, ...] | None
    probability: float

    name: ClassVar[str] = "signs"
    parameters: ClassVar[dict[str, float]] = {"probability": 0.5}

    def elements(self, d: int) -> list[ColumnOrder]:
        index, turned = np.arange(d), np.ones(d)
        _check_columns(list(self.columns or ()), d)
        turned[slice(None) if self.columns is None else list(self.columns)] = -1.0
        return [ColumnOrder(index), ColumnOrder(index, turned)]

    @property
    def weights(self) -> Array:
        return np.array([1.0 - self.probability, self.probability])

    def slopes(self) -> dict[str, Array]:
        return {"probability": np.array([-1.0, 1.0])}


@dataclass(frozen=True, repr=False)
class Functions(Family):
    """Functions of rows that a user wrote."""

    maps: tuple[RowFunction, ...]
    shares: tuple[float, ...] = field(default=())

    name: ClassVar[str] = "functions"

    @property
    def of_functions(self) -> bool:
        return True

    def elements(self, d: int) -> list[RowFunction]:
        return [as_they_are, *(CheckedFunction(one) for one in self.maps)]

    @property
    def weights(self) -> Array:
        return np.array(self.shares)

    def as_dict(self) -> dict[str, Any]:
        raise ValueError(
            "functions of your own cannot be saved; save the data, and make the model again from "
            "the same functions"
        )

    def __repr__(self) -> str:
        return f"symmetries.functions({', '.join(self.details)}, weights={list(self.shares)})"

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(getattr(one, "__name__", type(one).__name__) for one in self.maps)


def as_they_are(X: Array) -> Array:
    """Rows that are not changed."""
    return X


@dataclass(frozen=True)
class CheckedFunction:
    """A user's function, whose results are looked at."""

    function: RowFunction

    def __call__(self, X: Array) -> Array:
        out = as_reals(self.function(X.copy()), "what a function of rows gave")
        name = getattr(self.function, "__name__", type(self.function).__name__)
        if out.shape != X.shape:
            raise ValueError(
                f"the function {name} of rows gave an array of shape {out.shape} for inputs of "
                f"shape {X.shape}; it must keep the shape"
            )
        if not np.isfinite(out).all():
            raise ValueError(
                f"the function {name} of rows gave values that are not finite; it must give "
                "numbers for every row"
            )
        return np.ascontiguousarray(out)


def _blocks(blocks: Any) -> tuple[tuple[int, ...], ...]:
    try:
        sets = [[one] if np.ndim(one) == 0 else list(one) for one in blocks]
    except TypeError:
        sets = []
    out = tuple(tuple(whole_number("a column", c, 0) for c in one) for one in sets)
    columns = [column for one in out for column in one]
    if len(out) < 2 or not columns or len({len(one) for one in out}) > 1:
        raise ValueError(
            "blocks must be two or more columns, or blocks of columns of one length, got "
            f"{blocks!r}"
        )
    if len(set(columns)) < len(columns):
        raise ValueError("blocks must not share columns")
    return out


def _check_columns(columns: Sequence[int], d: int) -> None:
    if max(columns, default=0) >= d:
        raise ValueError(f"column {max(columns)} is to be transformed, and X has {d} columns")
