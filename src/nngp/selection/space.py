"""Search space: the free hyper-parameters as one vector theta.

Free are the variances that the user left to the search (weights and biases of every layer, noise)
and, if they are learned, the relevances of groups of inputs: all these by their logarithms; and the
powers of the maps of columns. Each has a normal prior, which keeps it in bounds where data are few.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array, Index
from nngp.architecture import Architecture
from nngp.frames.maps import POWERS
from nngp.frames.scaling import RELEVANCE_BOUNDS
from nngp.selection.problem import STARTS, Candidate, HyperparameterPoint

NOISE_BOUNDS = (1e-8, 4.0)
SPREAD = 3.0  # of the priors of the logarithms of variances
POWER_SPREAD = 1.0  # of the prior of a power, about one
ACTIVATION, ACTIVATION_SPREAD = (-100.0, 100.0), 2.0  # parameters of activations, about the given


class Block(NamedTuple):
    """Consecutive entries of theta: one hyper-parameter, of every layer, group or column."""

    name: str
    size: int
    bounds: tuple[float, float]
    prior_center: ArrayLike
    prior_spread: float  # of the logarithm; of a power, its own
    is_log: bool = True


class Slopes(NamedTuple):
    """Derivatives in the hyper-parameters; those in relevances are in their logarithms."""

    weight_var: Array
    bias_var: Array
    noise_var: float
    relevance: Array  # of each input
    power: Array  # of each moving column
    activation: Array = np.zeros(0)  # of each parameter of the activation


@dataclass(frozen=True)
class Space:
    """The free hyper-parameters of a candidate, their bounds and their prior."""

    candidate: Candidate
    groups: NDArray[np.intp] | None = None  # of relevances to learn: none if None
    relevance_center: Array | None = None  # of the relevances' prior, by input; ones if None
    moving: Index | None = None  # columns whose powers are learned
    noise_floor: float = 0.0

    @cached_property
    def blocks(self) -> list[Block]:
        """Blocks of theta in their order."""
        layers, start = self.candidate.layers, STARTS[0]
        least = max(NOISE_BOUNDS[0], self.noise_floor)
        noise = least, max(NOISE_BOUNDS[1], 2 * least)
        variances = [
            Block("weight_var", layers, (1e-3, 1e3), start.weight_var, SPREAD),
            Block("bias_var", layers, (1e-5, 1e2), start.bias_var, SPREAD),
            Block("noise_var", 1, noise, start.noise_var, SPREAD),
        ]
        free = [block for block in variances if getattr(self.candidate, block.name) is None]
        if self.groups is not None:
            center: ArrayLike = 1.0
            if self.relevance_center is not None:
                center = self.relevance_center[self._first]
            free.append(Block("relevance", len(self._first), RELEVANCE_BOUNDS, center, 1.0))
        if self.moving is not None and len(self.moving):
            free.append(Block("power", len(self.moving), POWERS, 1.0, POWER_SPREAD, False))
        if params := self.candidate.activation.params:
            center = np.array(list(params.values()))
            free.append(
                Block("activation", len(params), ACTIVATION, center, ACTIVATION_SPREAD, False)
            )
        return free

    @cached_property
    def _grouped(self) -> tuple[Index, Index]:
        _, first, index = np.unique(
            np.empty(0) if self.groups is None else self.groups,
            return_index=True,
            return_inverse=True,
        )
        return first, index

    @property
    def _first(self) -> Index:
        """An input of each group."""
        return self._grouped[0]

    @cached_property
    def _logs(self) -> NDArray[np.bool_]:
        return self._each([b.is_log for b in self.blocks])

    def _each(self, flags: list[bool]) -> NDArray[np.bool_]:
        """A flag of every block, for each of its entries."""
        return np.repeat(
            np.array(flags, dtype=bool), np.array([b.size for b in self.blocks], dtype=int)
        )

    def pack(self, at: HyperparameterPoint) -> Array:
        """Return theta of this setting, moved inside the bounds."""
        values: dict[str, ArrayLike] = {
            "weight_var": at.base.weight_var,
            "bias_var": at.base.bias_var,
            "noise_var": at.noise_var,
            "relevance": 1.0 if at.relevance is None else at.relevance[self._first],
            "power": at.powers[at.moving],
            "activation": list(at.base.activation.params.values()),
        }
        theta = self._concatenated(values)
        logs = self._logs
        theta[logs] = np.log(np.maximum(theta[logs], np.finfo(float).tiny))
        return np.clip(theta, *self.bounds.T)

    @cached_property
    def bounds(self) -> Array:
        """Lower and upper bound of every entry of theta, (size, 2)."""
        rows = [b.bounds for b in self.blocks for _ in range(b.size)]
        out = np.array(rows, dtype=float).reshape(-1, 2)
        out[self._logs] = np.log(out[self._logs])
        return out

    def unpack(self, theta: Array, fixed: HyperparameterPoint) -> HyperparameterPoint:
        """Return the setting at theta; what is not free is as in `fixed`."""
        values = theta.copy()
        values[self._logs] = np.exp(values[self._logs])
        ends = np.cumsum([block.size for block in self.blocks])
        parts = np.split(values, ends[:-1])
        free = {block.name: part for block, part in zip(self.blocks, parts, strict=False)}
        net, candidate = fixed.base, self.candidate
        activation = candidate.activation
        if "activation" in free:
            found = zip(activation.params, free["activation"].tolist(), strict=True)
            activation = activation.with_params(**dict(found))
        base = Architecture(
            candidate.depth,
            activation,
            self._by_layer(free["weight_var"]) if "weight_var" in free else net.weight_var,
            self._by_layer(free["bias_var"]) if "bias_var" in free else net.bias_var,
        )
        out = replace(fixed, base=base)
        if "noise_var" in free:
            out = replace(out, noise_var=float(free["noise_var"][0]))
        if "relevance" in free:
            out = replace(out, relevance=free["relevance"][self._grouped[1]])
        if "power" in free:
            powers = fixed.powers.copy()
            powers[self.moving] = free["power"]
            out = replace(out, powers=powers)
        return out

    def gradient(self, theta: Array, slopes: Slopes) -> Array:
        """Return d/d theta, given the derivatives in the hyper-parameters."""
        grouped: Array = np.zeros(0)
        if self.groups is not None:
            grouped = np.bincount(self._grouped[1], slopes.relevance, len(self._first)).astype(
                float
            )
        parts = {**slopes._asdict(), "relevance": grouped}
        scale = np.exp(np.where(self._logs, theta, 0.0))
        relevances = self._each([b.name == "relevance" for b in self.blocks])
        out: Array = self._concatenated(parts) * np.where(relevances, 1.0, scale)
        return out

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Return the logarithm of the prior density, without its constant, and its gradient."""
        center, spread = self._prior
        distance = (theta - center) / spread
        return -0.5 * float(distance @ distance), -distance / spread

    @cached_property
    def _prior(self) -> tuple[Array, Array]:
        center = self._concatenated({b.name: b.prior_center for b in self.blocks})
        center[self._logs] = np.log(center[self._logs])
        return center, self._concatenated({b.name: b.prior_spread for b in self.blocks})

    def _concatenated(self, values: Mapping[str, ArrayLike]) -> Array:
        """Values of the free hyper-parameters in the order of theta."""
        parts = [np.broadcast_to(values[block.name], block.size) for block in self.blocks]
        return np.concatenate([[], *parts])

    def _by_layer(self, values: Array) -> float | tuple[float, ...]:
        return float(values[0]) if self.candidate.is_infinite else tuple(values.tolist())


def log_prior_of_noise(noise_var: float) -> float:
    """Logarithm of the prior density of the noise variance, without its constant."""
    return -0.5 * float(np.log(noise_var / STARTS[0].noise_var) / SPREAD) ** 2
