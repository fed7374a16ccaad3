"""Activations by name, and families of them."""

import numpy as np

from nngp.architecture import Activation, activation_names as names
from nngp.architecture.activation import two_slopes

__all__ = ["leaky_relu", "names"]


def leaky_relu(slope: float = 0.01, positive_slope: float = 1.0) -> Activation:
    """Leaky ReLU: slope·x where x is negative, positive_slope·x where it is positive.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> nngp.activations.leaky_relu(0.25)(np.array([-2.0, 3.0])).tolist()
    [-0.5, 3.0]
    >>> nngp.activations.leaky_relu(0.25, 2.0)(np.array([-2.0, 3.0])).tolist()
    [-0.5, 6.0]
    """
    slopes = float(slope), float(positive_slope)
    if not np.isfinite(slopes).all():
        raise ValueError(f"the slopes of leaky_relu must be finite numbers, got {slopes}")
    return two_slopes(*slopes)
