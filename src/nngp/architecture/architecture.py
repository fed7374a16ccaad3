"""The network's description: depth, nonlinearity, and the prior variances of its weights.

Takes numbers and an activation; gives a frozen, hashable `Architecture` that holds no data.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from numbers import Integral, Real
from typing import Any

import numpy as np

from nngp.architecture.activation import Activation, as_activation, from_spec, spec_of


@dataclass(frozen=True)
class Architecture:
    """A fully connected network of infinite width.

    Weights of layer l are drawn with variance weight_var / fan-in and biases with bias_var
    (paper, sec. 2.1). `depth` counts hidden layers, that is nonlinearities; depth 0 is the
    linear model, K = bias_var + weight_var x·x'/d.

    Parameters
    ----------
    depth : int or math.inf
        Number of hidden layers, 0 or more. An infinitely deep network has a kernel of its own where
        the differences that depth leaves between inputs keep their proportions (`nngp.kernel`).
    activation : str, callable or Activation
        See `nngp.activation_names()` for the names.
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
    weight_var: float | tuple[float, ...]
    bias_var: float | tuple[float, ...]

    def __init__(
        self,
        depth: int | float,
        activation: str | Callable[[Any], Any] | Activation = "relu",
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
        """Whether there is no last layer."""
        return self.depth == np.inf

    def affine_maps(self) -> Iterator[tuple[float, float]]:
        """weight_var and bias_var of each affine map, input first; endless at infinite depth."""
        if self.is_infinite:
            return repeat((self.weight_var, self.bias_var))  # type: ignore[arg-type]
        return zip(self.weight_vars, self.bias_vars, strict=True)

    @property
    def weight_vars(self) -> tuple[float, ...]:
        """weight_var of each of the depth + 1 affine maps, input first."""
        return _per_layer(self.weight_var, self.depth)

    @property
    def bias_vars(self) -> tuple[float, ...]:
        """bias_var of each of the depth + 1 affine maps, input first."""
        return _per_layer(self.bias_var, self.depth)

    def truncated(self, depth: int) -> "Architecture":
        """The first `depth` hidden layers, read out with the next layer's variances."""
        if not 0 <= depth <= self.depth:
            raise ValueError(f"depth must be between 0 and {self.depth}, got {depth}")
        if self.is_infinite:
            return Architecture(depth, self.activation, self.weight_var, self.bias_var)
        return Architecture(
            depth, self.activation, self.weight_vars[: depth + 1], self.bias_vars[: depth + 1]
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; `Architecture.from_dict` reads them back."""
        return {
            "depth": "inf" if self.is_infinite else self.depth,
            "activation": spec_of(self.activation),
            "weight_var": self.weight_var,
            "bias_var": self.bias_var,
        }

    @property
    def values(self) -> list[Any]:
        """Values that two networks share only if they are the same: an activation of the user's own
        is known by what it does."""
        phi = self.activation
        try:
            what = spec_of(phi)
        except ValueError:
            far = np.geomspace(1e-12, 1e12, 4001)
            grid = np.concatenate([np.linspace(-30.0, 30.0, 6001), far, -far])
            with np.errstate(all="ignore"):
                what = [phi.name, list(phi.kinks), np.asarray(phi.fn(grid), dtype=np.float64)]
        return [what, float(self.depth), list(self.weight_vars), list(self.bias_vars)]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Architecture":
        """The network that `as_dict` described."""
        depth = np.inf if values["depth"] == "inf" else values["depth"]
        return cls(**{**values, "depth": depth, "activation": from_spec(values["activation"])})

    def __repr__(self) -> str:
        return (
            f"Architecture(depth={self.depth}, activation='{self.activation.name}', "
            f"weight_var={self.weight_var}, bias_var={self.bias_var})"
        )


def _as_depth(depth: Any) -> Any:
    if isinstance(depth, Real) and not isinstance(depth, bool) and depth == np.inf:
        return float("inf")
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 0:
        raise ValueError(
            f"depth must be a whole number of hidden layers >= 0, or math.inf, got {depth!r}"
        )
    return int(depth)


def _as_variance(name: str, value: Any, depth: int) -> float | tuple[float, ...]:
    if np.ndim(value) == 0 and isinstance(value, Real | np.ndarray) and not isinstance(value, bool):
        layers: tuple[float, ...] = (float(value),)
    else:
        try:
            layers = tuple(float(v) for v in ([] if isinstance(value, str) else value))
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} must be a number or a sequence of numbers, got {value!r}"
            ) from None
        if isinstance(value, str):
            raise TypeError(f"{name} must be a number or a sequence of numbers, got {value!r}")
        if depth == np.inf:
            raise ValueError(
                f"{name} must be one number for a network of infinite depth, got {len(layers)}"
            )
        if len(layers) != depth + 1:
            raise ValueError(
                f"{name} has {len(layers)} values; a network of depth {depth} has {depth + 1} "
                "affine maps (input to output), so give one number or that many"
            )
    if not all(np.isfinite(v) and v >= 0 for v in layers):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return layers[0] if len(set(layers)) == 1 else layers


def _per_layer(value: float | tuple[float, ...], depth: int) -> tuple[float, ...]:
    if depth == np.inf:
        raise ValueError(
            "a network of infinite depth has no list of layers; this works at finite depth only"
        )
    return value if isinstance(value, tuple) else (value,) * (depth + 1)
