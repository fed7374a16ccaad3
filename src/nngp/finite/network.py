"""The network of finite width, before it is trained (paper, sec. 2.1 and app. C).

Takes an architecture and a width; gives weights drawn from the prior, outputs, and the kernels that
become those of the Gaussian process as the width grows. The JAX programs are in `batched_networks`,
which is imported on use.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._numbers import as_reals, check_unmasked, whole_number
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Architecture
from nngp.finite.requirements import need_packages
from nngp.gram import check_architecture
from nngp.gram.inputs import as_inputs

if TYPE_CHECKING:
    from nngp.finite.batched_networks import NetworkFunction, NetworkPrior

Array = NDArray[np.float32 | np.float64]
NumpyLayer = dict[str, Array]
SECONDS = 1.5e-8, 2e-10  # on two cores: to draw a weight, and to use it for one input


@dataclass(frozen=True)
class FiniteNetwork:
    """Fully connected networks of finite width, drawn from the prior of an architecture.

    Every draw is fixed by its seed, and network i is the same (to rounding) however many are drawn.
    Needs the extra `finite`.

    Parameters
    ----------
    architecture : Architecture
        Of finite depth, with an activation that works on JAX arrays (all named ones do).
    width : int or sequence of int
        Units in every hidden layer, or in each of them from input to output.
    n_out : int
        Number of outputs.

    Examples
    --------
    >>> import nngp
    >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
    >>> network.sample([[1.0, 2.0], [2.0, 1.0]], networks=5).shape
    (5, 2, 1)
    """

    architecture: Architecture
    width: int | tuple[int, ...]
    n_out: int = 1

    def __post_init__(self) -> None:
        need_packages("jax")
        from nngp.finite.weights import check_traceable

        check_architecture(self.architecture)
        if self.architecture.is_infinite:
            raise ValueError(
                "a network of infinite depth cannot be drawn; give a finite depth, for example "
                "architecture.truncated(50)"
            )
        object.__setattr__(self, "width", _as_width(self.width, self.architecture.depth))
        object.__setattr__(self, "n_out", whole_number("n_out", self.n_out))
        self.architecture.activation(np.zeros((2, 3)))  # raises unless elementwise
        check_traceable(self.architecture.activation)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer, input first."""
        depth = self.architecture.depth
        return self.width if isinstance(self.width, tuple) else (self.width,) * depth

    def draw(
        self, d: int, networks: int | None = None, seed: int = 0, *, dtype: str = "float64"
    ) -> list[NumpyLayer]:
        """Draw weights of one network for inputs of `d` features, or of many on a leading axis.

        One entry for each affine map, input first: "w" (fan-in, fan-out) with variance
        weight_var / fan-in, and "b" (fan-out,) with bias_var.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> [layer["w"].shape for layer in network.draw(d=2)]
        [(2, 50), (50, 50), (50, 1)]
        """
        from nngp.finite.batched_networks import evaluate_drawn, weights

        count = 1 if networks is None else whole_number("networks", networks)
        prior = self.prior(whole_number("d", d))
        layers: list[NumpyLayer] = evaluate_drawn(weights, prior, (), count, seed, dtype)
        if networks is None:
            return [{name: stack[0] for name, stack in layer.items()} for layer in layers]
        return layers

    def forward(self, weights: Sequence[Mapping[str, ArrayLike]], X: ArrayLike) -> Array:
        """Compute outputs for inputs (n, d): (n, n_out), or (networks, n, n_out) if the weights are
        those of many networks. In the precision of the weights.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> weights = network.draw(d=2, seed=1)
        >>> network.forward(weights, [[1.0, 2.0], [2.0, 1.0]]).shape
        (2, 1)
        """
        from nngp.finite.batched_networks import forward_given

        inputs = as_inputs(X)
        layers, stacked = self._checked(weights, inputs.shape[1])
        inputs_as_weights = inputs.astype(layers[0]["w"].dtype)
        out: Array = forward_given(layers, self.architecture.activation, inputs_as_weights)
        return out if stacked else out[0]

    def sample(
        self,
        X: ArrayLike,
        networks: int,
        seed: int = 0,
        *,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Array:
        """Outputs of networks drawn from the prior, (networks, n, n_out): those that `forward`
        gives for `draw`, with a few weights in memory at a time. A bar shows long jobs.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> X = [[1.0, 2.0], [2.0, 1.0]]
        >>> outputs, again = (network.sample(X, networks=5, seed=0) for _ in range(2))
        >>> outputs.shape, bool((outputs == again).all())
        ((5, 2, 1), True)
        """
        from nngp.finite.batched_networks import outputs

        return self._evaluate_at(outputs, X, networks, seed, dtype, progress)

    def empirical_kernels(
        self,
        X: ArrayLike,
        networks: int = 1,
        seed: int = 0,
        *,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Array:
        """The covariance of each layer given the one below it, (networks, depth + 1, n, n).

        bias_var + weight_var φ(z)·φ(z')/width: G(K^l) of app. C, which becomes
        `nngp.kernel(architecture.truncated(l), X)` as the width grows. Layer 0 has inputs below it,
        and equals that at any width.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> net = nngp.Architecture(1, "relu", 2.0, 0.1)
        >>> wide = nngp.FiniteNetwork(net, width=4000)
        >>> X = np.array([[1.0, 1.0], [1.0, -1.0]])
        >>> bool(abs(wide.empirical_kernels(X)[0, -1] - nngp.kernel(net, X)).max() < 0.1)
        True
        """
        from nngp.finite.batched_networks import kernels

        return self._evaluate_at(kernels, X, networks, seed, dtype, progress)

    def prior(self, d: int) -> "NetworkPrior":
        """The distribution of the weights for inputs of `d` features."""
        from nngp.finite.batched_networks import NetworkPrior

        net = self.architecture
        sizes = (d, *self.widths, self.n_out)
        return NetworkPrior(net.activation, sizes, net.weight_vars, net.bias_vars)

    def seconds(self, X: Array) -> float:
        """About how long one network and its outputs take on two cores.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "relu"), width=50, n_out=3)
        >>> import numpy as np
        >>> network.seconds(np.ones((100, 10))) < 1
        True
        """
        return self.prior(X.shape[1]).n_weights * (SECONDS[0] + len(X) * SECONDS[1])

    def _evaluate_at(
        self,
        function: "NetworkFunction",
        X: ArrayLike,
        networks: int,
        seed: int,
        dtype: str,
        progress: Callback | bool | None,
    ) -> Array:
        """Compute a function of each drawn network and the inputs, with a bar if it takes long."""
        from nngp.finite.batched_networks import evaluate_drawn

        inputs, count = as_inputs(X), whole_number("networks", networks)
        expected = count * self.seconds(inputs)
        with Progress("networks", count, progress_for(progress, expected), expected) as bar:
            prior, advance = self.prior(inputs.shape[1]), bar.advance
            out: Array = evaluate_drawn(function, prior, (inputs,), count, seed, dtype, advance)
        return out

    def _checked(
        self, weights: Sequence[Mapping[str, ArrayLike]], d: int
    ) -> tuple[list[NumpyLayer], bool]:
        """The weights with a leading axis, and whether they had it."""
        sizes = self.prior(d).sizes
        try:
            layers = [{name: _as_real(layer[name]) for name in "wb"} for layer in weights]
            many = layers[0]["w"].ndim == 3
        except (TypeError, ValueError, KeyError, IndexError):
            layers, many = [], False
        stacked = layers if many else [{k: a[None] for k, a in one.items()} for one in layers]
        count = len(stacked[0]["w"]) if stacked else 0
        wanted = [((count, a, b), (count, b)) for a, b in pairwise(sizes)]
        if count == 0 or [(one["w"].shape, one["b"].shape) for one in stacked] != wanted:
            raise ValueError(
                f"weights must be those of a network with layers {sizes} from inputs to outputs, "
                f"as draw({d}) gives them"
            )
        return stacked, many


def _as_real(values: ArrayLike) -> Array:
    """An array in its own precision if that is single or double, otherwise in double."""
    check_unmasked(values, "weights")
    out = np.asarray(values)
    return out if out.dtype in (np.float32, np.float64) else as_reals(values, "weights")


def _as_width(width: int | Sequence[int], depth: int) -> int | tuple[int, ...]:
    if isinstance(width, int) or np.ndim(width) == 0:
        return whole_number("width", width)
    widths = tuple(whole_number("width", one) for one in width)
    if len(widths) != depth:
        raise ValueError(
            f"width has {len(widths)} values and the network has {depth} hidden layers; give one "
            "number, or one for each of them"
        )
    return widths
