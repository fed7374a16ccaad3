"""Stage 1, the network: its layers, their activations and variances. Holds no data."""

from nngp.architecture.activation import (
    Activation,
    ActivationLike,
    activation_names,
    as_activation,
    from_spec,
    spec_of,
)
from nngp.architecture.architecture import Architecture
from nngp.architecture.flow import ContinuousResidual
from nngp.architecture.invariances import Family, Invariant, WithHead, average_of, tangent_of
from nngp.architecture.network import Network
from nngp.architecture.parts import (
    Act,
    AvgPool,
    Chain,
    Concat,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Image,
    LayerNorm,
    NetworkPart,
    Product,
    Repeat,
    Residual,
    Sum,
)
from nngp.architecture.saved import network_from_dict
from nngp.architecture.tangent import NTK

__all__ = [
    "NTK",
    "Act",
    "Activation",
    "ActivationLike",
    "Architecture",
    "AvgPool",
    "Chain",
    "Concat",
    "ContinuousResidual",
    "Conv",
    "Dense",
    "Dropout",
    "Family",
    "Flatten",
    "GlobalAvgPool",
    "Image",
    "Invariant",
    "LayerNorm",
    "Network",
    "NetworkPart",
    "Product",
    "Repeat",
    "Residual",
    "Sum",
    "WithHead",
    "activation_names",
    "as_activation",
    "average_of",
    "from_spec",
    "network_from_dict",
    "spec_of",
    "tangent_of",
]
