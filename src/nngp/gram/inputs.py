"""The data as the kernel sees it: checked, in float64, with its norms, and as the row functions of
an average leave it.

Takes whatever the user calls data; gives an array (n, d) and the input variances x·x/d.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array, Index
from nngp._checksums import checksums
from nngp._digest import digest
from nngp._numbers import as_reals
from nngp._threads import by_rows
from nngp.architecture import Invariant, Network, average_of

COPIED = 32_000_000  # bytes up to which inputs are copied to keep them
AT_ONCE = 2**17  # numbers that are squared before they are summed
EQUAL = 256 * float(np.finfo(np.float64).eps)  # relative spread of norms that rounding explains


def as_inputs(X: ArrayLike, name: str = "X", first: int = 0) -> Array:
    """X as a finite float64 array (n, d). The rows are numbered from `first` on."""
    out = as_reals(X, name)
    shape = out.shape
    if out.ndim == 1:
        raise ValueError(
            f"{name} must be two-dimensional (points, features), got a one-dimensional array; use "
            f"{name}.reshape(-1, 1) for points of one feature, {name}.reshape(1, -1) for one point"
        )
    if out.ndim == 0:
        raise ValueError(f"{name} must hold points, got a single number; use [{name}]")
    if out.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (points, features), got shape {shape}; flatten "
            f"images with {name}.reshape(len({name}), -1)"
        )
    if out.shape[0] == 0 or out.shape[1] == 0:
        raise ValueError(f"{name} is empty: its shape is {out.shape}")
    # A sum is not finite if a number is not, and needs no array of flags. (No BLAS here: its
    # threads would spin on while the kernel is computed.)
    if not np.isfinite(_sum(out)) and not np.isfinite(out).all():
        row, column = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(
            f"{name} holds {out[row, column]} (row {first + row}, column {column}); drop or "
            "impute such values first"
        )
    return np.ascontiguousarray(out)


def _sum(X: Array) -> float:
    return sum(by_rows(_sum_of, X))


def _sum_of(X: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(X.sum())


def normalize(X: ArrayLike, center: bool = False) -> Array:
    """Scale every input to x·x/d = 1, so that all share one norm (paper, sec. 2.5).

    Parameters
    ----------
    X : array_like, (n, d)
    center : bool
        First subtract each input's own mean, as the authors' code does.

    Examples
    --------
    >>> import nngp
    >>> nngp.normalize([[3.0, 4.0]]).round(6).tolist()
    [[0.848528, 1.131371]]
    """
    out = as_inputs(X).copy()
    out /= np.maximum(np.abs(out).max(axis=1, keepdims=True), np.finfo(float).tiny)
    if center:
        size = np.abs(out).max(axis=1)
        out -= out.mean(axis=1, keepdims=True)
        vanished = np.abs(out).max(axis=1) <= 16 * np.finfo(float).eps * size
    else:
        vanished = ~out.any(axis=1)
    if vanished.any():
        kind = "constant" if center else "zero"
        raise ValueError(
            f"row {int(np.argmax(vanished))} is {kind}, so it has no direction to normalize; "
            f"remove the {int(vanished.sum())} such row(s) or add a constant feature"
        )
    out *= 1.0 / np.sqrt(input_vars(out))[:, None]
    return out * (1.0 / np.sqrt(input_vars(out)))[:, None]  # once more: the last bit


def input_vars(X: Array) -> Array:
    """x·x/d of every row. NumPy's sums are pairwise, einsum's are not: over thousands of features
    those would leave norms apart that are equal."""
    found = by_rows(_sums_of_squares, X)
    out = np.concatenate(found) if len(X) else np.empty(0)
    out /= X.shape[1]
    if not np.isfinite(out).all():
        raise ValueError("X holds numbers so large that x·x overflows; rescale it first")
    return out


def _sums_of_squares(X: Array) -> Array:
    out, rows = np.empty(len(X)), max(1, AT_ONCE // X.shape[1])
    for start in range(0, len(X), rows):
        some = slice(start, start + rows)
        with np.errstate(over="ignore"):
            np.add.reduce(np.square(X[some]), axis=1, out=out[some])
    return out


class InputSet(Protocol):
    """Inputs, in memory or in blocks on the workers of a cluster."""

    @property
    def var(self) -> Array:
        """x·x/d of every row."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def name(self) -> str:
        """A digest of all rows."""

    def __len__(self) -> int: ...

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]: ...

    def check_unchanged(self) -> None:
        """Raise ValueError if the data were changed since they were passed."""

    def duplicates(self) -> int:
        """Number of rows that repeat another."""

    def joined(self, other: "Inputs") -> "InputSet":
        """These rows, then the others."""

    def take(self, index: Index) -> "Inputs":
        """Some rows, in memory."""


@dataclass(frozen=True)
class Inputs:
    """One set of inputs: the data, x·x/d of each row, and checksums of the data if its owner may
    still write to them."""

    X: Array
    var: Array
    sums: tuple[int, ...] | None = None

    @classmethod
    def of(cls, X: ArrayLike, name: str = "X") -> "Inputs":
        data = as_inputs(X, name)
        return cls(data, input_vars(data))

    @classmethod
    def kept(cls, X: ArrayLike, name: str = "X") -> "Inputs":
        """Inputs that will be used again later. A small array is copied; a large one is not, but
        `check_unchanged` notices if its owner writes to it."""
        data = as_inputs(X, name)
        shared = np.may_share_memory(data, np.asarray(X))
        if shared and data.nbytes <= COPIED:
            data, shared = data.copy(), False
        return cls(data, input_vars(data), checksums(data) if shared else None)

    def check_unchanged(self) -> None:
        """Raise ValueError if the data were changed since they were passed."""
        if self.sums is not None and checksums(self.X) != self.sums:
            raise ValueError(
                "the training inputs were changed after they were conditioned on; condition on a "
                "copy of X, or leave X alone"
            )

    def __len__(self) -> int:
        return len(self.X)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self.X, dtype=dtype)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.X), self.X.shape[1]

    @property
    def name(self) -> str:
        """A digest of all rows."""
        return digest("rows", self.X)

    def duplicates(self) -> int:
        """Number of rows that repeat another."""
        return len(self.X) - len(np.unique(self.X, axis=0))

    def joined(self, other: "Inputs") -> "Inputs":
        """These, then others."""
        return Inputs(np.concatenate([self.X, other.X]), np.concatenate([self.var, other.var]))

    def take(self, index: Index) -> "Inputs":
        """Some of them."""
        return Inputs(self.X[index], self.var[index])

    @cached_property
    def inverse_norm(self) -> Array:
        """1/|x| of every row, 0 for zero rows."""
        norms = np.sqrt(self.var * self.X.shape[1])
        return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def derived(self, name: Hashable, compute: Callable[["Inputs"], Any]) -> Any:
        """compute(self), computed once: the rows as a device has them, for one."""
        if name not in self._derived:
            self._derived[name] = compute(self)
        return self._derived[name]

    def unit(self, index: Index | slice) -> Array:
        """Some rows as unit vectors."""
        return self.X[index] * self.inverse_norm[index][:, None]


def common_var(*sets: InputSet) -> float | None:
    """The input variance that all rows share up to rounding, or None. What `normalize` made is
    exactly 1, so that curves can be shared between data sets."""
    low = min(float(s.var.min()) for s in sets)
    high = max(float(s.var.max()) for s in sets)
    if high - low > EQUAL * high:
        return None
    if max(high - 1, 1 - low) <= EQUAL:
        return 1.0
    return float(np.median(np.concatenate([s.var for s in sets])))


Rows = TypeVar("Rows", bound=InputSet)


def transformed_inputs(network: Network, inputs: Rows) -> Sequence[Rows]:
    """The inputs by each row function of the network; as they are where there is none."""
    network = average_of(network)
    if not isinstance(network, Invariant):
        return (inputs,)
    orbit = network.orbit(inputs.shape[1])
    if not orbit.has_functions:
        return (inputs,)
    if not isinstance(inputs, Inputs):
        raise TypeError(
            "functions of rows are computed on one machine; use engine='cpu' or 'gpu', or "
            "transformations that exchange columns"
        )

    def compute(own: Inputs) -> list[Inputs]:
        return [own if one is None else Inputs.of(one(own.X)) for one in orbit.functions]

    return cast(Sequence[Rows], inputs.derived(network.transformations, compute))


def cut(inputs: Inputs, rows: slice) -> Inputs:
    """Some rows that follow each other, not copied."""
    return Inputs(inputs.X[rows], inputs.var[rows])
