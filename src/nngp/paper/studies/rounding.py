"""Numbers as they are stored: plain lists, with as many digits as anyone will draw."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

DIGITS = 8  # significant


def rounded(values: ArrayLike) -> Any:
    """Nested lists of floats (or one float) with eight significant digits; infinities stay."""
    array = np.asarray(values, dtype=float)
    short = np.array([float(f"{value:.{DIGITS}g}") for value in array.ravel()])
    return short.reshape(array.shape).tolist()
