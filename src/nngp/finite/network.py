"""The network of finite width, before it is trained (paper, sec. 2.1 and app. C).

Takes a network of any shape and a width; gives weights drawn from the prior, outputs, and the
kernels that become those of the infinitely wide network as the width grows. The JAX programs are in
`batched_networks` and `tangent_kernel`, which are imported on use.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._numbers import as_reals, check_unmasked, whole_number
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Network
from nngp.covariance import derivative_of
from nngp.errors import ToleranceWarning
from nngp.finite.layout import UnitLayout, hidden_layers, lay_out
from nngp.finite.requirements import need_jax
from nngp.gram import check_network
from nngp.gram.inputs import as_inputs

if TYPE_CHECKING:
    from nngp.finite.batched_networks import NetworkFunction, NetworkPrior
    from nngp.finite.functions import NetworkFunctions

Array = NDArray[np.float32 | np.float64]
NumpyLayer = dict[str, Array]


@dataclass(frozen=True)
class FiniteNetwork:
    """Networks of finite width, drawn from the prior of a network of any shape.

    Every draw is fixed by its seed, and network i is the same (to rounding) however many are drawn.
    Needs the extra `finite`.

    Layer norm subtracts the mean over units and divides by their deviation. Dropout masks are drawn
    for each network, row and unit. Where inputs themselves are masked, added, multiplied or joined,
    they are repeated until they fill the width; and an output that is not an affine map is a hidden
    layer, of which the first units are given: so all converges to the infinitely wide network.

    Parameters
    ----------
    architecture : Network
        `nngp.Architecture`, `nngp.Chain` or any other, of finite depth, with activations that work
        on JAX arrays (all named ones do).
    width : int or sequence of int
        Units in every hidden layer, or in each of them from input to output. Units that are added,
        multiplied or joined belong to one hidden layer, and its width is that of its widest node:
        branches of `nngp.Concat` share it, rounded to whole units.
    n_out : int
        Number of outputs.

    Warns
    -----
    ToleranceWarning
        If whole units cannot have the shares of an `nngp.Concat`.

    Examples
    --------
    >>> import nngp
    >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
    >>> network.sample([[1.0, 2.0], [2.0, 1.0]], n_networks=5).shape
    (5, 2, 1)
    >>> block = nngp.Residual(nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(1.0))
    >>> deep = nngp.Chain(nngp.Dense(1.0), nngp.Repeat(block, 3), nngp.Dense(1.0))
    >>> nngp.FiniteNetwork(deep, width=50).sample([[1.0, 2.0]], n_networks=5).shape
    (5, 1, 1)
    """

    architecture: Network
    width: int | tuple[int, ...]
    n_out: int = 1

    def __post_init__(self) -> None:
        need_jax()
        from nngp.finite.weights import check_traceable

        _check_network(self.architecture)
        layers = hidden_layers(self.architecture.graph)
        object.__setattr__(self, "width", _as_width(self.width, layers))
        object.__setattr__(self, "n_out", whole_number("n_out", self.n_out))
        for activation in self.architecture.activations:
            activation(np.zeros((2, 3)))  # raises unless elementwise
            check_traceable(activation)
        planes = self.architecture.planes
        columns = 1 if planes is None else planes.columns
        for shares, units in self.layout(columns).inexact_shares():
            warnings.warn(
                f"nngp.Concat has shares {shares}, and here {units} units stand for them; take a "
                "width of which the shares are whole units",
                ToleranceWarning,
                stacklevel=3,
            )

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer, input first."""
        layers = hidden_layers(self.architecture.graph)
        return self.width if isinstance(self.width, tuple) else (self.width,) * layers

    def layout(self, d: int) -> UnitLayout:
        """Units of every node for inputs of `d` features."""
        if self.architecture.planes is not None:
            self.architecture.planes.check_columns(d)
        return lay_out(self.architecture.graph, self.width, d, self.n_out)

    def functions(self, d: int) -> "NetworkFunctions":
        """Weights and outputs for inputs of `d` features as functions that JAX can trace, for
        programs that train the network.

        Examples
        --------
        >>> import nngp
        >>> nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50).functions(d=3).n_weights
        2801
        """
        from nngp.finite.functions import NetworkFunctions

        return NetworkFunctions(self.layout(whole_number("d", d)))

    def draw(
        self, d: int, n_networks: int | None = None, seed: int = 0, *, dtype: str = "float64"
    ) -> list[NumpyLayer]:
        """Draw weights of one network for inputs of `d` features, or of many on a leading axis.

        One entry for each affine map, in the order of computation: "w" (fan-in, fan-out) with
        variance weight_var / fan-in, and "b" (fan-out,) with bias_var.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> [layer["w"].shape for layer in network.draw(d=2)]
        [(2, 50), (50, 50), (50, 1)]
        """
        from nngp.finite.batched_networks import evaluate_drawn, weights

        count = 1 if n_networks is None else whole_number("n_networks", n_networks)
        prior = self.prior(whole_number("d", d))
        layers: list[NumpyLayer] = evaluate_drawn(weights, prior, (), count, seed, dtype)
        if n_networks is None:
            return [{name: stack[0] for name, stack in layer.items()} for layer in layers]
        return layers

    def forward(
        self,
        weights: Sequence[Mapping[str, ArrayLike]],
        X: ArrayLike,
        *,
        seed: int | None = None,
    ) -> Array:
        """Compute outputs for inputs (n, d): (n, n_out), or (networks, n, n_out) if the weights are
        those of many networks. In the precision of the weights. It can be traced by `jax.grad` and
        the like, in the weights and in X.

        Dropout is left out, as trained networks predict without it; with a seed its masks are those
        that `sample` draws.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> weights = network.draw(d=2, seed=1)
        >>> network.forward(weights, [[1.0, 2.0], [2.0, 1.0]]).shape
        (2, 1)
        """
        from nngp.finite.batched_networks import outputs

        masks_seed = None if seed is None else whole_number("seed", seed, least=0)
        return self._evaluate_given(outputs, weights, X, masks_seed)

    def sample(
        self,
        X: ArrayLike,
        n_networks: int,
        seed: int = 0,
        *,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Array:
        """Outputs of networks drawn from the prior, (networks, n, n_out): those that `forward`
        gives for `draw` (with the same seed, if there is dropout), with a few weights in memory at
        a time. A bar shows long jobs.

        Examples
        --------
        >>> import nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> X = [[1.0, 2.0], [2.0, 1.0]]
        >>> outputs, again = (network.sample(X, n_networks=5, seed=0) for _ in range(2))
        >>> outputs.shape, bool((outputs == again).all())
        ((5, 2, 1), True)
        """
        from nngp.finite.batched_networks import outputs

        return self._evaluate_at(outputs, X, n_networks, seed, dtype, progress)

    def evaluate(
        self,
        function: Callable[..., Any],
        X: ArrayLike,
        *data: ArrayLike,
        n_networks: int,
        seed: int = 0,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Any:
        """Values of a function of each network drawn from the prior, on a leading axis, with a few
        networks in memory at a time.

        `function(weights, key, X, *data)` is traced by JAX, and gives an array or a tuple of some.
        The weights are those of `draw`. The key is the network's own, for random numbers of the
        function's; with it `NetworkFunctions.forward` drops the units that `sample` does.

        Examples
        --------
        >>> import jax.numpy as jnp, nngp
        >>> network = nngp.FiniteNetwork(nngp.Architecture(2, "tanh"), width=50)
        >>> functions = network.functions(d=2)
        >>> def largest(weights, key, X):
        ...     return jnp.abs(functions.last_hidden(weights, X)).max()
        >>> network.evaluate(largest, [[1.0, 2.0], [2.0, 1.0]], n_networks=5).shape
        (5,)
        """
        from nngp.finite.batched_networks import OfWeights

        arrays = [np.asarray(part, dtype=float) for part in data]
        program = OfWeights(function)
        return self._evaluate_at(program, X, n_networks, seed, dtype, progress, data=arrays)

    def empirical_kernels(
        self,
        X: ArrayLike,
        n_networks: int = 1,
        seed: int = 0,
        *,
        X2: ArrayLike | None = None,
        weights: Sequence[Mapping[str, ArrayLike]] | None = None,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Array:
        """The covariance of each affine map given what goes into it: of an `Architecture`
        (networks, depth + 1, n, n), and otherwise one for each affine map in the order of
        computation. The last is that of the outputs: if these are not an affine map, but a sum of
        some or the layer norm of one, it is one more.

        bias_var + weight_var φ(z)·φ(z')/width: G(K^l) of app. C, which becomes
        `nngp.kernel(architecture.truncated(l), X)` as the width grows. Layer 0 has inputs below it,
        and equals that at any width.

        With `X2`, (m, d), the covariances of X with X2: (networks, depth + 1, n, m). With `weights`
        those of given networks, as `draw` gives them or as training has left them, without dropout;
        of one network without the leading axis.

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

        inputs, part = self._joined(X, X2)
        if weights is not None:
            return self._evaluate_given(kernels, weights, inputs)[(..., *part)]
        found = self._evaluate_at(kernels, inputs, n_networks, seed, dtype, progress)
        return found[(..., *part)]

    def empirical_ntk(
        self,
        X: ArrayLike,
        n_networks: int = 1,
        seed: int = 0,
        *,
        X2: ArrayLike | None = None,
        weights: Sequence[Mapping[str, ArrayLike]] | None = None,
        dtype: str = "float64",
        progress: Callback | bool | None = None,
    ) -> Array:
        """The tangent kernel of each network, (networks, n, n): inner products of the gradients of
        an output in all weights and biases, each in units of its prior deviation, averaged over
        outputs. It becomes `nngp.kernel(nngp.NTK(architecture), X)` as the width grows.

        With `X2`, (m, d), that of X with X2: (networks, n, m). With `weights` that of given
        networks, as in `empirical_kernels`; `nngp.finite.empirical_ntk` takes any JAX function.

        A network takes n_out backward passes, and n² products of its units ((n + m)² with X2);
        gradients in weights are never held. Raises ActivationError for activations that jump, and
        MemoryError where units or kernels do not fit.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> net = nngp.Architecture(1, "relu", 2.0, 0.1)
        >>> wide = nngp.FiniteNetwork(net, width=4000)
        >>> X = np.array([[1.0, 1.0], [1.0, -1.0]])
        >>> bool(abs(wide.empirical_ntk(X)[0] - nngp.kernel(nngp.NTK(net), X)).max() < 0.3)
        True
        """
        from nngp.finite.tangent_kernel import numbers_held, tangent_kernel

        self.check_differentiable()
        inputs, part = self._joined(X, X2)
        held = numbers_held(self.layout(inputs.shape[1]), len(inputs))
        if weights is not None:
            found = self._evaluate_given(tangent_kernel, weights, inputs, held=held)
        else:
            found = self._evaluate_at(
                tangent_kernel, inputs, n_networks, seed, dtype, progress, held
            )
        return found[(..., *part)]

    def check_differentiable(self) -> None:
        """Raise ActivationError for an activation that jumps: its gradient is infinite."""
        for activation in self.architecture.activations:
            derivative_of(activation, 1.0)

    def prior(self, d: int) -> "NetworkPrior":
        """The distribution of the weights for inputs of `d` features."""
        from nngp.finite.batched_networks import NetworkPrior

        net = self.architecture
        return NetworkPrior(self.layout(d), net.weight_vars, net.bias_vars)

    def _evaluate_at(
        self,
        function: "NetworkFunction",
        X: ArrayLike,
        n_networks: int,
        seed: int,
        dtype: str,
        progress: Callback | bool | None,
        held: int | None = None,
        data: Sequence[NDArray[np.float64]] = (),
    ) -> Array:
        """Compute a function of each drawn network and the inputs, with a bar if it takes long."""
        from nngp.finite.batched_networks import evaluate_drawn

        inputs, count = as_inputs(X), whole_number("n_networks", n_networks)
        with Progress("networks", count, progress_for(progress)) as bar:
            prior, advance = self.prior(inputs.shape[1]), bar.advance
            out: Array = evaluate_drawn(
                function, prior, (inputs, *data), count, seed, dtype, advance, held
            )
        return out

    def _evaluate_given(
        self,
        function: "NetworkFunction",
        weights: Sequence[Mapping[str, ArrayLike]],
        X: ArrayLike,
        seed: int | None = None,
        held: int | None = None,
    ) -> Array:
        """Compute a function of each of the networks whose weights are given, and the inputs."""
        from nngp.finite.batched_networks import evaluate_given, is_traced

        traced = is_traced(X) and np.ndim(X) == 2
        inputs = cast(Array, X) if traced else as_inputs(X)
        layers, stacked = self._checked(weights, inputs.shape[1])
        inputs_as_weights = inputs if traced else inputs.astype(layers[0]["w"].dtype)
        prior = self.prior(inputs.shape[1])
        out: Array = evaluate_given(function, prior, layers, inputs_as_weights, seed, held)
        return out if stacked else out[0]

    def _joined(self, X: ArrayLike, X2: ArrayLike | None) -> tuple[Array, tuple[slice, slice]]:
        """All inputs, and where the kernel of the first with the second ones stands in theirs."""
        first = as_inputs(X)
        if X2 is None:
            return first, (slice(None), slice(None))
        second = as_inputs(X2, "X2")
        if first.shape[1] != second.shape[1]:
            raise ValueError(
                f"X has {first.shape[1]} features and X2 has {second.shape[1]}; they must agree"
            )
        return np.vstack([first, second]), (slice(len(first)), slice(len(first), None))

    def _checked(
        self, weights: Sequence[Mapping[str, ArrayLike]], d: int
    ) -> tuple[list[NumpyLayer], bool]:
        """The weights with a leading axis, and whether they had it."""
        layout = self.layout(d)
        try:
            layers = [{name: _as_real(layer[name]) for name in "wb"} for layer in weights]
            many = layers[0]["w"].ndim == 3
        except (TypeError, ValueError, KeyError, IndexError):
            layers, many = [], False
        stacked = layers if many else [{k: a[None] for k, a in one.items()} for one in layers]
        count = len(stacked[0]["w"]) if stacked else 0
        wanted = [((count, a, b), (count, b)) for a, b in layout.shapes]
        if count == 0 or [(one["w"].shape, one["b"].shape) for one in stacked] != wanted:
            raise ValueError(
                f"weights must be those of a network with layers {layout.sizes} from inputs to "
                f"outputs, as draw({d}) gives them"
            )
        return stacked, many


def _check_network(network: Network) -> None:
    """Raise unless networks of finite width can be drawn from it."""
    check_network(network)
    if network.is_tangent:
        raise TypeError(
            "a tangent kernel is no network that can be drawn; pass the network itself "
            "(nngp.NTK(...).network), and ask for its empirical_ntk"
        )
    if network.base is not network:
        raise TypeError(
            f"an nngp.{type(network).__name__} cannot be drawn; draw its network "
            "(Invariant.network), and average its outputs over the transformations"
        )
    if network.is_infinite:
        raise ValueError(
            "a network of infinite depth cannot be drawn; give a finite depth, for example "
            "architecture.truncated(50)"
        )


def _as_real(values: ArrayLike) -> Array:
    """An array in its own precision if that is single or double, otherwise in double."""
    from nngp.finite.batched_networks import is_traced

    if is_traced(values):
        return cast(Array, values)
    check_unmasked(values, "weights")
    out = np.asarray(values)
    return out if out.dtype in (np.float32, np.float64) else as_reals(values, "weights")


def _as_width(width: int | Sequence[int], layers: int) -> int | tuple[int, ...]:
    if isinstance(width, int) or np.ndim(width) == 0:
        return whole_number("width", width)
    widths = tuple(whole_number("width", one) for one in width)
    if len(widths) != layers:
        raise ValueError(
            f"width has {len(widths)} values and the network has {layers} hidden layers; give one "
            "number, or one for each of them"
        )
    return widths
