"""Checks made before any work: optional packages that are installed, and whole numbers."""

from importlib.util import find_spec
from numbers import Integral

import numpy as np


def need_packages(*names: str) -> None:
    """Raise ImportError unless the packages are installed; by default those of the extra."""
    for name in names or ("jax", "optax"):
        if find_spec(name) is None:
            raise ImportError(
                f"finite networks need {name}; install it with: pip install 'nngp[finite]'"
            )


def whole_number(name: str, value: object, least: int = 1) -> int:
    """The value as an int; raise ValueError unless it is a whole number of at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
