"""The tangent kernel and the linearisation of any function of parameters that JAX differentiates.

f(params, X) takes a tree of arrays and inputs in rows, and gives an output (n,), or several
(n, outputs), for each row by itself: a network of Flax or Equinox, or a formula. Weights are taken
as they are, in units of one; `FiniteNetwork.empirical_ntk` takes them in units of their prior.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import DeviceArray
from nngp.finite.batched_networks import precision_of_arrays
from nngp.finite.weights import ArrayTree

Function = Callable[[Any, Any], Any]
AT_A_TIME = 2**28  # bytes of the gradients of some rows


def empirical_ntk(
    f: Function,
    params: ArrayTree,
    X1: ArrayLike,
    X2: ArrayLike | None = None,
    *,
    full: bool = False,
) -> NDArray[Any]:
    """Compute the tangent kernel of a function: inner products of gradients in all parameters.

    Parameters
    ----------
    f : callable
        f(params, X) for inputs in rows, of any shape, gives (n,) or (n, outputs); a row's output
        depends on that row alone (no batch norm of the batch at hand).
    params : tree of arrays
        In lists, tuples and dicts, of float32 or float64, which is the precision of the result.
    X1 : array_like, (n, ...)
    X2 : array_like, (m, ...), optional
        X1 against itself by default: exactly symmetric.
    full : bool
        Products of the gradients of all pairs of outputs, instead of their mean over the outputs
        (neural-tangents' `trace_axes`).

    Returns
    -------
    ndarray, (n, m), or (n, m, outputs, outputs) if full
        Computed in blocks: gradients of a few rows are held at a time.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, nngp
    >>> def f(params, X):
    ...     return jnp.tanh(X @ params["w"]) @ params["v"]
    >>> params = {"w": np.eye(2), "v": np.ones((2, 3))}
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> nngp.finite.empirical_ntk(f, params, X).round(3).tolist()
    [[1.756, 0.0], [0.0, 1.756]]
    >>> nngp.finite.empirical_ntk(f, params, X, full=True).shape
    (2, 2, 3, 3)
    """
    with precision_of_arrays():
        dtype = _dtype_of(params)
        left = _rows(X1, "X1", dtype)
        right = left if X2 is None else _rows(X2, "X2", dtype)
        if left.shape[1:] != right.shape[1:]:
            raise ValueError(f"rows of X1 have shape {left.shape[1:]} and of X2 {right.shape[1:]}")
        outputs = _outputs_of(f, params, left[:1])
        size = sum(np.size(leaf) for leaf in jax.tree.leaves(params)) * dtype.itemsize * outputs
        most = max(1, min(AT_A_TIME // (4 * size), max(len(left), len(right))))
        out = np.empty((len(left), len(right), *((outputs, outputs) if full else ())), dtype)
        # Calls that differ in f share no program, and a run of one function makes two.
        gradients = jax.jit(jax.vmap(partial(_gradient, f), (None, 0)))
        product = jax.jit(partial(_products, full=full))
        for i in range(0, len(left), most):
            rows = gradients(params, _filled(left, i, most))
            for j in range(0, i + 1 if X2 is None else len(right), most):
                same = X2 is None and i == j
                columns = rows if same else gradients(params, _filled(right, j, most))
                part = np.asarray(product(rows, columns))
                part = part[: len(left) - i, : len(right) - j]
                if same:
                    part = _symmetric(part)
                out[i : i + most, j : j + most] = part
                if X2 is None and not same:
                    out[j : j + most, i : i + most] = _mirrored(part)
    if not np.isfinite(out).all():
        raise ValueError("the tangent kernel is not finite; check f and its gradient at these rows")
    return out


def linearize(f: Function, params: ArrayTree) -> Function:
    """Linearise a function in its parameters: f(params, X) + ∂f (new - params).

    Its precision is JAX's: float32, unless 64-bit mode is on (``with jax.enable_x64(True)``).

    Parameters
    ----------
    f : callable
        f(params, X), any function that JAX differentiates.
    params : tree of arrays
        Where it is linearised.

    Returns
    -------
    callable
        Of new parameters and inputs, which JAX can trace in turn.

    Examples
    --------
    >>> import jax.numpy as jnp, nngp
    >>> straight = nngp.finite.linearize(lambda w, X: jnp.exp(w) * X, jnp.zeros(()))
    >>> straight(jnp.ones(()), jnp.array([1.0, 2.0])).tolist()  # (1 + w) x
    [2.0, 4.0]
    """

    def linear(new: ArrayTree, X: Any) -> Any:
        change = jax.tree.map(lambda one, other: jnp.asarray(one) - other, new, params)
        value, moved = jax.jvp(lambda at: f(at, X), (params,), (change,))
        return value + moved

    return linear


def _gradient(f: Function, params: ArrayTree, row: DeviceArray) -> DeviceArray:
    """The gradient of each output of a row in all parameters, (outputs, parameters)."""
    found = jax.jacrev(lambda at: jnp.ravel(f(at, row[None])[0]))(params)
    flat = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(found)]
    return jnp.concatenate(flat, axis=1)


def _products(rows: DeviceArray, columns: DeviceArray, *, full: bool) -> DeviceArray:
    if full:
        return jnp.einsum("aop,bqp->aboq", rows, columns)
    return jnp.einsum("aop,bop->ab", rows, columns) / rows.shape[1]


def _mirrored(part: NDArray[Any]) -> NDArray[Any]:
    """The block of the transposed pairs: outputs change places too."""
    return part.T if part.ndim == 2 else part.transpose(1, 0, 3, 2)


def _symmetric(part: NDArray[Any]) -> NDArray[Any]:
    return (part + _mirrored(part)) / 2


def _filled(X: NDArray[Any], start: int, count: int) -> NDArray[Any]:
    """Some rows, the last of them again until there are `count`: one program serves all blocks."""
    return X[np.minimum(np.arange(start, start + count), len(X) - 1)]


def _dtype_of(params: ArrayTree) -> np.dtype[Any]:
    leaves = jax.tree.leaves(params)
    kinds = {np.result_type(leaf) for leaf in leaves}
    if not leaves or not all(np.issubdtype(kind, np.floating) for kind in kinds):
        raise TypeError("params must be a tree of arrays of real numbers (float32 or float64)")
    return np.result_type(*kinds)


def _rows(X: ArrayLike, name: str, dtype: np.dtype[Any]) -> NDArray[Any]:
    out = np.asarray(X)
    if out.ndim == 0 or not len(out):
        raise ValueError(f"{name} must hold inputs in rows, got an array of shape {out.shape}")
    if not np.issubdtype(out.dtype, np.floating):
        return out  # tokens, say, that f looks up
    out = out.astype(dtype)
    if not np.isfinite(out).all():
        raise ValueError(f"{name} holds numbers that are not finite; drop or impute them first")
    return out


def _outputs_of(f: Function, params: ArrayTree, row: NDArray[Any]) -> int:
    """How many outputs a row has."""
    try:
        shape = jax.eval_shape(f, params, row).shape
    except jax.errors.TracerArrayConversionError:
        raise TypeError("f cannot be traced by JAX; write it with jax.numpy") from None
    if not 1 <= len(shape) <= 2 or shape[0] != 1 or shape[-1] < 1:
        raise ValueError(
            f"f must give an output for each row, of shape (n,) or (n, outputs); for one row it "
            f"gave {shape}"
        )
    return shape[1] if len(shape) == 2 else 1
