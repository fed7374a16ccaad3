"""One layer as a JAX function of (q1, q2, covariance), with an explicit derivative.

Takes an activation; gives E[phi(u) phi(v)] and E[phi(u)²] as functions that can be jitted, mapped
and differentiated. Tracing through arccos or sqrt would give NaN where u = v; the derivative is

    dF = E[phi' phi'] d cov + sum_i (E[u phi'(u) phi(v)] - cov E[phi' phi']) / (2 q_i) d q_i

which is finite there. The closed forms are the ones NumPy uses. Other activations are integrated
at fixed nodes: the trapezoid rule in rotated coordinates if phi is smooth, Gauss-Legendre between
kink lines if it is not.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nngp._arrays import Array, DeviceArray
from nngp._safe import correlation
from nngp.architecture import Activation
from nngp.architecture.activation import KernelMapOnly
from nngp.covariance.closed_form import closed_form
from nngp.covariance.derivative import derivative_of
from nngp.covariance.resolve import resolve
from nngp.errors import ActivationError

Function = Callable[[DeviceArray], DeviceArray]
PairFunction = Callable[[DeviceArray, DeviceArray, DeviceArray], DeviceArray]

REACH = 9.25  # standard deviations
STEP = 0.125  # of the trapezoid rule: 1e-12 for tanh up to variance 5
ORDER = 12  # Gauss points between kink lines


class DifferentiableLayer(NamedTuple):
    """covariance(q1, q2, cov) = E[phi(u) phi(v)]; variance(q) = E[phi(u)²]."""

    covariance: PairFunction
    variance: Function


def differentiable_layer(
    activation: Activation, params: Mapping[str, Any] | None = None
) -> DifferentiableLayer:
    """Covariance and variance of a layer as JAX functions, for `jit`, `vmap` and `grad`; `params`
    replaces values of the activation's parameters, by numbers or tracers."""
    value, slope, radial, in_params = _expectations(activation)
    values = tuple({**activation.params, **(params or {})}[name] for name in activation.params)

    @jax.custom_jvp
    def covariance(q1: DeviceArray, q2: DeviceArray, cov: DeviceArray, p: Any) -> DeviceArray:
        return value(q1, q2, _snapped(correlation(jnp, cov, q1, q2)), p)

    @covariance.defjvp
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[DeviceArray, DeviceArray]:
        q1, q2, cov, p = primals
        dq1, dq2, dcov, dp = tangents
        c = correlation(jnp, cov, q1, q2)
        steep = slope(q1, q2, c, p)

        def in_var(q: DeviceArray, other: DeviceArray) -> DeviceArray:
            # At zero variance the change of the input's own variance is of second order too.
            numerator = radial(q, other, c, p) - cov * steep
            return jnp.where(q > 0, numerator / jnp.where(q > 0, 2 * q, 1.0), 0.0)

        tangent = steep * dcov + in_var(q1, q2) * dq1 + in_var(q2, q1) * dq2
        return value(q1, q2, _snapped(c), p), tangent + in_params(q1, q2, c, p, dp)

    @jax.custom_jvp
    def variance(q: DeviceArray, p: Any) -> DeviceArray:
        return value(q, q, jnp.where(q > 0, 1.0, 0.0).astype(jnp.result_type(q)), p)

    @variance.defjvp
    def _(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[DeviceArray, DeviceArray]:
        (q, p), (dq, dp) = primals, tangents
        positive, one = jnp.maximum(q, 1e-30), jnp.ones_like(q)
        rate = radial(positive, positive, one, p) / positive
        return variance(q, p), rate * dq + in_params(positive, positive, one, p, dp)

    return DifferentiableLayer(
        lambda q1, q2, cov: covariance(q1, q2, cov, values), lambda q: variance(q, values)
    )


def differentiable_slope(
    activation: Activation, params: Mapping[str, Any] | None = None
) -> DifferentiableLayer:
    """E[phi'(u) phi'(v)] likewise, which the tangent kernel multiplies by."""
    slope = derivative_of(activation, 4.0)
    if slope.closed_form is None:  # as JAX differentiates it
        fn, kinks = _derivative(activation.fn), activation.kinks
        slope = Activation(fn, slope.name, kinks, params=activation.params)
    return differentiable_layer(slope, params)


@lru_cache(maxsize=64)
def _derivative(phi: Callable[..., DeviceArray]) -> Callable[..., DeviceArray]:
    """phi', in the precision of its argument."""

    def derivative(x: DeviceArray, **params: Any) -> DeviceArray:
        x = jnp.asarray(x)
        return jax.jvp(lambda x: phi(x, **params), (x,), (jnp.ones_like(x),))[1]

    return derivative


def _snapped(c: DeviceArray) -> DeviceArray:
    """Exactly ±1 where rounding alone keeps c from it: where phi jumps, F has a root there."""
    near = jnp.abs(c) > 1 - 8 * jnp.finfo(c.dtype).eps
    return jnp.where(near, jnp.sign(c), c)


def _kept_off_one(c: DeviceArray) -> DeviceArray:
    """Clip c to just inside ±1, where the slope of an activation that jumps is infinite."""
    largest = 1 - 4 * jnp.finfo(c.dtype).eps
    return jnp.clip(c, -largest, largest)


Expectations = tuple[Callable[..., DeviceArray], ...]  # of q1, q2, c and the parameters


def _expectations(activation: Activation) -> Expectations:
    """E[phi phi], E[phi' phi'] and E[u phi'(u) phi(v)] of (q1, q2, c, parameters), and the rate of
    the first when the parameters move at given rates."""
    if activation.closed_form is not None:
        form = closed_form(activation.closed_form)
        if isinstance(activation.fn, KernelMapOnly):
            _check_traceable(activation.fn.dual, activation.name, 3)
        jumps = form.is_steep
        return (
            lambda q1, q2, c, p: form.value(jnp, q1, q2, c),
            lambda q1, q2, c, p: form.slope(jnp, q1, q2, _kept_off_one(c) if jumps else c),
            lambda q1, q2, c, p: form.radial(jnp, q1, q2, c),
            lambda q1, q2, c, p, dp: jnp.zeros_like(c),
        )
    return _numeric_expectations(activation)


def _check_traceable(function: Callable[..., DeviceArray], name: str, arguments: int) -> None:
    """Raise ActivationError unless JAX can trace a function of this many arrays."""
    try:
        jax.eval_shape(function, *[jnp.zeros(1)] * arguments)
    except Exception as cause:
        raise ActivationError(
            f"activation '{name}' cannot be traced by JAX; write it with jax.numpy"
        ) from cause


def _numeric_expectations(activation: Activation) -> Expectations:
    """The same of an activation without a closed form, by quadrature at fixed nodes."""
    resolved = resolve(activation, 4.0)
    if any(resolved.jumps):
        raise ActivationError(
            f"activation '{activation.name}' jumps and has no closed form, so JAX cannot "
            "differentiate its kernel; nngp.kernel and nngp.curves.layer_derivatives can"
        )
    names, kinks = list(activation.params), np.array(resolved.kinks)
    _check_traceable(activation.apply, activation.name, 1)

    def phi(x: DeviceArray, p: Any) -> DeviceArray:
        return activation.fn(x, **dict(zip(names, p, strict=True)))

    def slope(x: DeviceArray, p: Any) -> DeviceArray:
        return _derivative(activation.fn)(x, **dict(zip(names, p, strict=True)))

    def expect(f: Any, g: Any, q1: Any, q2: Any, c: Any, p: Any) -> DeviceArray:
        return _integrate(lambda x: f(x, p), lambda x: g(x, p), kinks, q1, q2, c)

    def in_params(q1: Any, q2: Any, c: Any, p: Any, dp: Any) -> DeviceArray:
        if not names:
            return jnp.zeros_like(c)

        def moved(x: DeviceArray, p: Any) -> DeviceArray:
            return jax.jvp(lambda p: phi(x, p), (p,), (dp,))[1]

        return expect(moved, phi, q1, q2, c, p) + expect(phi, moved, q1, q2, c, p)

    return (
        partial(expect, phi, phi),
        partial(expect, slope, slope),
        partial(expect, lambda u, p: u * slope(u, p), phi),
        in_params,
    )


def _integrate(
    f: Function, g: Function, kinks: Array, q1: DeviceArray, q2: DeviceArray, c: DeviceArray
) -> DeviceArray:
    """E[f(u) g(v)] in the coordinates of `quadrature`, for scalars q1, q2, c."""
    s1, s2 = jnp.sqrt(q1), jnp.sqrt(q2)
    size = jnp.abs(c)
    sign = jnp.where(c < 0, -1.0, 1.0)
    alpha, beta = jnp.sqrt(0.5 * (1 + size)), jnp.sqrt(jnp.maximum(0.5 * (1 - size), 0.0))
    if len(kinks) == 0:
        z = jnp.arange(-REACH, REACH + 0.5 * STEP, STEP)
        weight = STEP * jnp.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        z2, w2 = z, weight
        z1, w1 = z[None, :], weight[None, :]
    else:
        # At zero variance u is 0 and crosses no kink line: any finite position will do
        k1, k2 = kinks / jnp.maximum(s1, 1e-30), sign * kinks / jnp.maximum(s2, 1e-30)
        crossings = (k1[:, None] - k2).ravel() / (2 * jnp.maximum(beta, 1e-12))
        z2, w2 = _gauss(jnp.concatenate([jnp.linspace(-REACH, REACH, 13), crossings]))
        shift = beta * z2[:, None]
        regular = jnp.broadcast_to(jnp.linspace(-REACH, REACH, 13), (len(z2), 13))
        z1, w1 = _gauss(
            jnp.concatenate([regular, (k1 - shift) / alpha, (k2 + shift) / alpha], axis=1)
        )
    u = s1 * (alpha * z1 + beta * z2[:, None])
    v = sign * s2 * (alpha * z1 - beta * z2[:, None])
    return jnp.sum(f(u) * g(v) * w1 * w2[:, None])


def _gauss(edges: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Composite Gauss-Legendre along the last axis, the normal density in the weights."""
    t, w = np.polynomial.legendre.leggauss(ORDER)
    edges = jnp.sort(jnp.clip(edges, -REACH, REACH), axis=-1)
    half = 0.5 * jnp.diff(edges, axis=-1)[..., None]
    z = 0.5 * (edges[..., 1:] + edges[..., :-1])[..., None] + half * t
    weight = half * w * jnp.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    shape = (*edges.shape[:-1], -1)
    return z.reshape(shape), weight.reshape(shape)
