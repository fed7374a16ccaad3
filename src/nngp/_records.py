"""Typed records as JSON and arrays, and back: the one serialiser of saved models.

A record is a dataclass. It becomes a mapping of its fields, with its class as "type"; its arrays
are put aside, named by their place. On the way back every value is checked against the annotation
of its field: the type, a `Range`, a `Choice` of texts, the `Shaped` of an array. Floats
and arrays are finite unless a `Range` says otherwise; integers are not negative without one. Then
the record is constructed, and its method `check_saved` is called if there is one: it raises
ValueError where fields contradict each other. Nothing is left over, and nothing lacks.

Classes that are no plain records, such as networks, are registered with two functions. A field
annotated as `Any` takes plain values, lists, mappings and what is registered.

What is wrong with the values is a `ModelFileError`, which names the place.
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from numbers import Real
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from nngp._tensors import Stored, StoredArray
from nngp.errors import ModelFileError

MAX_EXACT_INTEGER = 2**53  # of an integer: up to here each is a float, too
TYPE, ARRAY = "type", "array"
NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no such numbers
UNSAVED = {"saved": False}  # metadata of a field with a default that is not part of a file
Record = TypeVar("Record")
Function = Callable[[Any], Any]
_REGISTERED: dict[str, tuple[type, Function, Function]] = {}


@dataclass(frozen=True)
class Range:
    """The numbers from `low` (or above it) to `high`, whether infinity is one of them."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    infinite: bool = False

    def holds(self, values: Any) -> bool:
        """Whether all of these are in the range."""
        low = values > self.low if self.above else values >= self.low
        finite = self.infinite or np.isfinite(values)
        return bool(np.all(finite & low & (values <= self.high)))

    def __str__(self) -> str:
        least = f" {'above' if self.above else 'from'} {self.low:g}" if self.low > -math.inf else ""
        return least + (f" to {self.high:g}" if self.high < math.inf else "")


class Choice:
    """One of these texts."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts


class Shaped:
    """The sizes of an array: numbers, or names that stand for one number in all of a record and in
    the records inside it."""

    def __init__(self, *sizes: int | str, dtype: str = "float64") -> None:
        self.sizes, self.dtype = sizes, np.dtype(dtype)


NonNegative = Annotated[float, Range(0.0)]
Positive = Annotated[float, Range(0.0, above=True)]
Share = Annotated[float, Range(0.0, 1.0)]
Extended = Annotated[float, Range(infinite=True)]  # any number, or infinity


def register(kind: type, encode: Function, decode: Function) -> None:
    """Let a class that is no record be saved, by functions to and from plain values."""
    _REGISTERED[kind.__name__] = kind, encode, decode


def register_record(kind: type) -> None:
    """Let a record stand where `Any` is annotated."""

    def decode(values: Any) -> Any:
        return from_plain(kind, values, {})

    register(kind, lambda record: to_plain(record)[0], decode)


def to_plain(value: Any) -> tuple[Any, dict[str, Stored]]:
    """Plain values for JSON, and the arrays by name."""
    arrays: dict[str, Stored] = {}
    return _written(value, "", arrays, at_top=True), arrays


def _written(value: Any, place: str, arrays: dict[str, Stored], at_top: bool = False) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.ndarray | StoredArray):
        arrays[place] = value
        return {TYPE: ARRAY}
    for name, (known, encode, _) in _REGISTERED.items():
        if isinstance(value, known) and not (at_top and is_dataclass(known)):
            return {TYPE: name, "value": encode(value)}
    if is_dataclass(value) and not isinstance(value, type):
        own = ((one.name, getattr(value, one.name)) for one in _saved_fields(type(value)))
        parts = {name: _written(part, _within(place, name), arrays) for name, part in own}
        return {TYPE: type(value).__name__, **parts}
    if isinstance(value, Mapping):
        if TYPE not in value and all(isinstance(key, str) for key in value):
            return {key: _written(v, _within(place, key), arrays) for key, v in value.items()}
        pairs = [[_written(part, place, arrays) for part in pair] for pair in value.items()]
        return {TYPE: "pairs", "value": pairs}
    if isinstance(value, list | tuple):
        return [_written(part, _within(place, k), arrays) for k, part in enumerate(value)]
    if isinstance(value, np.generic):
        return _written(value.item(), place, arrays)
    if isinstance(value, Real):
        number = value if isinstance(value, int) else float(value)
        return number if math.isfinite(number) else {TYPE: "float", "value": str(number)}
    kind = "is a Python function, which" if callable(value) else "is no plain value and"
    raise ValueError(f"the value {value!r} {kind} cannot be written to a file")


def from_plain(kind: type[Record], values: Any, arrays: Mapping[str, StoredArray]) -> Record:
    """The record again, checked."""
    reader = _Reader(arrays)
    out: Record = reader.record((kind,), values, "", {})
    left = set(arrays) - reader.used
    if left:
        raise ModelFileError(f"its array {min(left)[:60]!r} is not part of a model")
    return out


class _Reader:
    def __init__(self, arrays: Mapping[str, StoredArray]) -> None:
        self._arrays, self.used = arrays, set[str]()

    def record(
        self, kinds: tuple[type, ...], values: Any, place: str, outer: dict[str, int]
    ) -> Any:
        """A record of one of these classes; `outer` are sizes that are known."""
        names = {kind.__name__: kind for kind in kinds}
        found = values.get(TYPE) if isinstance(values, dict) else None
        kind = names.get(found) if isinstance(found, str) else None
        if kind is None:
            raise _wrong(values, place, f"a record of {' or '.join(names)}")
        own, hints, sizes = {}, _hints(kind), dict(outer)
        expected = _saved_fields(kind)
        if set(values) - {TYPE} != {one.name for one in expected}:
            raise ModelFileError(f"{_called(place)} has other values than {kind.__name__} has")
        for one in expected:
            inner = _within(place, one.name)
            own[one.name] = self.value(hints[one.name], values[one.name], inner, sizes)
        return _constructed(kind, own, place)

    def value(
        self, hint: Any, value: Any, place: str, sizes: dict[str, int], checks: tuple = ()
    ) -> Any:
        """A value of the type of a field."""
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.value(parts[0], value, place, sizes, (*checks, *parts[1:]))
        if origin in (Union, UnionType):
            return self._one_of(parts, value, place, sizes, checks)
        if origin is np.ndarray or hint is StoredArray:
            return self._array(hint, value, place, sizes, checks)
        if origin in (tuple, list, dict):
            return self._several(origin, parts, value, place, sizes, checks)
        if hint is Any:
            return self._plain(value, place)
        if is_dataclass(hint) and _name(hint) not in _REGISTERED:
            return self.record((hint,), value, place, sizes)  # type: ignore[arg-type]
        return self._single(hint, value, place, checks)

    def _one_of(
        self, parts: tuple, value: Any, place: str, sizes: dict[str, int], checks: tuple
    ) -> Any:
        """A value of one of several types, which its kind in JSON or its own "type" tells."""
        if value is None and NoneType in parts:
            return None
        records: tuple[Any, ...] = tuple(part for part in parts if is_dataclass(part))
        tag = value.get(TYPE) if isinstance(value, dict) else None
        if records and tag != ARRAY:
            return self.record(records, value, place, sizes)
        others = [part for part in parts if part is not NoneType and part not in records]
        arrays = [part for part in others if _is_array(part)]
        chosen = arrays if tag == ARRAY and arrays else [p for p in others if p not in arrays]
        if len(chosen) > 1 and not isinstance(value, str):
            chosen = [part for part in chosen if part is not str]
        return self.value((chosen or others)[0], value, place, sizes, checks)

    def _single(self, hint: Any, value: Any, place: str, checks: tuple) -> Any:
        limits = next((one for one in checks if isinstance(one, Range)), None)
        if hint is float:
            return _number(value, limits or Range(), place)
        if hint is int:
            limits = limits or Range(0)
            right = (
                isinstance(value, int)
                and not isinstance(value, bool)
                and abs(value) <= MAX_EXACT_INTEGER
            )
            if not right or not limits.holds(value):
                raise _wrong(value, place, f"an integer{limits}")
            return value
        if hint in (str, bool):
            if not isinstance(value, hint):
                raise _wrong(value, place, "a text" if hint is str else "true or false")
            for one in checks:
                if isinstance(one, Choice) and value not in one.texts:
                    raise _wrong(value, place, f"one of {', '.join(one.texts)}")
            return value
        found = self._plain(value, place)
        if not isinstance(found, hint):
            raise _wrong(value, place, f"a {hint.__name__}")
        return found

    def _several(
        self, origin: type, parts: tuple, value: Any, place: str, sizes: dict, checks: tuple
    ) -> Any:
        kind = dict if origin is dict else list
        if not isinstance(value, kind):
            raise _wrong(value, place, f"a {kind.__name__}")
        keys = list(value) if isinstance(value, dict) else range(len(value))
        hints = [parts[0] if origin is not dict else parts[1]] * len(value)
        if origin is tuple and parts[-1] is not Ellipsis:
            if len(parts) != len(value):
                raise _wrong(value, place, f"a list of {len(parts)}")
            hints = list(parts)
        found = [
            self.value(hint, value[key], _within(place, key), sizes, checks)
            for key, hint in zip(keys, hints, strict=True)
        ]
        return dict(zip(keys, found, strict=True)) if origin is dict else origin(found)

    def _array(
        self, hint: Any, value: Any, place: str, sizes: dict[str, int], checks: tuple
    ) -> Any:
        stored = self._arrays.get(place)
        if value != {TYPE: ARRAY} or stored is None:
            raise ModelFileError(f"its array {place} is missing")
        self.used.add(place)
        shape = next((one for one in checks if isinstance(one, Shaped)), None)
        if shape is not None:
            wanted = tuple(
                sizes.get(name, stored.shape[k] if k < len(stored.shape) else -1)
                if isinstance(name, str)
                else name
                for k, name in enumerate(shape.sizes)
            )
            if (wanted, shape.dtype) != (stored.shape, stored.dtype):
                raise ModelFileError(
                    f"its array {place} is {stored.dtype} {stored.shape}, expected "
                    f"{shape.dtype} {wanted}"
                )
            named = zip(shape.sizes, wanted, strict=True)
            sizes.update({name: size for name, size in named if isinstance(name, str)})
        if hint is StoredArray:
            return stored
        array = np.array(read_checked(stored))
        for limits in checks:
            if isinstance(limits, Range) and not limits.holds(array):
                raise ModelFileError(f"its array {place} holds other numbers than those{limits}")
        return array

    def _plain(self, value: Any, place: str) -> Any:
        """A value of any type that may be in a file."""
        if isinstance(value, list):
            return [self._plain(part, _within(place, k)) for k, part in enumerate(value)]
        if not isinstance(value, dict):
            return value
        tag = value.get(TYPE)
        if TYPE not in value:
            return {key: self._plain(part, _within(place, key)) for key, part in value.items()}
        try:
            if tag == "float" and value["value"] in NOT_FINITE:
                return float(value["value"])
            if tag == "pairs":
                return dict(self._plain(value["value"], place))
            return _REGISTERED[str(tag)][2](value["value"])
        except (TypeError, ValueError, KeyError, ArithmeticError) as cause:
            raise ModelFileError(f"{_called(place)} cannot be used: {cause}") from None


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in what is wrong with it."""
    try:
        yield
    except ModelFileError as cause:
        if str(cause).startswith(str(path)):
            raise
        raise ModelFileError(
            f"{path} is damaged ({cause}); get a fresh copy or fit the model again"
        ) from None


def read_checked(stored: StoredArray) -> NDArray[Any]:
    """The finite array of a file; raises ModelFileError if it is damaged, or not finite."""
    try:
        array = stored.read()
    except ValueError as cause:
        raise ModelFileError(str(cause)) from None
    if array.dtype.kind == "f" and not _is_finite(array):
        raise ModelFileError("one of its arrays holds NaN or infinity")
    return array


def _is_finite(array: NDArray[Any]) -> bool:
    """Whether all numbers are; a sum is finite only then, and needs no array of flags."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def _constructed(kind: type, values: dict[str, Any], place: str) -> Any:
    try:
        out = kind(**values)
        if hasattr(out, "check_saved"):
            with np.errstate(all="ignore"):
                out.check_saved()
    except ModelFileError:
        raise
    except (TypeError, ValueError, KeyError, ArithmeticError) as cause:
        raise ModelFileError(f"{_called(place)} cannot be used: {cause}") from None
    return out


def _number(value: Any, limits: Range, place: str) -> float:
    """A float in a range; infinity is written as a text."""
    found = value
    if isinstance(value, dict) and value.get(TYPE) == "float" and value.get("value") in NOT_FINITE:
        found = float(value["value"])
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise _wrong(value, place, "a number")
    try:
        found = float(found)
    except OverflowError:
        raise _wrong(value, place, "a number of float64") from None
    if not limits.holds(found):
        raise _wrong(value, place, f"a {'' if limits.infinite else 'finite '}number{limits}")
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _saved_fields(kind: type) -> tuple[Field[Any], ...]:
    """The fields of a record that are part of a file."""
    own = fields(kind)
    left = [one for one in own if not one.metadata.get("saved", True)]
    assert all(one.default is not MISSING or one.default_factory is not MISSING for one in left)
    return tuple(one for one in own if one.init and one not in left)


def _name(kind: Any) -> str:
    return str(kind.__name__)


def _is_array(hint: Any) -> bool:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return inner is StoredArray or get_origin(inner) is np.ndarray


def _within(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _called(place: str) -> str:
    return place or "its description"


def _wrong(value: Any, place: str, expected: str) -> ModelFileError:
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return ModelFileError(f"{_called(place)} is {shown}, expected {expected}")
