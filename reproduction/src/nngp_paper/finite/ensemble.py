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
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from nngp import FiniteNetwork
from nngp.finite import NetworkFunctions
from nngp_paper.arrays import Array, DeviceArray
from nngp_paper.numbers import as_matrix, whole_number

NOISE_STREAM = 2**31 - 1  # folded into a network's key; a number that no layer has


def last_layer_ensemble(
    network: FiniteNetwork,
    X: ArrayLike,
    Y: ArrayLike,
    X_test: ArrayLike,
    n_networks: int = 100,
    noise_var: float = 0.01,
    seed: int = 0,
    tolerance: float = 1e-6,
    *,
    steps: int = 100_000,
    progress: bool | None = None,
) -> Array:
    """Train networks in their last layer; gives outputs at test inputs, (networks, n_test, n_out).

    Parameters
    ----------
    network : FiniteNetwork
        Drawn as in `network.sample` with the same seed; the ensemble starts from those draws.
    X, Y : array_like, (n, d) and (n,) or (n, n_out)
    X_test : array_like, (n_test, d)
    n_networks : int
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
    >>> last_layer_ensemble(wide, [[0.0], [1.0]], [0.0, 1.0], [[0.5]], n_networks=10).shape
    (10, 1, 1)
    """
    inputs, tests, targets = checked_data(network, X, Y, X_test)
    limits = _as_tolerance(tolerance), whole_number("steps", steps)
    out, left = network.evaluate(
        LastLayer(_train_last_layer, network.functions(inputs.shape[1])),
        inputs,
        *(targets, tests, last_variances(network)),
        np.array([as_noise(noise_var), *limits]),
        n_networks=n_networks,
        seed=seed,
        progress=progress,
    )
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
    inputs, tests = as_matrix(X, "X"), as_matrix(X_test, "X_test")
    if inputs.shape[1] != tests.shape[1]:
        raise ValueError(
            f"X has {inputs.shape[1]} features and X_test has {tests.shape[1]}; they must agree"
        )
    targets = as_matrix(Y, "Y")
    if len(targets) != len(inputs):
        raise ValueError(f"Y has {len(targets)} rows and the inputs have {len(inputs)}")
    if targets.shape[1] != network.n_out:
        raise ValueError(
            f"Y has {targets.shape[1]} outputs and the network has {network.n_out}; make it with "
            f"n_out={targets.shape[1]}"
        )
    return inputs, tests, targets


def last_variances(network: FiniteNetwork) -> Array:
    """The weight variance and the bias variance of the last layer."""
    return np.array([network.architecture.weight_vars[-1], network.architecture.bias_vars[-1]])


def as_noise(noise_var: float) -> float:
    """A noise variance, checked."""
    if not isinstance(noise_var, Real) or not 0 <= float(noise_var) < np.inf:
        raise ValueError(f"noise_var must be finite and not negative, got {noise_var!r}")
    return float(noise_var)


@dataclass(frozen=True)
class LastLayer:
    """A function of a drawn network and data, as `FiniteNetwork.evaluate` calls it: of its
    `features` at training and test inputs, and of what `function` needs beside them."""

    function: Callable[..., Any]
    functions: NetworkFunctions

    def __call__(
        self,
        weights: list[dict[str, DeviceArray]],
        key: DeviceArray,
        X: DeviceArray,
        Y: DeviceArray,
        X_test: DeviceArray,
        variances: DeviceArray,
        numbers: DeviceArray,
    ) -> Any:
        hidden = self.functions.last_hidden(weights, jnp.concatenate([X, X_test]), key)
        own, tests = jnp.split(features(hidden, variances), [len(X)])
        start = _in_units_of_prior(weights[-1], variances)
        noise = jax.random.fold_in(key, NOISE_STREAM)
        return self.function(own, Y, tests, numbers, start, noise)


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
    own: DeviceArray,
    Y: DeviceArray,
    tests: DeviceArray,
    numbers: DeviceArray,
    start: DeviceArray,
    key: DeviceArray,
) -> tuple[DeviceArray, DeviceArray]:
    """Outputs of the trained network at test inputs, and the gradient's norm at the end relative to
    that at the start. `numbers` are noise_var, tolerance and steps."""
    noise_var, tolerance, steps = numbers
    noise = jax.random.normal(key, Y.shape, Y.dtype)
    targets = Y + jnp.sqrt(noise_var) * noise

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


def features(hidden: DeviceArray, variances: DeviceArray) -> DeviceArray:
    """ψ of inputs from what goes into the last layer: (n, width + 1)."""
    weight_var, bias_var = variances
    bias = jnp.full((len(hidden), 1), jnp.sqrt(bias_var), hidden.dtype)
    return jnp.concatenate([hidden * jnp.sqrt(weight_var / hidden.shape[1]), bias], axis=1)


def _in_units_of_prior(layer: dict[str, DeviceArray], variances: DeviceArray) -> DeviceArray:
    """The last layer as drawn, in units of the prior deviation: (width + 1, n_out)."""
    weight_var, bias_var = variances
    scale = jnp.sqrt(bias_var)
    bias = layer["b"] / jnp.where(scale > 0, scale, 1.0)
    return jnp.concatenate([layer["w"] * jnp.sqrt(len(layer["w"]) / weight_var), bias[None]])
