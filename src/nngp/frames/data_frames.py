"""Data frames of pandas and polars, and mappings of sequences, as tables.

Both libraries give a NumPy array for each of their columns; what differs between them is only how
columns are listed and how missing values are marked. Neither is imported.
"""

import datetime
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.frames.table import Column, InputTable, Kind, Mask

HOUR = 3600.0


class Frame(Protocol):
    """A data frame of pandas or polars, as far as it is known here."""

    @property
    def columns(self) -> Any: ...

    @property
    def dtypes(self) -> Any: ...


TableLike = ArrayLike | InputTable | Mapping[str, Any] | Frame


def table_of(X: object) -> InputTable | None:
    """The table in a data frame or a mapping; None where X is something else."""
    if isinstance(X, InputTable):
        return X
    return InputTable(_columns(X)) if _has_columns(X) else None


def mixed_table(X: object) -> InputTable | None:
    """The table in inputs that need an encoder; None for others.

    A frame of numbers without gaps needs none: it is an array with names, and follows
    scikit-learn's rules for these.
    """
    if isinstance(X, InputTable) or _is_mapping(X):
        return table_of(X)
    if not _has_columns(X):
        return None
    columns = _columns(X)
    plain = not any(_is_time(data) or _is_wide(data) for _, data in _named(X))
    if plain and all(c.kind in ("number", "boolean") and not c.missing.any() for c in columns):
        return None
    return InputTable(columns)


def _is_time(data: Any) -> bool:
    """Whether a column holds times of day or lengths of time, which only the encoder can read."""
    values = _array(data)
    first = values[0] if values.dtype == object and values.ndim == 1 and len(values) else None
    return values.dtype.kind == "m" or isinstance(first, datetime.time | datetime.timedelta)


def _is_wide(data: Any) -> bool:
    """Whether a column of polars holds integers of 128 bits, which NumPy does not have."""
    return str(getattr(data, "dtype", "")) in ("Int128", "UInt128")


def _has_columns(X: object) -> bool:
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, which holds no values yet; pass X.collect()")
    return _is_mapping(X) or (hasattr(X, "columns") and hasattr(X, "dtypes"))


def _is_mapping(X: object) -> bool:
    return isinstance(X, Mapping) and not hasattr(X, "shape")  # a sparse matrix may be a dict


def _columns(X: object) -> tuple[Column, ...]:
    found = tuple(_column(str(name), values) for name, values in _named(X))
    if not found:
        raise ValueError("X has no columns; pass a table with at least one")
    return found


def _named(X: Any) -> Iterator[tuple[object, Any]]:
    """Names and columns: polars lists series, pandas and mappings list pairs."""
    if hasattr(X, "iter_columns"):
        return ((series.name, series) for series in X.iter_columns())
    if hasattr(X, "items"):
        return iter(X.items())
    return ((name, X[name]) for name in X.columns)


def _column(name: str, data: Any) -> Column:
    values = _array(data)
    missing = _missing(data, len(values))
    if _is_category(data) and values.ndim == 1:
        texts = Column(name, "number" if values.dtype.kind in "iuf" else "text", values, missing)
        return Column(name, "category", texts.texts, missing)
    return _narrow(name, values, missing)


def _array(data: Any) -> NDArray[Any]:
    if getattr(getattr(data, "dtype", None), "kind", "") == "M" and hasattr(data, "isna"):
        return np.asarray(data.to_numpy(dtype="datetime64[us]"))  # time zones to UTC
    if not hasattr(data, "dtype"):  # a list, whose types NumPy would mix: [1, "a"] as text
        out = np.empty(len(data), dtype=object)
        out[:] = list(data)
        return out
    return np.asarray(data.cast(float) if _is_wide(data) else data)


def _missing(data: Any, length: int) -> Mask:
    if isinstance(data, np.ma.MaskedArray):
        return np.ma.getmaskarray(data).copy()
    for name in ("isna", "is_null"):
        if hasattr(data, name):
            return np.asarray(getattr(data, name)(), dtype=bool).copy()
    return np.zeros(length, dtype=bool)


def _is_category(data: Any) -> bool:
    name = str(getattr(data, "dtype", ""))
    return name == "category" or name.startswith(("Categorical", "Enum"))


def _narrow(name: str, values: NDArray[Any], missing: Mask) -> Column:
    """A column of the kind that an array's type, or the types of its objects, say."""
    kind = values.dtype.kind
    if values.ndim != 1 or kind in "cV":
        return Column(name, "other", np.zeros(len(values)), missing)
    if kind in "iuf":
        return Column(name, "number", values, missing | np.isnan(values))
    if kind == "b":
        return Column(name, "boolean", values, missing)
    if kind == "M":
        return Column(name, "date", values.astype("datetime64[us]"), missing | np.isnat(values))
    if kind == "m":
        days = values / np.timedelta64(1, "D")
        return Column(name, "number", days, missing | np.isnat(values))
    if kind in "UT":
        return Column(name, "text", values.astype(object), missing)
    return _narrow_objects(name, values.astype(object), missing)


def _narrow_objects(name: str, values: NDArray[Any], missing: Mask) -> Column:
    missing = missing | np.array([is_nothing(value) for value in values.tolist()], dtype=bool)
    known = [] if missing.all() else values[~missing].tolist()
    for kind, types, dtype, convert in _OBJECTS:
        if known and all(isinstance(value, types) for value in known):
            out = np.zeros(len(values), dtype=dtype)
            out[~missing] = np.array([convert(value) for value in known], dtype=dtype)
            return Column(name, kind, out, missing)
    if any(isinstance(value, _STRANGE) for value in known):
        return Column(name, "other", np.zeros(len(values)), missing)
    out = np.full(len(values), "", dtype=object)
    out[~missing] = [str(value) for value in known]
    return Column(name, "text", out, missing)


def is_nothing(value: object) -> bool:
    """Whether a value is None, NaN, masked, or a mark of pandas, which equals nothing."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | Decimal) and bool(value != value)


def _in_utc(value: datetime.date) -> np.datetime64:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def _hours(value: datetime.time) -> float:
    seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return seconds / HOUR


_STRANGE = (list, tuple, set, dict, bytes, np.ndarray, complex)
# Kind of a column whose objects all have these types, and how each becomes a value of it.
_OBJECTS: tuple[tuple[Kind, Any, Any, Any], ...] = (
    ("text", str, object, str),
    ("boolean", bool | np.bool_, bool, bool),
    ("number", Real | Decimal | np.number, np.float64, float),
    ("date", datetime.date | np.datetime64, "datetime64[us]", _in_utc),
    ("number", datetime.time, np.float64, _hours),
    ("number", datetime.timedelta, np.float64, lambda value: value / datetime.timedelta(days=1)),
)
