"""Ensembles of networks trained in the last layer, which sample the Gaussian process's posterior.

Takes networks of finite width and data; gives the outputs of an ensemble, each network trained in
its last layer only, by gradient descent. Hidden layers stay as drawn from the prior. The last layer
starts at a draw v0 from the prior and descends on

    ½ |f(X) - (Y + ε)|² + ½ noise_var |v - v0|²,   ε ~ N(0, noise_var)

with weights v in units of their prior deviation: f(x) = ψ(x)·v with v ~ N(0, 1), where ψ holds
√(weight_var/width) φ(z) and, for the bias, √bias_var. So ψ(x)·ψ(x') is the network's own kernel,
and descent treats all weights alike.

The minimum is a draw from the posterior given the hidden layers (sample-then-optimise: Matthews et
al., "Sample-then-optimize posterior sampling for Bayesian linear models", 2017). So, as the width
grows, mean and spread of the ensemble become those of
`nngp.condition(architecture, X, Y, noise_var=noise_var).predict(X_test)`.
"""

from collections.abc import Callable
from numbers import Real
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from nngp import FiniteNetwork
from nngp.architecture.graph import Affine
from nngp.finite.batched_networks import NOISE_STREAM, DrawnNetwork, evaluate_drawn, hidden
from nngp.gram.inputs import as_inputs
from nngp.posterior.noise import as_noise
from nngp.posterior.setup import as_targets
from nngp_paper.arrays import Array, DeviceArray
from nngp_paper.numbers import whole_number
from nngp_paper.progress import Callback, Progress, progress_for


def last_layer_ensemble(
    network: FiniteNetwork,
    X: ArrayLike,
    Y: ArrayLike,
    X_test: ArrayLike,
    networks: int = 100,
    noise_var: float = 0.01,
    seed: int = 0,
    tolerance: float = 1e-6,
    *,
    steps: int = 100_000,
    progress: Callback | bool | None = None,
) -> Array:
    """Train networks in their last layer; gives outputs at test inputs, (networks, n_test, n_out).

    Parameters
    ----------
    network : FiniteNetwork
        Drawn as in `network.sample` with the same seed; the ensemble starts from those draws.
    X, Y : array_like, (n, d) and (n,) or (n, n_out)
    X_test : array_like, (n_test, d)
    networks : int
    noise_var : float
        Variance of the observation noise; with 0 the targets are fitted exactly, by the weights
        nearest to the draw.
    tolerance : float
        Descent ends when the gradient's norm is below `tolerance` times its first value.
    steps : int
        The most steps of descent; a network that needs more is an error.

    Examples
    --------
    >>> import nngp
    >>> from nngp_paper.finite import last_layer_ensemble
    >>> wide = nngp.FiniteNetwork(nngp.Architecture(1, "erf"), width=200)
    >>> last_layer_ensemble(wide, [[0.0], [1.0]], [0.0, 1.0], [[0.5]], networks=10).shape
    (10, 1, 1)
    """
    inputs, tests, targets = checked_data(network, X, Y, X_test)
    limits = _as_tolerance(tolerance), whole_number("steps", steps)
    numbers = np.array([as_noise(noise_var), *limits])
    count = whole_number("networks", networks)
    with Progress("networks", count, progress_for(progress)) as bar:
        prior, data = network.prior(inputs.shape[1]), (inputs, targets, tests, numbers)
        out, left = evaluate_drawn(_train_last_layer, prior, data, count, seed, advance=bar.advance)
    _check_trained(left, *limits)
    return np.asarray(out)


def checked_data(
    network: FiniteNetwork, X: ArrayLike, Y: ArrayLike, X_test: ArrayLike
) -> tuple[Array, Array, Array]:
    """Training inputs, test inputs and targets as arrays that fit the network and each other."""
    if not isinstance(network, FiniteNetwork):
        raise TypeError(
            f"the first argument must be an nngp.FiniteNetwork, got {type(network).__name__}"
        )
    if not isinstance(network.architecture.graph[-1], Affine):
        raise ValueError(
            "this network does not end in one affine map, so it has no last layer to train; add "
            "nngp.Dense(1.0, 0.0) at its end"
        )
    inputs, tests = as_inputs(X), as_inputs(X_test, "X_test")
    if inputs.shape[1] != tests.shape[1]:
        raise ValueError(
            f"X has {inputs.shape[1]} features and X_test has {tests.shape[1]}; they must agree"
        )
    targets, _ = as_targets(Y, len(inputs))
    if targets.shape[1] != network.n_out:
        raise ValueError(
            f"Y has {targets.shape[1]} outputs and the network has {network.n_out}; make it with "
            f"n_out={targets.shape[1]}"
        )
    return inputs, tests, targets


def _as_tolerance(tolerance: float) -> float:
    if not isinstance(tolerance, Real) or not 0 < float(tolerance) < 1:
        raise ValueError(f"tolerance must be a number between 0 and 1, got {tolerance!r}")
    return float(tolerance)


def _check_trained(left: Array, tolerance: float, steps: int) -> None:
    if left.max() > tolerance:
        raise RuntimeError(
            f"gradient descent of network {int(left.argmax())} is at {left.max():.1e} of its first "
            f"gradient after {steps} steps, and the tolerance is {tolerance:g}; allow more steps "
            "or a larger tolerance, or give a larger noise_var"
        )


def _train_last_layer(
    net: DrawnNetwork, X: DeviceArray, Y: DeviceArray, X_test: DeviceArray, numbers: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """Outputs of the trained network at test inputs, and the gradient's norm at the end relative to
    that at the start. `numbers` are noise_var, tolerance and steps."""
    noise_var, tolerance, steps = numbers
    drawn = jax.random.normal(jax.random.fold_in(net.key, NOISE_STREAM), Y.shape, "float64")
    noise = drawn.astype(Y.dtype)  # the same in all precisions
    targets = Y + jnp.sqrt(noise_var) * noise
    own, tests = jnp.split(features(net, jnp.concatenate([X, X_test])), [len(X)])
    start = _drawn_last_layer(net)

    def loss(v: DeviceArray) -> DeviceArray:
        misfit, moved = own @ v - targets, v - start
        return 0.5 * jnp.sum(misfit**2) + 0.5 * jnp.sum(noise_var * moved**2)

    # No curvature exceeds the largest row sum of the Gram matrix, so the step 1/bound is safe.
    bound = jnp.abs(own @ own.T).sum(axis=1).max() + noise_var
    v, left = _descend(loss, start, 1 / bound, tolerance, steps)
    return tests @ v, left


class _Descent(NamedTuple):
    last: DeviceArray  # the point after the last step
    ahead: DeviceArray  # the same with momentum: the gradient is taken here
    gradient: DeviceArray
    momentum: DeviceArray
    step: DeviceArray


def _descend(
    loss: Callable[[DeviceArray], DeviceArray],
    start: DeviceArray,
    rate: DeviceArray,
    tolerance: DeviceArray,
    steps: DeviceArray,
) -> tuple[DeviceArray, DeviceArray]:
    """Nesterov's gradient descent, restarted whenever momentum points uphill, until the gradient's
    norm is below `tolerance` times the first. Gives the point, and the ratio of the two norms."""
    slope = jax.grad(loss)
    first = slope(start)
    size = jnp.linalg.norm(first)

    def going(s: _Descent) -> DeviceArray:
        return (jnp.linalg.norm(s.gradient) > tolerance * size) & (s.step < steps)

    def move(s: _Descent) -> _Descent:
        here = s.ahead - rate * s.gradient
        uphill = jnp.vdot(s.gradient, here - s.last) > 0
        t = jnp.where(uphill, 1.0, (1 + jnp.sqrt(1 + 4 * s.momentum**2)) / 2)
        ahead = here + jnp.where(uphill, 0.0, (s.momentum - 1) / t) * (here - s.last)
        return _Descent(here, ahead, slope(ahead), t, s.step + 1)

    zero = jnp.zeros((), start.dtype)
    end = jax.lax.while_loop(going, move, _Descent(start, start, first, zero + 1, zero))
    return end.ahead, jnp.linalg.norm(end.gradient) / jnp.where(size > 0, size, 1.0)


def features(net: DrawnNetwork, X: DeviceArray) -> DeviceArray:
    """ψ of the inputs: (n, width + 1)."""
    h = hidden(net, X)[-1]
    bias = jnp.full((len(h), 1), jnp.sqrt(net.bias_vars[-1]), h.dtype)
    return jnp.concatenate([h * jnp.sqrt(net.weight_vars[-1] / h.shape[1]), bias], axis=1)


def _drawn_last_layer(net: DrawnNetwork) -> DeviceArray:
    """The last layer as drawn, in units of the prior deviation: (width + 1, n_out)."""
    w, b = net.layers[-1]["w"], net.layers[-1]["b"]
    scale = jnp.sqrt(net.bias_vars[-1])
    bias = b / jnp.where(scale > 0, scale, 1.0)
    return jnp.concatenate([w * jnp.sqrt(len(w) / net.weight_vars[-1]), bias[None]])
