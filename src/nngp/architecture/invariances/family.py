"""A family of transformations of inputs, with a weight for each.

There are two kinds of transformations. A `ColumnOrder` moves the numbers of an input to other
columns, perhaps with another sign: it keeps inner products, so k(g x, h x') = k(x, g⁻¹h x') for
every kernel of a fully connected network. A row function is any other map of inputs, and is
applied to both inputs of a pair.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._numbers import as_real

RowFunction = Callable[[Array], Array]  # (n, d) to (n, d), row by row


@dataclass(frozen=True, eq=False)
class ColumnOrder:
    """x becomes `signs` times x[`index`]; None for signs that are all one."""

    index: NDArray[np.intp]
    signs: Array | None = None

    def __call__(self, X: Array) -> Array:
        """The rows of X, transformed."""
        out: Array = np.take(X, self.index, axis=1)
        return out if self.signs is None else out * self.signs

    def then(self, other: "ColumnOrder") -> "ColumnOrder":
        """First this, then the other."""
        return _signed(self.index[other.index], _times(other.signs, self.signs, other.index))

    @cached_property
    def inverse(self) -> "ColumnOrder":
        """The inverse transformation."""
        index = np.argsort(self.index)
        return _signed(index, None if self.signs is None else self.signs[index])

    @cached_property
    def key(self) -> bytes:
        """Equal for equal orders, and for no others."""
        signs = b"" if self.signs is None else np.signbit(self.signs).tobytes()
        return self.index.tobytes() + signs

    @property
    def is_identity(self) -> bool:
        return self.signs is None and bool((self.index == np.arange(len(self.index))).all())


def _signed(index: NDArray[np.intp], signs: Array | None) -> ColumnOrder:
    return ColumnOrder(index, None if signs is None or (signs == 1.0).all() else signs)


def _times(outer: Array | None, inner: Array | None, index: NDArray[np.intp]) -> Array | None:
    moved = None if inner is None else inner[index]
    if outer is None or moved is None:
        return moved if outer is None else outer
    return outer * moved


class Family(ABC):
    """Transformations, each with a weight; the weights sum to one. Frozen and hashable.

    `parameters` are the fields that move the weights and nothing else, such as the probability of
    a flip. They are hyper-parameters: the evidence has derivatives in them.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, float]] = {}  # by name: a value, for comparing families

    @abstractmethod
    def elements(self, d: int) -> Sequence[ColumnOrder] | Sequence[RowFunction]:
        """The transformations of inputs with d columns; ValueError if there are none."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """Their weights."""

    def slopes(self) -> dict[str, Array]:
        """Derivatives of the weights, by parameter."""
        return {}

    @property
    def label(self) -> str:
        """A name that tells it apart from other families of the same network."""
        return self.name

    @property
    def of_functions(self) -> bool:
        """Whether the transformations are row functions."""
        return False

    def regular(self) -> Self:
        """The family with the same transformations and the usual weights."""
        return replace(self, **self.parameters)  # type: ignore[type-var]

    def __repr__(self) -> str:
        """The call that makes it."""
        module = type(self).__module__.rsplit(".", 1)[-1]
        own = ((one.name, getattr(self, one.name)) for one in fields(self))  # type: ignore[arg-type]
        given = ", ".join(f"{name}={value!r}" for name, value in own if value is not None)
        return f"{module}.{self.name}({given})"

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        return {"family": self.name, **{name: _plain(value) for name, value in own.items()}}

    @property
    def details(self) -> tuple[str, ...]:
        """Words about it for a drawing of the network."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]
        shown = {name: value for name, value in own.items() if value is not None}
        return tuple(f"{name} {_shown(value)}" for name, value in shown.items())


def as_probability(value: Any) -> float:
    """A probability, checked."""
    out = as_real(value, "probability")
    if not 0 <= out <= 1:
        raise ValueError(f"probability must be between 0 and 1, got {value!r}")
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return "inf" if value == float("inf") else value


def _shown(value: Any) -> str:
    if isinstance(value, tuple) and all(isinstance(one, int) for one in value):
        return " x ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
