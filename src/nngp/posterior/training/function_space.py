"""Gradient descent on any loss, with momentum, in the space of functions.

A network of infinite width moves along its tangent kernel. Its outputs at the training points are
f = f₀ + Θ a, and at others f* = f*₀ + Θ* a, with weights a that begin at 0 and follow

    a' = -η ∇L(f)                        gradient descent in small steps
    a'' = -(1 - μ) a' - η ∇L(f)          with momentum μ: the equation of the heavy ball

in time of steps. For the squared error without momentum `trained` has the closed form; here the
equation is integrated, by LSODA, which notices where it is stiff.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._machine import single_threaded_blas
from nngp._numbers import as_real, as_reals
from nngp.errors import NotConvergedError
from nngp.posterior.given import as_cross_matrix, as_kernel_matrix
from nngp.posterior.setup import as_targets
from nngp.posterior.training.trained import as_positive, as_times

Loss = str | Callable[[Any, Any], Any]
Slope = Callable[[Array], Array]
TOLERANCE = 1e-10  # of the integration, relative to the largest weight


@single_threaded_blas()
def descend_in_function_space(
    theta: ArrayLike,
    Y: ArrayLike,
    loss: Loss,
    *,
    time: ArrayLike,
    start: ArrayLike = 0.0,
    learning_rate: float = 1.0,
    momentum: float | None = None,
) -> "FunctionSpaceDescent":
    """Train an infinitely wide network on any loss, given its tangent kernel.

    The same as neural-tangents' `predict.gradient_descent`.

    Parameters
    ----------
    theta : array_like, (n, n)
        Tangent kernel of the training points, such as ``nngp.kernel(nngp.NTK(network), X)``.
    Y : array_like, (n,) or (n, outputs)
    loss : {"squared", "cross_entropy"} or callable
        |f - Y|² / (2 n outputs), as in `nngp.training.train_ensemble`; the mean over rows of -Σ Y
        log softmax(f); or loss(f, Y) that JAX can differentiate, which needs the extra `jax`.
    time : float or array_like
        Finite times, in steps of gradient descent. Several give results with a leading axis.
    start : float or array_like
        Outputs of the untrained network at the training points, as Y; a draw of the prior.
    learning_rate : float
    momentum : float, optional
        Between 0 and 1. None for descent without inertia, whose velocity is the gradient.

    Returns
    -------
    FunctionSpaceDescent

    Raises
    ------
    NotConvergedError
        If the equation could not be integrated: the loss or its gradient is not finite somewhere.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> classes = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0]).astype(float)
    >>> theta = nngp.kernel(nngp.NTK(nngp.Architecture(2, "erf", 2.0, 0.1)), X)
    >>> trained = nngp.training.descend_in_function_space(
    ...     theta, classes, "cross_entropy", time=500.0
    ... )
    >>> bool((trained.outputs.argmax(axis=1) == classes.argmax(axis=1)).all())
    True
    """
    tangent = as_kernel_matrix(theta, "theta")
    targets, single = as_targets(Y, len(tangent))
    times = as_times(time)
    if not np.isfinite(times).all():
        raise ValueError("time must be finite: where training ends is not known for every loss")
    begin = _as_start(start, targets.shape, single)
    rate, slope = as_positive("learning_rate", learning_rate), _slope_of(loss, targets)
    brake = None if momentum is None else 1.0 - _as_momentum(momentum)
    weights = _integrate(tangent, begin, slope, rate, brake, times)
    one_time = not np.ndim(time)
    return FunctionSpaceDescent(times, weights, begin + tangent @ weights, single, one_time)


@dataclass(frozen=True)
class FunctionSpaceDescent:
    """Training in function space at some times. Made by `nngp.training.descend_in_function_space`.

    Attributes
    ----------
    times : array (times,)
    weights : array (times, n, outputs)
        a, by which the tangent kernel is multiplied.

    Examples
    --------
    >>> import nngp
    >>> trained = nngp.training.descend_in_function_space(
    ...     [[1.0]], [1.0], "squared", time=[0.0, 1.0]
    ... )
    >>> trained.outputs.round(4).tolist()  # 1 - exp(-1)
    [[0.0], [0.6321]]
    >>> trained.predict([[2.0], [0.0]]).round(4).tolist()
    [[0.0, 0.0], [1.2642, 0.0]]
    """

    times: Array
    weights: Array
    _fitted: Array
    _single: bool
    _one_time: bool

    @property
    def outputs(self) -> Array:
        """Outputs at the training points, as Y was given, with a leading axis for several times."""
        return self._shaped(self._fitted)

    def predict(self, theta_star: ArrayLike, start: ArrayLike = 0.0) -> Array:
        """Outputs at m test points, from their tangent kernel with the training points, (m, n),
        and the outputs of the untrained network there.

        Examples
        --------
        >>> import nngp
        >>> trained = nngp.training.descend_in_function_space([[1.0]], [1.0], "squared", time=1.0)
        >>> trained.predict([[2.0], [0.0]]).round(4).tolist()
        [1.2642, 0.0]
        """
        theta = as_cross_matrix(theta_star, "theta_star", self.weights.shape[1])
        shape = len(theta), self.weights.shape[2]
        return self._shaped(_as_start(start, shape, self._single) + theta @ self.weights)

    def _shaped(self, outputs: Array) -> Array:
        found = outputs[..., 0] if self._single else outputs
        return found[0] if self._one_time else found


def _integrate(
    theta: Array, start: Array, slope: Slope, rate: float, brake: float | None, times: Array
) -> Array:
    """The weights at each time, in any order."""
    from scipy.integrate import solve_ivp  # slow to import

    shape = start.shape

    def flow(time: float, state: Array) -> Array:
        if brake is None:
            return -rate * slope(start + theta @ state.reshape(shape)).ravel()
        weights, velocity = np.split(state, 2)
        force = -rate * slope(start + theta @ weights.reshape(shape)).ravel()
        return np.concatenate([velocity, force - brake * velocity])

    at, place = np.unique(times, return_inverse=True)
    first = np.zeros(start.size * (1 if brake is None else 2))
    size = float(np.abs(flow(0.0, first)).max()) * max(float(at[-1]), 1.0)
    if not at[-1] > 0 or size == 0:
        return np.zeros((len(times), *shape))
    found = solve_ivp(
        flow, (0.0, float(at[-1])), first, "LSODA", at, rtol=TOLERANCE, atol=TOLERANCE * size * 1e-3
    )
    if not found.success or not np.isfinite(found.y).all():
        raise NotConvergedError(
            f"training could not be followed to time {at[-1]:g}: {found.message}; check that the "
            "loss and its gradient are finite, or pass a smaller time"
        )
    by_time: Array = found.y.T[place][:, : start.size]
    return by_time.reshape(len(times), *shape)


def _slope_of(loss: Loss, Y: Array) -> Slope:
    """The gradient of a loss in the outputs."""
    if callable(loss):
        return _traced_slope(loss, Y)
    if loss == "squared":
        return lambda f: (f - Y) / Y.size
    if loss == "cross_entropy":
        return lambda f: _cross_entropy_slope(f, Y)
    raise ValueError(f"loss must be 'squared', 'cross_entropy' or a function, got {loss!r}")


def _cross_entropy_slope(f: Array, Y: Array) -> Array:
    shares = np.exp(f - f.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return (shares * Y.sum(axis=1, keepdims=True) - Y) / len(Y)


def _traced_slope(loss: Callable[[Any, Any], Any], Y: Array) -> Slope:
    """The gradient of a function that JAX traces, in float64."""
    try:
        import jax
    except ImportError:
        raise ImportError(
            "a loss that is a function needs JAX for its gradient; install it with: "
            "pip install 'nngp[jax]'"
        ) from None
    gradient = jax.jit(jax.grad(loss))

    def slope(f: Array) -> Array:
        with jax.enable_x64(True):
            return np.asarray(gradient(f, Y), dtype=np.float64)

    return slope


def _as_start(start: ArrayLike, shape: tuple[int, ...], single: bool) -> Array:
    """Outputs of the untrained network, (rows, outputs)."""
    values = as_reals(start, "start")
    if single and values.ndim == 1:
        values = values[:, None]
    if values.ndim and values.shape != shape:
        wanted = shape[:1] if single else shape
        raise ValueError(f"start must be 0 or have shape {wanted}, got {np.shape(start)}")
    if not np.isfinite(values).all():
        raise ValueError("start must hold finite outputs")
    return np.broadcast_to(values, shape).copy()


def _as_momentum(momentum: float) -> float:
    value = as_real(momentum, "momentum")
    if not 0 <= value < 1:
        raise ValueError(f"momentum must be at least 0 and below 1, got {momentum}")
    return value
