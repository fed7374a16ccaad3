"""Numbers that users pass, checked."""

from numbers import Integral

import numpy as np


def whole_number(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`; ValueError for anything else, True and 1.0 included."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_unmasked(values: object, name: str) -> None:
    """Raise TypeError if a masked array, alone or in a list, has a masked value."""
    if _is_masked(values):
        raise TypeError(
            f"{name} has masked values, and what is under a mask is no data; drop or impute them "
            "first"
        )


def _is_masked(values: object) -> bool:
    if isinstance(values, np.ma.MaskedArray):
        return bool(np.ma.is_masked(values))
    if isinstance(values, np.ndarray):
        return values.dtype == object and any(_is_masked(part) for part in values.flat)
    return isinstance(values, list | tuple) and any(_is_masked(part) for part in values)
