"""The kernel of one pair as a pure JAX function."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from nngp._numbers import check_unmasked
from nngp.architecture import Invariant, Network, WithHead
from nngp.architecture.invariances import covariance_of
from nngp.architecture.planes import PlanePlan
from nngp.architecture.walk import output, walk
from nngp.gram.triples import Planes, Triple, Triples, image_planes

Params = Mapping[str, Any] | None  # values of parameters of activations


def jax_kernel(network: Network) -> Callable[..., Any]:
    """The kernel of a network as a JAX function of (x1, x2, weight_var, bias_var).

    Parameters
    ----------
    network : Network
        Gives the shape and the activations, and the variances where they are not passed. Of an
        `NTK` the function is the tangent kernel.

    Returns
    -------
    k : callable
        k(x1, x2, weight_var=None, bias_var=None, params=None) for vectors x1, x2 of one length;
        the variances are scalars or have one entry for each affine map (depth + 1 in a chain),
        `params` is a dictionary of parameters of the activations. Jit it, vmap it, and
        differentiate it once in all arguments; gradients are finite at x1 == x2, x1 == -x2 and
        at zero. Kinks that move with a parameter stay where the network has them. That of a
        `WithHead` network takes the variances of its head as head_weight_var and head_bias_var too.

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
    if isinstance(network, WithHead):
        return _headed(jnp, network)
    if isinstance(network, Invariant):
        return _averaged(jnp, network)
    walked = _walk(jnp, network)

    def k(
        x1: Any, x2: Any, weight_var: Any = None, bias_var: Any = None, params: Params = None
    ) -> Any:
        check_unmasked([x1, x2, weight_var, bias_var], "an argument of the kernel")
        x1, x2 = _vectors(jnp, x1, x2)
        inputs = _inputs(jnp, network.planes, x1, x2)
        return walked(inputs, weight_var, bias_var, params)

    return k


def _inputs(jnp: Any, plan: PlanePlan | None, x1: Any, x2: Any) -> Triple:
    """The covariances of two inputs, or of the pixels of two images."""
    pairs = (x1, x1), (x2, x2), (x1, x2)
    d = len(x1)
    if plan is None:
        return Triple(*(jnp.sum(a * b) / d for a, b in pairs))
    plan.check_columns(d)
    shape = plan.height.size, plan.width.size, plan.channels
    return Triple(*(image_planes(plan, a.reshape(shape), b.reshape(shape)) for a, b in pairs))


def _walk(jnp: Any, network: Network) -> Callable[..., Any]:
    """The walk of a network from a triple, with given variances or its own."""
    from nngp.covariance.differentiable import (
        DifferentiableLayer,
        differentiable_layer,
        differentiable_slope,
    )

    def at(params: Params) -> Triples:
        """The operations of the walk, at these values of the activations' parameters."""
        for name in params or ():
            if name not in network.params:
                known = ", ".join(network.params) or "none"
                raise ValueError(f"the network has no parameter '{name}' (it has {known})")
        layers = {phi: differentiable_layer(phi, params) for phi in network.activations}
        wanted = network.activations if network.is_tangent else ()
        slopes = {phi: differentiable_slope(phi, params) for phi in wanted}
        if network.planes is not None:  # integrals are functions of numbers, and these are arrays
            layers, slopes = (
                {
                    phi: one if phi.closed_form else DifferentiableLayer(*map(jnp.vectorize, one))
                    for phi, one in some.items()
                }
                for some in (layers, slopes)
            )
        return Triples(jnp, layers.__getitem__, slopes.__getitem__)

    own, count = at(None), len(network.weight_vars)

    def per_layer(given: Any, default: tuple[float, ...], like: Any) -> Any:
        values = jnp.asarray(default if given is None else given, dtype=like.dtype)
        if values.shape not in ((), (count,)):
            raise ValueError(
                f"variances must be scalars or have {count} entries (one for each affine map), "
                f"got shape {values.shape}"
            )
        return jnp.broadcast_to(values, (count,))

    def walked(
        inputs: Triple,
        weight_var: Any,
        bias_var: Any,
        params: Params = None,
        tangent: Triple | None = None,
    ) -> Any:
        like = inputs.cov.values if isinstance(inputs.cov, Planes) else inputs.cov
        weights = per_layer(weight_var, network.weight_vars, like)
        biases = per_layer(bias_var, network.bias_vars, like)
        given = partial(_pick, weights, biases)
        operations = own if params is None else at(params)
        return output(walk(network, operations, inputs, variances=given, tangent=tangent)).cov

    return walked


def _headed(jnp: Any, network: WithHead) -> Callable[..., Any]:
    """The kernel of layers on top of an average."""
    below = _averaged(jnp, cast(Invariant, covariance_of(network.average)))
    tangent_below = _averaged(jnp, network.average) if network.is_tangent else None
    head = _walk(jnp, network.head)

    def k(
        x1: Any,
        x2: Any,
        weight_var: Any = None,
        bias_var: Any = None,
        head_weight_var: Any = None,
        head_bias_var: Any = None,
        params: Params = None,
    ) -> Any:
        own = weight_var, bias_var, params
        norms = jnp.sqrt(below(x1, x1, *own)) * jnp.sqrt(below(x2, x2, *own))
        one = jnp.ones_like(norms)
        inputs, tangent = Triple(one, one, below(x1, x2, *own) / norms), None
        if tangent_below is not None:  # that of an input and itself reaches no pair of others
            tangent = Triple(0 * one, 0 * one, tangent_below(x1, x2, *own) / norms)
        return head(inputs, head_weight_var, head_bias_var, params, tangent)

    return k


def _averaged(jnp: Any, network: Invariant) -> Callable[..., Any]:
    """The kernel of an average over orders of the columns."""
    import jax

    kernel = jax_kernel(network.network)

    def k(
        x1: Any, x2: Any, weight_var: Any = None, bias_var: Any = None, params: Params = None
    ) -> Any:
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
        values = jax.vmap(lambda one: kernel(x1, one, weight_var, bias_var, params))(moved)
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


def _pick(weights: Any, biases: Any, layer: int) -> tuple[Any, Any]:
    """The variances of one affine map."""
    return weights[layer], biases[layer]
