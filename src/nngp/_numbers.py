"""Numbers that users pass, checked: arrays of real numbers, single numbers, and counts.

Public functions that take data call one of these, so that nothing is converted without a word: no
mask is dropped, no imaginary part, no date. Errors are one sentence.
"""

import reprlib
from numbers import Complex, Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array

UNUSABLE = {  # kinds of NumPy's types: what they are, and what to do
    "c": ("complex numbers", "pass real and imaginary parts apart"),
    "m": ("lengths of time", "divide them by a unit first, such as numpy.timedelta64(1, 's')"),
    "M": ("dates", "turn them into numbers first, such as days since the first"),
    "S": ("bytes", "convert them to numbers first"),
    "T": ("text", "convert it to numbers first"),
    "U": ("text", "convert it to numbers first"),
    "V": ("records of named fields", "pass their columns side by side, as one matrix"),
}


def as_reals(values: ArrayLike, name: str, text_remedy: str = "") -> Array:
    """Values as an array of float64, of any shape; TypeError if they are not real numbers.

    `text_remedy` says what to do with text, where there is better advice than to convert it.
    """
    check_unmasked(values, name)
    if hasattr(values, "toarray") or hasattr(values, "todense"):
        raise TypeError(f"{name} is sparse; pass {name}.toarray() if it fits in memory")
    try:
        raw = np.asarray(values)
    except (TypeError, ValueError) as cause:  # rows of several lengths
        raise TypeError(f"{name} must hold real numbers: {cause}") from None
    if raw.dtype.kind in UNUSABLE:
        _refuse(raw.dtype.kind, name, text_remedy)
    if raw.dtype == object:
        return _from_objects(raw, name, text_remedy)
    return raw.astype(np.float64, copy=False)


def check_unmasked(values: object, name: str) -> None:
    """Raise TypeError if a masked array, alone or in a list, has a masked value."""
    if _is_masked(values):
        raise TypeError(
            f"{name} has masked values, and what is under a mask is no data; drop or impute them "
            "first"
        )


def check_convertible(values: ArrayLike, name: str) -> None:
    """Raise TypeError for arrays of dates, text and the like, and for dates among other objects,
    before scikit-learn converts the values: it reads text as numbers, and fails oddly on others."""
    raw = np.asarray(values)
    kinds = {_kind(value) for value in raw.flat} if raw.dtype == object else set(raw.dtype.kind)
    unusable = kinds & set("mM" if raw.dtype == object else "mMSTUV")
    if unusable:
        _refuse(unusable.pop(), name)
    if "c" in kinds:  # scikit-learn's own words, without the array that it puts into them
        raise ValueError(f"Complex data not supported: {UNUSABLE['c'][1]} in {name}")


def as_real(value: object, name: str) -> float:
    """One real number, which may be infinite or NaN; TypeError for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be one number, got {type(value).__name__}")
    return float(value)


def shortest(value: float) -> str:
    """The number in the fewest digits that give it back: 2.0 is 2."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def whole_number(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`; ValueError for anything else, True and 1.0 included."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def _refuse(kind: str, name: str, text_remedy: str = "") -> NoReturn:
    what, remedy = UNUSABLE[kind]
    remedy = text_remedy if text_remedy and kind in "STU" else remedy
    raise TypeError(f"{name} must hold real numbers and holds {what}; {remedy}")


def _is_masked(values: object) -> bool:
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    if isinstance(values, np.ndarray):
        return values.dtype == object and any(_is_masked(part) for part in values.flat)
    return isinstance(values, list | tuple) and any(_is_masked(part) for part in values)


def _kind(value: object) -> str:
    """The kind in `UNUSABLE` of one object, empty for numbers and all that is none of these."""
    if isinstance(value, str | bytes):
        return "U" if isinstance(value, str) else "S"
    if hasattr(value, "total_seconds") or isinstance(value, np.timedelta64):
        return "m"
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        return "M"
    return "c" if isinstance(value, Complex) and not isinstance(value, Real) else ""


def _from_objects(raw: NDArray[Any], name: str, text_remedy: str) -> Array:
    """Python's own numbers; the error shows the first value that is none."""
    out = np.empty(raw.shape)
    for place, value in enumerate(raw.flat):
        kind = _kind(value)
        if kind:
            _refuse(kind, name, text_remedy)
        try:
            out.flat[place] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(
                f"{name} must hold real numbers and holds {reprlib.repr(value)}; replace it, or "
                "drop its row"
            ) from None
    return out
