"""Convergence of networks to the Gaussian process as they become wide (sec. 2.2 and app. C).

Takes a network of any shape and a few inputs; gives, for each width and layer, the kernels of
networks drawn from the prior beside the exact one, and the distribution of their outputs beside the
normal. Of `nngp.NTK(network)` it gives the tangent kernel of the outputs instead.

Theory. Given the layer below, units are independent and Gaussian, so the kernel of a layer is a
mean of `width` independent terms: its error falls as width^(-1/2). Given all hidden layers an
output is Gaussian with variance k, the last kernel; as k differs from network to network, an output
is a mixture of Gaussians, symmetric with heavy tails: its excess kurtosis is 3 Var k / (E k)², of
order depth / width. A tangent kernel is made of such means, too, and its error falls alike.

Whether outputs look normal is judged by D'Agostino and Pearson's K² of skewness and kurtosis. It
looks at the tails, where mixtures of this kind differ first, and not at location and scale, so
that an error of the variance is not taken for another shape; in normal samples it is chi-squared
with two degrees of freedom. Outputs of one network share its hidden layers, so each network gives
one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nngp._arrays import Array
from nngp._numbers import whole_number
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import NTK, Network
from nngp.finite.map_limits import map_limits
from nngp.finite.network import FiniteNetwork
from nngp.gram import kernel
from nngp.gram.inputs import as_inputs

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)
NETWORKS = 2000
FEWEST = 20  # networks from which on the p-value of K² can be trusted


@dataclass(frozen=True)
class Decay:
    """Relative errors of kernels against width, with standard errors, and straight lines fitted to
    their logarithms; layer 1 is the first that depends on the width.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> error = np.array([[0.4], [0.2], [0.1]])  # of one layer, at three widths
    >>> decay = nngp.finite.Decay((4, 16, 64), error, 0.01 * error)
    >>> decay.slope.round(3).tolist()
    [-0.5]
    """

    widths: tuple[int, ...]
    error: Array  # (widths, depth)
    error_of_error: Array

    @cached_property
    def fitted(self) -> slice:
        """The widths that slopes are fitted to: the wider half, where 1/width² has died out."""
        return slice(-max(2, len(self.widths) // 2), None)

    @cached_property
    def slope(self) -> Array:
        """Slope of log error against log width, (depth,); -1/2 in theory."""
        return self._regression @ np.log(self.error[self.fitted])

    @cached_property
    def slope_error(self) -> Array:
        """Standard error of `slope`, from the scatter between networks."""
        relative = self.error_of_error[self.fitted] / self.error[self.fitted]
        return np.sqrt(self._regression**2 @ relative**2)

    def line(self, layer: int) -> Array:
        """The fitted error of a layer (from 1) at all widths."""
        x, slope = np.log(self.widths), self.slope[layer - 1]
        level = np.mean(np.log(self.error[self.fitted, layer - 1]) - slope * x[self.fitted])
        return np.asarray(np.exp(level + slope * x))

    @cached_property
    def _regression(self) -> Array:
        """Weights of the logarithms of the errors in the least-squares slope."""
        x = np.log(self.widths[self.fitted])
        x = x - x.mean()
        return np.asarray(x / (x @ x))


@dataclass(frozen=True)
class Convergence:
    """Networks of several widths beside the infinitely wide one.

    Kernels are those of layers 1 .. depth (layer 0 is exact at any width); in other shapes those
    of affine maps that do not read inputs, in the order of computation, the last that of the
    outputs; of an `nngp.NTK` the tangent kernel alone. They are in units of the exact
    √(K(x, x) K(x', x')); so the exact ones are correlations. Errors of estimates are standard
    errors.

    Examples
    --------
    >>> import nngp
    >>> from nngp import finite
    >>> net, X = nngp.Architecture(1, "relu"), [[1.0, 1.0], [1.0, -1.0]]
    >>> found = finite.convergence(net, X, widths=(16, 256), n_networks=50, progress=False)
    >>> bool(found.error[1, 0] < found.error[0, 0] / 2), bool(abs(found.slope[0] + 0.5) < 0.2)
    (True, True)
    """

    architecture: Network
    X: Array  # (n, d)
    widths: tuple[int, ...]
    n_networks: int  # of each width
    exact: Array  # (depth, n, n)
    mean: Array  # (widths, depth, n, n), over networks
    spread: Array  # the same, standard deviation over networks
    error: Array  # (widths, depth): root mean square over networks and pairs
    error_of_error: Array
    outputs: Array  # (widths, networks): one output at X[0], over its exact standard deviation
    expected_kurtosis: Array  # (widths,): excess, 3 Var k / (E k)² with the k of these networks
    statistic: Array  # (widths,): K² of the outputs
    p_value: Array  # (widths,): the chance of so large a K² if outputs were normal

    @cached_property
    def decay(self) -> Decay:
        """The errors against width, and their slopes."""
        return Decay(self.widths, self.error, self.error_of_error)

    @property
    def fitted(self) -> slice:
        """The widths that slopes are fitted to."""
        return self.decay.fitted

    @property
    def slope(self) -> Array:
        """Slope of log error against log width, (depth,); -1/2 in theory."""
        return self.decay.slope

    @property
    def slope_error(self) -> Array:
        """Standard error of `slope`, from the scatter between networks."""
        return self.decay.slope_error

    @cached_property
    def kurtosis(self) -> Array:
        """Excess kurtosis of the outputs, (widths,); 0 for a Gaussian."""
        return np.asarray(stats.kurtosis(self.outputs, axis=1))

    @cached_property
    def kurtosis_error(self) -> Array:
        """Standard error of `kurtosis`, to first order in the fourth and second moment."""
        squares = stats.zscore(self.outputs, axis=1) ** 2
        change = squares**2 - 2 * (self.kurtosis[:, None] + 3) * squares
        return np.asarray(change.std(axis=1) / np.sqrt(self.n_networks))


def convergence(
    network: Network,
    X: ArrayLike,
    widths: Sequence[int] = WIDTHS,
    n_networks: int = NETWORKS,
    seed: int = 0,
    *,
    progress: Callback | bool | None = None,
) -> Convergence:
    """Draw `n_networks` networks of each width, and compare them with the infinitely wide one.

    With `nngp.NTK(network)` tangent kernels are compared. The default widths and networks take 30
    to 45 s on two cores at depth 3; time grows with depth, with the number of networks, and with
    the square of the largest width. A bar shows it.

    Examples
    --------
    >>> import nngp
    >>> from nngp import finite
    >>> net, X = nngp.Architecture(1, "relu"), [[1.0, 1.0], [1.0, -1.0]]
    >>> found = finite.convergence(net, X, widths=(16, 256), n_networks=50, progress=False)
    >>> found.error.shape  # of each width and layer
    (2, 1)
    """
    inputs, sizes = as_inputs(X), _as_widths(widths)
    count = whole_number("n_networks", n_networks, least=FEWEST)
    drawn = network.network if isinstance(network, NTK) else network
    nets = [FiniteNetwork(drawn, width) for width in sizes]
    exact = _exact(drawn, inputs, tangent=drawn is not network)
    weights = count * sum(net.layout(inputs.shape[1]).n_weights for net in nets)
    with Progress("networks", weights, progress_for(progress)) as bar:
        rows = [_at_width(net, exact, count, seed, bar.advance) for net in nets]
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return Convergence(network, inputs, sizes, count, exact.correlations, *columns)


def three_inputs() -> Array:
    """Inputs at 0, 45 and 135 degrees, with x·x/d = 1."""
    angles = np.radians([0.0, 45.0, 135.0])
    return np.sqrt(2.0) * np.column_stack([np.cos(angles), np.sin(angles)])


class _Exact(NamedTuple):
    """Kernels of the infinitely wide network."""

    X: Array  # (n, d)
    places: list[int]  # of the kernels that are compared, in those that networks have
    tangent: bool  # whether the tangent kernel is compared instead
    correlations: Array  # (kernels, n, n)
    deviations: Array  # (kernels, n)
    output_deviation: float  # of an output at X[0]


def _at_width(
    network: FiniteNetwork,
    exact: _Exact,
    n_networks: int,
    seed: int,
    advance: Callable[[float], None],
) -> tuple[Array | float, ...]:
    """The entries of one width in the fields of `Convergence`, from `mean` on."""
    outputs, of_maps, compared = _drawn(network, exact, n_networks, seed, advance)
    kernels = compared / _products(exact.deviations)
    standard = outputs[:, 0, 0] / exact.output_deviation
    error, error_of_error = _root_mean_square(kernels - exact.correlations)
    last = of_maps[:, -1, 0, 0] / exact.output_deviation**2
    if not last.any():
        raise ValueError(
            f"all {n_networks} networks of width {network.width} have died out: their outputs are "
            "0; take wider ones, more networks, less depth or a bias_var"
        )
    return (
        kernels.mean(axis=0),
        kernels.std(axis=0, ddof=1),
        error,
        error_of_error,
        standard,
        3 * last.var(ddof=1) / last.mean() ** 2,
        *stats.normaltest(standard),
    )


def _root_mean_square(deviations: Array) -> tuple[Array, Array]:
    """Root mean square of (networks, depth, n, n) over networks and pairs i <= j, and its standard
    error: networks are independent and pairs are not."""
    pairs = np.triu_indices(deviations.shape[-1])
    squares = np.mean(deviations[:, :, *pairs] ** 2, axis=2)
    error = np.sqrt(squares.mean(axis=0))
    if not error.all():
        raise ValueError(
            "a layer's kernel is exact at every width, so nothing converges; give inputs in "
            "several directions (with sign or step, one input is not enough)"
        )
    return error, squares.std(axis=0, ddof=1) / np.sqrt(len(squares)) / (2 * error)


def _drawn(
    network: FiniteNetwork,
    exact: _Exact,
    n_networks: int,
    seed: int,
    advance: Callable[[float], None],
) -> tuple[Array, Array, Array]:
    """Outputs of networks, kernels of their affine maps, and those kernels that are compared."""
    from nngp.finite.batched_networks import evaluate_drawn, outputs_and_kernels
    from nngp.finite.tangent_kernel import numbers_held, outputs_and_tangents

    if exact.tangent:
        network.check_differentiable()
    X, prior = exact.X, network.prior(exact.X.shape[1])
    outputs, kernels, *tangents = evaluate_drawn(
        outputs_and_tangents if exact.tangent else outputs_and_kernels,
        prior,
        (X,),
        n_networks,
        seed,
        advance=lambda done: advance(done * prior.layout.n_weights),
        held=numbers_held(prior.layout, len(X)) if exact.tangent else None,
    )
    return outputs, kernels, tangents[0][:, None] if exact.tangent else kernels[:, exact.places]


def _exact(network: Network, X: Array, tangent: bool) -> _Exact:
    limits = map_limits(network)
    if not limits:
        raise ValueError("a network of depth 0 has no width to converge in; take depth 1 or more")
    compared = [NTK(network)] if tangent else list(limits.values())
    K = np.array([kernel(limit, X) for limit in compared])
    deviations = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    if not deviations.all():
        row = int(np.argwhere(deviations == 0)[0, 1])
        raise ValueError(
            f"the network is zero at row {row} of X whatever its weights; leave that row out, or "
            "give the network a bias_var"
        )
    output = np.sqrt(kernel(network, X)[0, 0]) if tangent else deviations[-1, 0]
    correlations = K / _products(deviations)
    return _Exact(X, list(limits), tangent, correlations, deviations, float(output))


def _products(deviations: Array) -> Array:
    """√(K(x, x) K(x', x')) of each layer and pair, (depth, n, n)."""
    return deviations[:, :, None] * deviations[:, None, :]


def _as_widths(widths: Sequence[int]) -> tuple[int, ...]:
    if np.ndim(widths) != 1 or len(widths) < 2:
        raise ValueError(f"widths must be two or more numbers of units, got {widths!r}")
    sizes = tuple(whole_number("width", width) for width in widths)
    if any(a >= b for a, b in pairwise(sizes)):
        raise ValueError(f"widths must become larger from one to the next, got {sizes}")
    return sizes
