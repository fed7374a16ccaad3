"""The network of finite width, as it is before it has seen data (paper, sec. 2.1 and app. C).

Takes an architecture and a width; gives weights drawn from the prior, outputs, and the kernels that
become those of the Gaussian process as the width grows. What JAX does is in `many`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._progress import Progress, progress_for
from nngp.architecture import Architecture
from nngp.finite.requirements import need_packages, whole
from nngp.gram import check_architecture
from nngp.gram.inputs import as_inputs

if TYPE_CHECKING:
    from nngp.finite.many import Family

Array = NDArray[np.floating[Any]]
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
        object.__setattr__(self, "n_out", whole("n_out", self.n_out))
        self.architecture.activation(np.zeros((2, 3)))  # says it if this is not elementwise
        check_traceable(self.architecture.activation)

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of each hidden layer, input first."""
        depth = self.architecture.depth
        return self.width if isinstance(self.width, tuple) else (self.width,) * depth

    def draw(
        self, d: int, networks: int | None = None, seed: int = 0, *, dtype: str = "float64"
    ) -> list[dict[str, Array]]:
        """Weights of one network for inputs of `d` features, or of many on a leading axis.

        One entry for each affine map, input first: "w" (fan-in, fan-out) with variance
        weight_var / fan-in, and "b" (fan-out,) with bias_var.
        """
        from nngp.finite.many import weights

        count = 1 if networks is None else whole("networks", networks)
        layers = self.ask(weights, (), count, seed, dtype=dtype, d=whole("d", d))
        if networks is None:
            return [{name: stack[0] for name, stack in layer.items()} for layer in layers]
        return layers

    def forward(self, weights: Sequence[dict[str, Any]], X: ArrayLike) -> Array:
        """Outputs for inputs (n, d): (n, n_out), or (networks, n, n_out) if the weights are those
        of many networks. In the precision of the weights."""
        from nngp.finite.many import forward_each

        inputs = as_inputs(X)
        layers, many = self._checked(weights, inputs.shape[1])
        out = forward_each(
            layers, self.architecture.activation, inputs.astype(layers[0]["w"].dtype)
        )
        return out if many else out[0]

    def sample(
        self,
        X: ArrayLike,
        networks: int,
        seed: int = 0,
        *,
        dtype: str = "float64",
        progress: Any = None,
    ) -> Array:
        """Outputs of networks drawn from the prior, (networks, n, n_out): those that `forward`
        gives for `draw`, with a few weights in memory at a time. A bar shows long jobs."""
        from nngp.finite.many import outputs

        return self._tracked(outputs, X, networks, seed, dtype, progress)

    def empirical_kernels(
        self,
        X: ArrayLike,
        networks: int = 1,
        seed: int = 0,
        *,
        dtype: str = "float64",
        progress: Any = None,
    ) -> Array:
        """The covariance of each layer given the one below it, (networks, depth + 1, n, n).

        bias_var + weight_var φ(z)·φ(z')/width: G(K^l) of app. C, which becomes
        `nngp.kernel(architecture.truncated(l), X)` as the width grows. Layer 0 has inputs below it,
        and is that at any width.
        """
        from nngp.finite.many import kernels

        return self._tracked(kernels, X, networks, seed, dtype, progress)

    def ask(
        self,
        question: Any,
        data: tuple[Any, ...],
        networks: int,
        seed: int,
        *,
        dtype: str = "float64",
        advance: Callable[[int], None] = lambda done: None,
        d: int | None = None,
    ) -> Any:
        """The answers of so many networks, stacked, to a question of `many`: a function of a
        `Drawn` network and the data. `advance` is told how many more are done; `d` is that of the
        first data unless given."""
        from nngp.finite.many import ask_each

        count, start = whole("networks", networks), whole("seed", seed, least=0)
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
        family = self._family(data[0].shape[1] if d is None else d)
        arrays = tuple(np.asarray(part, dtype) for part in data)
        return ask_each(question, family, arrays, count, start, dtype, advance)

    def seconds(self, X: Array) -> float:
        """About how long one network and its outputs take on two cores."""
        return self._family(X.shape[1]).n_weights * (SECONDS[0] + len(X) * SECONDS[1])

    def _tracked(
        self, question: Any, X: ArrayLike, networks: int, seed: int, dtype: str, progress: Any
    ) -> Array:
        """`ask` about inputs, with a bar if it takes long."""
        inputs, count = as_inputs(X), whole("networks", networks)
        expected = count * self.seconds(inputs)
        with Progress("networks", count, progress_for(progress, expected), expected) as bar:
            out: Array = self.ask(
                question, (inputs,), count, seed, dtype=dtype, advance=bar.advance
            )
        return out

    def _family(self, d: int) -> "Family":
        from nngp.finite.many import Family

        net = self.architecture
        sizes = (d, *self.widths, self.n_out)
        return Family(net.activation, sizes, net.weight_vars, net.bias_vars)

    def _checked(self, weights: Any, d: int) -> tuple[list[dict[str, Any]], bool]:
        """The weights with a leading axis, and whether they had it."""
        sizes = self._family(d).sizes
        try:
            layers = [{name: _real(layer[name]) for name in "wb"} for layer in weights]
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


def _real(values: Any) -> Array:
    """As it is in single or double precision, otherwise in double."""
    out = np.asarray(values)
    return out if out.dtype in (np.float32, np.float64) else out.astype(np.float64)


def _as_width(width: Any, depth: int) -> int | tuple[int, ...]:
    if np.ndim(width) == 0:
        return whole("width", width)
    widths = tuple(whole("width", one) for one in width)
    if len(widths) != depth:
        raise ValueError(
            f"width has {len(widths)} values and the network has {depth} hidden layers; give one "
            "number, or one for each of them"
        )
    return widths
