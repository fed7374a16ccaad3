"""Where the two halves meet: trained networks whose answers are those of the Gaussian process.

Takes networks of finite width and data; gives the outputs of an ensemble, each trained in its last
layer only, by gradient descent. Hidden layers are draws from the prior and stay. The last layer
starts at a draw v0 from the prior and descends on

    ½ |f(X) - (Y + ε)|² + ½ noise_var |v - v0|²,   ε ~ N(0, noise_var)

with weights v in units of their prior deviation. The minimum is a draw from the posterior given the
hidden layers (sample-then-optimise: Matthews et al., "Sample-then-optimize posterior sampling for
Bayesian linear models", 2017). So, as the width grows, mean and spread of the ensemble become those
of `nngp.condition(architecture, X, Y, noise_var=noise_var).predict(X_test)`.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._progress import Progress, progress_for
from nngp.finite.network import FiniteNetwork
from nngp.finite.requirements import whole
from nngp.gram.inputs import as_inputs
from nngp.posterior.targets import as_noise, as_targets

Array = NDArray[np.float64]
SECONDS = 1e-6  # on two cores, for a weight and a training input: some hundred steps of descent


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
    progress: Any = None,
) -> Array:
    """Outputs at test inputs of networks trained in their last layer: (networks, n_test, n_out).

    Parameters
    ----------
    network : FiniteNetwork
        Drawn as in `network.sample` with the same seed, which is what the ensemble starts from.
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
    >>> from nngp.finite import last_layer_ensemble
    >>> wide = nngp.FiniteNetwork(nngp.Architecture(1, "erf"), width=200)
    >>> last_layer_ensemble(wide, [[0.0], [1.0]], [0.0, 1.0], [[0.5]], networks=10).shape
    (10, 1, 1)
    """
    from nngp.finite.last_layer import train

    inputs, tests, targets = _checked(network, X, Y, X_test)
    limits = _as_tolerance(tolerance), whole("steps", steps)
    numbers = [np.full(1, value) for value in (as_noise(noise_var), *limits)]
    count = whole("networks", networks)
    features = (inputs.shape[1], *network.widths)[-1]
    expected = count * (network.seconds(inputs) + SECONDS * len(inputs) * features)
    with Progress("networks", count, progress_for(progress, expected), expected) as bar:
        out, left = network.ask(
            train, (inputs, targets, tests, *numbers), count, seed, advance=bar.advance
        )
    _check_trained(left, *limits)
    return np.asarray(out)


def _checked(
    network: Any, X: ArrayLike, Y: ArrayLike, X_test: ArrayLike
) -> tuple[Array, Array, Array]:
    if not isinstance(network, FiniteNetwork):
        raise TypeError(
            f"the first argument must be an nngp.FiniteNetwork, got {type(network).__name__}"
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


def _as_tolerance(tolerance: Any) -> float:
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
