"""Description of a network: depth, nonlinearity, and the prior variances of its weights.

Takes numbers and an activation; gives a frozen, hashable `Architecture` that holds no data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from numbers import Integral, Real
from typing import Any

import numpy as np

from nngp._numbers import check_unmasked, whole_number
from nngp.architecture.activation import (
    Activation,
    ActivationLike,
    as_activation,
    from_spec,
    spec_of,
)
from nngp.architecture.graph import INPUT, Affine, Node, Nonlinearity, check_size
from nngp.architecture.network import Network, activation_identity
from nngp.architecture.outline import Outline, repeated
from nngp.architecture.parts import Act, Chain, Dense

Variance = float | tuple[float, ...]  # of all layers, or of each


@dataclass(frozen=True)
class Architecture(Network):
    """A fully connected network of infinite width: the paper's chain of equal layers.

    Weights of layer l are drawn with variance weight_var / fan-in and biases with bias_var
    (paper, sec. 2.1). `depth` counts hidden layers, that is nonlinearities; depth 0 is the
    linear model, K = bias_var + weight_var x·x'/d.

    Parameters
    ----------
    depth : int or math.inf
        Number of hidden layers, 0 or more. An infinitely deep network has a kernel in the ordered
        phase, where K(x,x) - K(x,x') of all pairs vanishes with depth in fixed proportions
        (`nngp.kernel`).
    activation : str, callable or Activation
        See `nngp.activations.names()` for the names.
    weight_var, bias_var : float or sequence of depth + 1 floats
        One number for all layers, or one per layer from the input to the output.

    Examples
    --------
    >>> import nngp
    >>> nngp.Architecture(3, "relu", weight_var=1.6, bias_var=0.1).weight_vars
    (1.6, 1.6, 1.6, 1.6)
    """

    depth: int  # or math.inf
    activation: Activation
    weight_var: Variance
    bias_var: Variance

    def __init__(
        self,
        depth: int | float,
        activation: ActivationLike = "relu",
        weight_var: float | Sequence[float] = 1.6,
        bias_var: float | Sequence[float] = 0.1,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "depth", _as_depth(depth))
        set_field(self, "activation", as_activation(activation))
        set_field(self, "weight_var", _as_variance("weight_var", weight_var, self.depth))
        set_field(self, "bias_var", _as_variance("bias_var", bias_var, self.depth))
        if np.min(self.weight_var) == 0:
            raise ValueError("weight_var must be positive: without weights no input is seen")

    @property
    def is_infinite(self) -> bool:
        """Whether the depth is infinite."""
        return self.depth == np.inf

    def nodes(self) -> Iterator[Node]:
        """Affine maps with nonlinearities between them, for ever if infinite."""
        numbers = (
            repeat((self.weight_var, self.bias_var))
            if self.is_infinite
            else zip(self.weight_vars, self.bias_vars, strict=True)
        )
        for layer, (weight, bias) in zip(count(), numbers):
            if layer:
                yield Nonlinearity(2 * layer - 1, self.activation)
            yield Affine(2 * layer or INPUT, weight, bias)  # type: ignore[arg-type]

    @property
    def chain(self) -> Chain:
        """The same network spelled out; its kernel is the same to the bit.

        Examples
        --------
        >>> import nngp
        >>> nngp.Architecture(1, "relu", 2.0, 0.1).chain
        Chain(Dense(2, 0.1), Act('relu'), Dense(2, 0.1))
        """
        maps = [Dense(*both) for both in zip(self.weight_vars, self.bias_vars, strict=True)]
        layers = [part for one in maps[1:] for part in (Act(self.activation), one)]
        return Chain(maps[0], *layers)

    def outline(self) -> Outline:
        if isinstance(self.weight_var, tuple) or isinstance(self.bias_var, tuple):
            return self.chain.outline()
        affine = Dense(self.weight_var, self.bias_var)
        layer = Chain(Act(self.activation), affine)
        return affine.outline() + repeated(layer.outline(), self.depth)

    @property
    def activations(self) -> tuple[Activation, ...]:
        """Its activation, at depth 0 too."""
        return (self.activation,)

    @property
    def weight_vars(self) -> tuple[float, ...]:
        """weight_var of each of the depth + 1 affine maps, input first."""
        return _per_layer(self.weight_var, self.depth)

    @property
    def bias_vars(self) -> tuple[float, ...]:
        """bias_var of each of the depth + 1 affine maps, input first."""
        return _per_layer(self.bias_var, self.depth)

    def truncated(self, depth: int) -> "Architecture":
        """The network of the first `depth` hidden layers; the next affine map is its output.

        Examples
        --------
        >>> import nngp
        >>> nngp.Architecture(10, "relu").truncated(3).depth
        3
        """
        if whole_number("depth", depth, least=0) > self.depth:
            raise ValueError(f"depth must be between 0 and {self.depth}, got {depth}")
        if self.is_infinite:
            return Architecture(depth, self.activation, self.weight_var, self.bias_var)
        return Architecture(
            depth, self.activation, self.weight_vars[: depth + 1], self.bias_vars[: depth + 1]
        )

    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold; `Architecture.from_dict` reads them back.

        Examples
        --------
        >>> import nngp
        >>> nngp.Architecture(2, "tanh", 1.5, 0.1).as_dict()
        {'depth': 2, 'activation': 'tanh', 'weight_var': 1.5, 'bias_var': 0.1}
        """
        return {
            "depth": "inf" if self.is_infinite else self.depth,
            "activation": spec_of(self.activation),
            "weight_var": self.weight_var,
            "bias_var": self.bias_var,
        }

    @property
    def values(self) -> list[Any]:
        """Values that identify the network, for a digest."""
        identity = activation_identity(self.activation)
        return [identity, float(self.depth), list(self.weight_vars), list(self.bias_vars)]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Architecture":
        """Construct the network that `as_dict` described.

        Examples
        --------
        >>> import nngp
        >>> net = nngp.Architecture(2, "tanh", 1.5, 0.1)
        >>> nngp.Architecture.from_dict(net.as_dict()) == net
        True
        """
        depth = np.inf if values["depth"] == "inf" else values["depth"]
        return cls(**{**values, "depth": depth, "activation": from_spec(values["activation"])})

    def __repr__(self) -> str:
        return (
            f"Architecture(depth={self.depth}, activation='{self.activation.name}', "
            f"weight_var={self.weight_var}, bias_var={self.bias_var})"
        )


def _as_depth(depth: object) -> int | float:
    if isinstance(depth, Real) and not isinstance(depth, bool) and depth == np.inf:
        return float("inf")
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 0:
        raise ValueError(
            f"depth must be a whole number of hidden layers >= 0, or math.inf, got {depth!r}"
        )
    check_size(2 * int(depth) + 1)
    return int(depth)


def _as_variance(name: str, value: Any, depth: int) -> Variance:
    check_unmasked(value, name)
    if np.iscomplexobj(value):
        raise TypeError(f"{name} must be real, got {value!r}")
    if np.ndim(value) == 0 and isinstance(value, Real | np.ndarray) and not isinstance(value, bool):
        layers: tuple[float, ...] = (float(value),)
    else:
        layers = _as_sequence(name, value)
        _check_count(name, len(layers), depth)
    if not all(np.isfinite(v) and v >= 0 for v in layers):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return layers[0] if len(set(layers)) == 1 else layers


def _as_sequence(name: str, value: Any) -> tuple[float, ...]:
    wrong = TypeError(f"{name} must be a number or a sequence of numbers, got {value!r}")
    if isinstance(value, str):
        raise wrong
    try:
        return tuple(float(v) for v in value)
    except (TypeError, ValueError):
        raise wrong from None


def _check_count(name: str, count: int, depth: int) -> None:
    if depth == np.inf:
        raise ValueError(f"{name} must be one number for a network of infinite depth, got {count}")
    if count != depth + 1:
        raise ValueError(
            f"{name} has {count} values; a network of depth {depth} has {depth + 1} "
            "affine maps (input to output), so give one number or that many"
        )


def _per_layer(value: Variance, depth: int) -> tuple[float, ...]:
    if depth == np.inf:
        raise ValueError(
            "a network of infinite depth has no list of layers; this works at finite depth only"
        )
    return value if isinstance(value, tuple) else (value,) * (depth + 1)
