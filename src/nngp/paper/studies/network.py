"""The network that a run's configuration names."""

from collections.abc import Mapping
from typing import Any

from nngp.architecture import Architecture


def network_of(config: Mapping[str, Any]) -> Architecture:
    """Of a configuration with a depth, an activation and the two variances."""
    names = ("depth", "activation", "weight_var", "bias_var")
    return Architecture(*(config[name] for name in names))
