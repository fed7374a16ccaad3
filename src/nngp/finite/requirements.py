"""What finite networks need, said before any work."""

from importlib.util import find_spec
from numbers import Integral
from typing import Any

import numpy as np


def need_packages(*names: str) -> None:
    """Say what to install; by default everything that the extra `finite` brings."""
    for name in names or ("jax", "optax"):
        if find_spec(name) is None:
            raise ImportError(
                f"finite networks need {name}; install it with: pip install 'nngp[finite]'"
            )


def whole(name: str, value: Any, least: int = 1) -> int:
    """A whole number of at least so much, or a sentence."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)
