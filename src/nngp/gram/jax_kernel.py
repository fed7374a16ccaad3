"""The kernel of one pair as a pure JAX function, for people who live in JAX."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nngp._numbers import check_unmasked
from nngp.architecture import Headed, Invariant, Network
from nngp.architecture.graph import (
    Added,
    Affine,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
)
from nngp.curve import weighted_sum

Three = tuple[Any, Any, Any]  # of the first input with itself, of the second, of both


class _Pair(NamedTuple):
    """Covariances at a node, and the tangent kernel if it is asked for."""

    cov: Three
    theta: Three | None


def jax_kernel(architecture: Network) -> Callable[..., Any]:
    """The kernel of a network as a JAX function of (x1, x2, weight_var, bias_var).

    Parameters
    ----------
    architecture : Architecture or another Network
        Gives the shape and the activations, and the variances where they are not passed. Of an
        `NTK` the function is the tangent kernel.

    Returns
    -------
    k : callable
        k(x1, x2, weight_var=None, bias_var=None) for vectors x1, x2 of one length; the
        variances are scalars or have one entry for each affine map (depth + 1 in a chain). Jit
        it, vmap it, and differentiate it once in all four arguments; gradients are finite at
        x1 == x2, x1 == -x2 and at zero.

    Notes
    -----
    Precision is that of the arguments: use `jax.enable_x64` for float64. Activations with a
    closed form are exact. Others are integrated at fixed nodes, which is good to 1e-12 while
    the layers' variances stay below about 5; `nngp.kernel` has no such limit. Needs the extra
    `nngp[jax]`.

    Examples
    --------
    >>> import jax, nngp
    >>> import jax.numpy as jnp
    >>> k = nngp.jax_kernel(nngp.Architecture(2, "relu", weight_var=2.0, bias_var=0.0))
    >>> round(float(k(jnp.ones(3), jnp.ones(3))), 5)
    2.0
    >>> slope = jax.grad(k, argnums=2)(jnp.ones(3), jnp.ones(3), 2.0, 0.0)  # in weight_var
    >>> round(float(slope), 4)
    3.0
    """
    try:
        import jax.numpy as jnp
    except ImportError:
        raise ImportError(
            "nngp.jax_kernel needs JAX; install it with: pip install 'nngp[jax]'"
        ) from None
    from nngp.covariance.differentiable import differentiable_layer, differentiable_slope

    if isinstance(architecture, Headed):
        raise TypeError("nngp.jax_kernel has no layers on top of an average; take its parts")
    if isinstance(architecture, Invariant):
        return _averaged(jnp, architecture)
    graph, wanted = architecture.graph, architecture.is_tangent
    layers = {phi: differentiable_layer(phi) for phi in architecture.activations}
    slopes = {phi: differentiable_slope(phi) for phi in architecture.activations if wanted}
    count = len(architecture.weight_vars)

    def per_layer(given: Any, default: tuple[float, ...], like: Any) -> Any:
        values = jnp.asarray(default if given is None else given, dtype=like.dtype)
        if values.shape not in ((), (count,)):
            raise ValueError(
                f"variances must be scalars or have {count} entries (one for each affine map), "
                f"got shape {values.shape}"
            )
        return jnp.broadcast_to(values, (count,))

    def k(x1: Any, x2: Any, weight_var: Any = None, bias_var: Any = None) -> Any:
        check_unmasked([x1, x2, weight_var, bias_var], "an argument of the kernel")
        x1, x2 = _vectors(jnp, x1, x2)
        weights = per_layer(weight_var, architecture.weight_vars, x1)
        biases = per_layer(bias_var, architecture.bias_vars, x1)
        maps = iter(zip(weights, biases, strict=True))
        found = [_inputs(jnp, x1, x2, wanted)]
        for node in graph:
            own = [found[source] for source in node.sources]
            if isinstance(node, Affine):
                found.append(_affine(own[0], *next(maps)))
            elif isinstance(node, Nonlinearity):
                slope = slopes.get(node.activation)
                found.append(_through(own[0], layers[node.activation], slope))
            else:
                found.append(_joined(jnp, node, own))
        out = found[-1]
        return (out.cov if out.theta is None else out.theta)[2]

    return k


def _averaged(jnp: Any, network: Invariant) -> Callable[..., Any]:
    """The kernel of an average over orders of the columns."""
    import jax

    kernel = jax_kernel(network.network)

    def k(x1: Any, x2: Any, weight_var: Any = None, bias_var: Any = None) -> Any:
        x1, x2 = _vectors(jnp, x1, x2)
        orbit = network.orbit(len(x1))
        if orbit.has_functions:
            raise TypeError(
                "functions of rows are computed by NumPy, not inside a JAX program; apply them to "
                "the inputs, and average nngp.jax_kernel of the network over their pairs"
            )
        index = jnp.asarray(np.array([order.index for order in orbit.orders]))
        signs = [1.0 if order.signs is None else order.signs for order in orbit.orders]
        moved = x2[index] * jnp.asarray(
            np.array([np.broadcast_to(one, len(x2)) for one in signs]), dtype=x2.dtype
        )
        values = jax.vmap(lambda one: kernel(x1, one, weight_var, bias_var))(moved)
        return values @ jnp.asarray(orbit.order_weights, dtype=values.dtype)

    return k


def _vectors(jnp: Any, x1: Any, x2: Any) -> tuple[Any, Any]:
    """The two inputs as real vectors of one length and precision."""
    x1, x2 = jnp.asarray(x1), jnp.asarray(x2)
    if jnp.iscomplexobj(x1) or jnp.iscomplexobj(x2):
        raise TypeError("x1 and x2 must be real; pass real and imaginary parts apart")
    if x1.ndim != 1 or x1.shape != x2.shape:
        raise ValueError(
            f"x1 and x2 must be vectors of one length, got {x1.shape} and {x2.shape}; use "
            "jax.vmap for batches"
        )
    if not jnp.issubdtype(x1.dtype, jnp.floating):
        x1 = x1.astype(jnp.result_type(float))
    return x1, x2.astype(x1.dtype)


def _inputs(jnp: Any, x1: Any, x2: Any, wanted: bool) -> _Pair:
    """The inputs themselves; no weight has been seen, so Θ is zero if it is wanted."""
    d, zero = len(x1), jnp.zeros((), x1.dtype)
    cov = jnp.sum(x1 * x1) / d, jnp.sum(x2 * x2) / d, jnp.sum(x1 * x2) / d
    return _Pair(cov, (zero, zero, zero) if wanted else None)


def _each(rule: Callable[..., Any], *parts: Sequence[Any]) -> Three:
    """A rule for the first input with itself, for the second, and for both."""
    first, second, both = (rule(*some) for some in zip(*parts, strict=True))
    return first, second, both


def _affine(own: _Pair, weight: Any, bias: Any) -> _Pair:
    cov = _each(lambda a: bias + weight * a, own.cov)
    if own.theta is None:
        return _Pair(cov, None)
    return _Pair(cov, _each(lambda a, t: a + weight * t, cov, own.theta))


def _through(own: _Pair, layer: Any, slope: Any) -> _Pair:
    def values(function: Any) -> Three:
        q1, q2, _ = own.cov
        return function.variance(q1), function.variance(q2), function.covariance(*own.cov)

    if own.theta is None:
        return _Pair(values(layer), None)
    return _Pair(values(layer), _each(lambda f, t: f * t, values(slope), own.theta))


def _joined(jnp: Any, node: Node, own: Sequence[_Pair]) -> _Pair:
    """Sums, products, layer norm and dropout."""
    match node:
        case Added():
            return _mixed(own, [1.0] * len(own))
        case Joined(shares=shares):
            return _mixed(own, shares)
        case Multiplied():
            return _multiplied(*own)
        case Normalised():
            root1, root2 = (jnp.sqrt(q) for q in own[0].cov[:2])
            return _scaled(own[0], (1 / root1**2, 1 / root2**2, 1 / (root1 * root2)))
        case Masked(keep=keep):  # the two inputs have masks of their own
            return _scaled(own[0], (1 / keep, 1 / keep, 1.0))
    raise TypeError(f"{type(node).__name__} is not joined")


def _multiplied(one: _Pair, other: _Pair) -> _Pair:
    cov = _each(lambda a, b: a * b, one.cov, other.cov)
    if one.theta is None or other.theta is None:
        return _Pair(cov, None)
    both = one.cov, other.cov, one.theta, other.theta
    return _Pair(cov, _each(lambda a, b, s, t: s * b + a * t, *both))


def _mixed(own: Sequence[_Pair], weights: Sequence[float]) -> _Pair:
    def total(*parts: Any) -> Any:
        return weighted_sum(weights, parts)

    thetas = [one.theta for one in own if one.theta is not None]
    cov = _each(total, *(one.cov for one in own))
    return _Pair(cov, _each(total, *thetas) if thetas else None)


def _scaled(own: _Pair, factors: Three) -> _Pair:
    def times(part: Any, factor: Any) -> Any:
        return part * factor

    theta = None if own.theta is None else _each(times, own.theta, factors)
    return _Pair(_each(times, own.cov, factors), theta)
