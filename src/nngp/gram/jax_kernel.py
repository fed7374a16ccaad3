"""The kernel of one pair as a pure JAX function, for people who live in JAX."""

from collections.abc import Callable
from typing import Any

from nngp._numbers import check_unmasked
from nngp.architecture import Architecture


def jax_kernel(architecture: Architecture) -> Callable[..., Any]:
    """K^L(x1, x2) as a JAX function of (x1, x2, weight_var, bias_var).

    Parameters
    ----------
    architecture : Architecture
        Gives depth and activation, and the variances where they are not passed.

    Returns
    -------
    k : callable
        k(x1, x2, weight_var=None, bias_var=None) for vectors x1, x2 of one length; the
        variances are scalars or have one entry per layer (depth + 1). Jit it, vmap it, and
        differentiate it once in all four arguments; gradients are finite at x1 == x2,
        x1 == -x2 and at zero.

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
    from nngp.covariance.differentiable import differentiable_layer

    layer = differentiable_layer(architecture.activation)
    count = len(architecture.weight_vars)

    def per_layer(given: Any, default: tuple[float, ...], like: Any) -> Any:
        values = jnp.asarray(default if given is None else given, dtype=like.dtype)
        if values.shape not in ((), (count,)):
            raise ValueError(
                f"variances must be scalars or have {count} entries (depth + 1), got shape "
                f"{values.shape}"
            )
        return jnp.broadcast_to(values, (count,))

    def k(x1: Any, x2: Any, weight_var: Any = None, bias_var: Any = None) -> Any:
        check_unmasked([x1, x2, weight_var, bias_var], "an argument of the kernel")
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
        x2 = x2.astype(x1.dtype)
        weights = per_layer(weight_var, architecture.weight_vars, x1)
        biases = per_layer(bias_var, architecture.bias_vars, x1)
        scale = weights[0] / len(x1)
        q1 = biases[0] + scale * jnp.sum(x1 * x1)
        q2 = biases[0] + scale * jnp.sum(x2 * x2)
        cov = biases[0] + scale * jnp.sum(x1 * x2)
        for i in range(1, count):
            moved = layer.covariance(q1, q2, cov)
            q1 = biases[i] + weights[i] * layer.variance(q1)
            q2 = biases[i] + weights[i] * layer.variance(q2)
            cov = biases[i] + weights[i] * moved
        return cov

    return k
