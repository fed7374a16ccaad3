"""Stage 1, the network: depth, activation, weight and bias variance. Holds no data."""

from nngp.architecture.activation import (
    Activation,
    ActivationLike,
    activation_names,
    as_activation,
    from_spec,
    leaky_relu,
    spec_of,
)
from nngp.architecture.architecture import Architecture

__all__ = [
    "Activation",
    "ActivationLike",
    "Architecture",
    "activation_names",
    "as_activation",
    "from_spec",
    "leaky_relu",
    "spec_of",
]
