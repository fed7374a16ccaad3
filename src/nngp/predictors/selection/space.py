"""Search space: the logarithms of the free hyper-parameters as one vector theta.

Free are the variances that the user left to the search (weights and biases of every layer, noise)
and, if they are learned, the relevances of the inputs. Each logarithm has a wide normal prior,
which keeps it in bounds where data are few.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp.architecture import Architecture
from nngp.predictors.selection.problem import STARTS, Candidate, Hyperparameters

RELEVANCE_BOUNDS = (1e-6, 1e4)


class Block(NamedTuple):
    """Consecutive entries of theta: one hyper-parameter, of every layer or every input."""

    name: str
    size: int
    bounds: tuple[float, float]
    prior_center: ArrayLike
    prior_spread: float  # of the logarithm


@dataclass(frozen=True)
class Space:
    """The free hyper-parameters of a candidate, their bounds and their prior."""

    candidate: Candidate
    inputs: int  # number of relevances to learn: d, or 0
    relevance_center: Array | None = None  # of the relevances' prior; ones if None

    @cached_property
    def blocks(self) -> list[Block]:
        """Blocks of theta in their order; relevances, if any, are last."""
        layers, start = self.candidate.layers, STARTS[0]
        variances = [
            Block("weight_var", layers, (1e-3, 1e3), start.weight_var, 3.0),
            Block("bias_var", layers, (1e-5, 1e2), start.bias_var, 3.0),
            Block("noise_var", 1, (1e-8, 4.0), start.noise_var, 3.0),
        ]
        free = [block for block in variances if getattr(self.candidate, block.name) is None]
        if self.inputs:
            center = 1.0 if self.relevance_center is None else self.relevance_center
            free.append(Block("relevance", self.inputs, RELEVANCE_BOUNDS, center, 1.0))
        return free

    def pack(self, at: Hyperparameters) -> Array:
        """Return theta of these hyper-parameters, moved inside the bounds."""
        values: dict[str, ArrayLike] = {
            "weight_var": at.architecture.weight_var,
            "bias_var": at.architecture.bias_var,
            "noise_var": at.noise_var,
            "relevance": 1.0 if at.relevance is None else at.relevance,
        }
        return np.log(np.clip(self._concatenated(values), *np.exp(self.bounds).T))

    @property
    def bounds(self) -> Array:
        """Lower and upper bound of every entry of theta, (size, 2)."""
        rows = [block.bounds for block in self.blocks for _ in range(block.size)]
        return np.log(np.array(rows).reshape(-1, 2))

    def unpack(self, theta: Array, fixed: Hyperparameters) -> Hyperparameters:
        """Return the hyper-parameters at theta; those that are not free are as in `fixed`."""
        ends = np.cumsum([block.size for block in self.blocks])
        parts = np.split(np.exp(theta), ends[:-1])
        free = {block.name: part for block, part in zip(self.blocks, parts, strict=False)}
        net, candidate = fixed.architecture, self.candidate
        architecture = Architecture(
            candidate.depth,
            candidate.activation,
            self._by_layer(free["weight_var"]) if "weight_var" in free else net.weight_var,
            self._by_layer(free["bias_var"]) if "bias_var" in free else net.bias_var,
        )
        noise_var = float(free["noise_var"][0]) if "noise_var" in free else fixed.noise_var
        return Hyperparameters(architecture, noise_var, free.get("relevance", fixed.relevance))

    def gradient(self, theta: Array, by_name: Mapping[str, ArrayLike]) -> Array:
        """Return d/d theta, given the derivatives in the hyper-parameters by their names."""
        size = len(theta) - self.inputs
        derivatives = self._concatenated(by_name)
        derivatives[:size] *= np.exp(theta[:size])
        # Those in relevances are in their logarithms already: factors of the scaled inputs.
        return derivatives

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Return the logarithm of the prior density, without its constant, and its gradient."""
        center = np.log(self._concatenated({b.name: b.prior_center for b in self.blocks}))
        spread = self._concatenated({b.name: b.prior_spread for b in self.blocks})
        distance = (theta - center) / spread
        return -0.5 * float(distance @ distance), -distance / spread

    def _concatenated(self, values: Mapping[str, ArrayLike]) -> Array:
        """Values of the free hyper-parameters in the order of theta."""
        parts = [np.broadcast_to(values[block.name], block.size) for block in self.blocks]
        return np.concatenate([[], *parts])

    def _by_layer(self, values: Array) -> float | tuple[float, ...]:
        return float(values[0]) if self.candidate.is_infinite else tuple(values.tolist())
