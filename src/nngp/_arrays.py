"""Types of arrays, and the two ends of float64, for the whole package.

Code that serves NumPy and JAX alike takes the array namespace as its first argument, `xp`, as the
Python array API does, and annotates numbers and arrays of either library as `Floats`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

Namespace = Any  # numpy or jax.numpy
Floats = Any  # a number or an array of numbers, of NumPy or JAX
DeviceArray = Any  # an array of JAX

EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # the smallest normal number
