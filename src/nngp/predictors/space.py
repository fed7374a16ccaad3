"""What a search may move: the logarithms of the variances that were left to it.

A `Candidate` is one kind of network, an activation and a depth. Its free variances (weights and
biases of every layer, noise, relevances of the inputs) are a vector; the fixed ones stay.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Activation, Architecture

Array = NDArray[np.float64]
DEPTHS, ACTIVATIONS = (1, 2, 3), ("relu", "erf")
STARTS = ((2.0, 0.3, 0.1), (8.0, 1.0, 0.01))  # weight_var, bias_var, noise_var
WEIGHT_BOUNDS, BIAS_BOUNDS, NOISE_BOUNDS = (1e-3, 1e3), (1e-5, 1e2), (1e-8, 4.0)
RELEVANCE_BOUNDS = (1e-6, 1e4)
# Of the logarithms, in their prior
VARIANCE_SPREAD, NOISE_SPREAD, RELEVANCE_SPREAD = 3.0, 3.0, 1.0


@dataclass(frozen=True)
class Setting:
    """A network with its noise and the relevance of each input (ones if None)."""

    architecture: Architecture
    noise_var: float
    relevance: Array | None = None


@dataclass(frozen=True)
class Candidate:
    """An activation and a depth, with the variances that are given; None is free."""

    activation: Activation
    depth: int
    weight_var: Any = None
    bias_var: Any = None
    noise_var: float | None = None

    @property
    def is_infinite(self) -> bool:
        return self.depth == np.inf

    @property
    def layers(self) -> int:
        """How many weight variances there are to choose; without end they are all the same."""
        return 1 if self.is_infinite else self.depth + 1

    def setting(self, start: tuple[float, float, float]) -> Setting:
        """With the free variances as in `start`; without end, inside the ordered phase."""
        if self.is_infinite:
            start = (0.5, *start[1:])
        weight, bias, noise = (
            value if given is None else given
            for given, value in zip(
                (self.weight_var, self.bias_var, self.noise_var), start, strict=True
            )
        )
        return Setting(Architecture(self.depth, self.activation, weight, bias), noise)


@dataclass(frozen=True)
class Space:
    """A candidate's free variances as a vector of logarithms, and their prior."""

    candidate: Candidate
    inputs: int  # relevances to be found: d, or 0
    ground: Array | None = None  # what their prior is centred at; ones if None

    def pack(self, setting: Setting) -> Array:
        net, candidate = setting.architecture, self.candidate
        parts: list[Any] = []
        if candidate.weight_var is None:
            parts.append(np.broadcast_to(net.weight_var, candidate.layers))
        if candidate.bias_var is None:
            parts.append(np.broadcast_to(net.bias_var, candidate.layers))
        if candidate.noise_var is None:
            parts.append([setting.noise_var])
        if self.inputs:
            parts.append(np.ones(self.inputs) if setting.relevance is None else setting.relevance)
        return np.log(np.clip(np.concatenate([[], *parts]), *np.exp(self.bounds).T))

    @property
    def bounds(self) -> Array:
        """Of every entry, (size, 2)."""
        candidate, layers = self.candidate, self.candidate.layers
        rows = [WEIGHT_BOUNDS] * layers if candidate.weight_var is None else []
        rows += [BIAS_BOUNDS] * layers if candidate.bias_var is None else []
        rows += [NOISE_BOUNDS] if candidate.noise_var is None else []
        rows += [RELEVANCE_BOUNDS] * self.inputs
        return np.log(np.array(rows).reshape(-1, 2))

    def unpack(self, theta: Array, fixed: Setting) -> Setting:
        """The setting at theta; what is not free is as in `fixed`."""
        values, candidate = iter(np.exp(theta)), self.candidate

        def by_layer() -> Any:
            taken = tuple(float(next(values)) for _ in range(candidate.layers))
            return taken[0] if candidate.is_infinite else taken

        net, noise, relevance = fixed.architecture, fixed.noise_var, fixed.relevance
        weight, bias = net.weight_var, net.bias_var
        if candidate.weight_var is None:
            weight = by_layer()
        if candidate.bias_var is None:
            bias = by_layer()
        if candidate.noise_var is None:
            noise = float(next(values))
        if self.inputs:
            relevance = np.array(list(values))
        architecture = Architecture(candidate.depth, candidate.activation, weight, bias)
        return replace(fixed, architecture=architecture, noise_var=noise, relevance=relevance)

    def gradient(self, theta: Array, by_name: dict[str, Any]) -> Array:
        """d/d theta, from derivatives in the variances by their names."""
        candidate = self.candidate
        parts: list[Any] = []
        if candidate.weight_var is None:
            parts.append(np.atleast_1d(by_name["weight_var"]))
        if candidate.bias_var is None:
            parts.append(np.atleast_1d(by_name["bias_var"]))
        if candidate.noise_var is None:
            parts.append([by_name["noise_var"]])
        size = len(theta) - self.inputs
        out = np.concatenate([[], *parts]) * np.exp(theta[:size])
        # Relevances are relative to the inputs as scaled: their derivatives are in the logarithm.
        return np.concatenate([out, by_name["relevance"]]) if self.inputs else out

    def log_prior(self, theta: Array) -> tuple[float, Array]:
        """Normal in every logarithm, and wide: it keeps variances in bounds where data are few."""
        center, spread = self._prior
        apart = (theta - center) / spread
        return -0.5 * float(apart @ apart), -apart / spread

    @property
    def _prior(self) -> tuple[Array, Array]:
        candidate, layers = self.candidate, self.candidate.layers
        weight, bias, noise = STARTS[0]
        rows = [(weight, VARIANCE_SPREAD)] * layers if candidate.weight_var is None else []
        rows += [(bias, VARIANCE_SPREAD)] * layers if candidate.bias_var is None else []
        rows += [(noise, NOISE_SPREAD)] if candidate.noise_var is None else []
        center, spread = np.array(rows).reshape(-1, 2).T
        ground = np.ones(self.inputs) if self.ground is None else self.ground[: self.inputs]
        wide = np.full(self.inputs, RELEVANCE_SPREAD)
        return np.log(np.concatenate([center, ground])), np.concatenate([spread, wide])
