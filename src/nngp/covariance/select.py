"""Choice of the method for one layer: closed form, series, quadrature or table.

Takes an activation and arrays that broadcast; gives E[phi(u) phi(v)] and its derivatives.
"""

from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import EPS, Array
from nngp._numbers import as_reals
from nngp.architecture import Activation, ActivationLike, as_activation
from nngp.architecture.activation import ClosedFormKey
from nngp.covariance import numeric
from nngp.covariance.closed_form import closed_form
from nngp.covariance.lookup import default_table
from nngp.errors import VarianceError

METHODS = ("auto", "closed", "series", "quadrature", "lookup")


class CovarianceDerivatives(NamedTuple):
    """Derivatives of F(var1, var2, corr), each with the others held."""

    corr: Array
    var1: Array
    var2: Array


@overload
def layer_covariance(
    activation: ActivationLike,
    var1: ArrayLike,
    var2: ArrayLike,
    corr: ArrayLike,
    *,
    method: str = ...,
    tol: float = ...,
    return_error: Literal[False] = ...,
) -> Array: ...
@overload
def layer_covariance(
    activation: ActivationLike,
    var1: ArrayLike,
    var2: ArrayLike,
    corr: ArrayLike,
    *,
    method: str = ...,
    tol: float = ...,
    return_error: Literal[True],
) -> tuple[Array, Array]: ...
def layer_covariance(
    activation: ActivationLike,
    var1: ArrayLike,
    var2: ArrayLike,
    corr: ArrayLike,
    *,
    method: str = "auto",
    tol: float = 1e-12,
    return_error: bool = False,
) -> Array | tuple[Array, Array]:
    """E[phi(u) phi(v)] for Gaussian u, v: the F_phi of eq. 5.

    Parameters
    ----------
    activation : str, callable or Activation
    var1, var2, corr : array_like
        Variances of u and v and their correlation; broadcast together.
    method : {"auto", "closed", "series", "quadrature", "lookup"}
        "auto" takes the closed form if there is one, otherwise Mehler's series where it
        converges and two-dimensional quadrature where it does not. "lookup" is the paper's
        table (sec. 2.5), for var1 == var2.
    tol : float
        Error aimed at by the numeric methods, relative to sqrt(E[phi(u)²] E[phi(v)²]).
    return_error : bool
        Also return an estimate of the absolute error, elementwise.

    Returns
    -------
    value : ndarray of float64, or (value, error)

    Examples
    --------
    >>> import nngp
    >>> round(float(nngp.curves.layer_covariance("relu", 1.0, 1.0, 1.0)), 12)
    0.5
    >>> value, error = nngp.curves.layer_covariance("tanh", 1.0, 2.0, 0.5, return_error=True)
    >>> bool(error < 1e-13)
    True
    """
    phi = as_activation(activation)
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    q1, q2, c = _checked(var1, var2, corr)
    if method == "lookup":
        value, error = _from_table(phi, q1, q2, c)
    elif method in ("auto", "closed") and phi.closed_form is not None:
        value, error = _closed(phi.closed_form, q1, q2, c)
    elif method == "closed":
        raise ValueError(f"activation '{phi.name}' has no closed form here; use method='auto'")
    else:
        flat = numeric.covariance(phi, q1.ravel(), q2.ravel(), c.ravel(), float(tol), method)
        value, error = (part.reshape(c.shape) for part in flat)
    if not np.isfinite(value).all():
        worst = float(np.max(np.maximum(q1, q2)[~np.isfinite(value)]))
        raise VarianceError(
            f"E[phi(u) phi(v)] of '{phi.name}' at a variance of {worst:.3g} is past the range of "
            "float64; use smaller variances"
        )
    return (value, error) if return_error else value


def layer_derivatives(
    activation: ActivationLike,
    var1: ArrayLike,
    var2: ArrayLike,
    corr: ArrayLike,
    *,
    tol: float = 1e-12,
) -> CovarianceDerivatives:
    """Derivatives of `layer_covariance` in corr, var1 and var2.

    Parameters
    ----------
    activation : str, callable or Activation
    var1, var2, corr : array_like
        As for `layer_covariance`; the variances must be positive.
    tol : float
        Error aimed at by the numeric methods, relative to sqrt(E[phi(u)²] E[phi(v)²]).

    Returns
    -------
    CovarianceDerivatives
        The derivative in corr is sqrt(var1 var2) E[phi'(u) phi'(v)]. At corr = ±1 it is infinite
        for an activation that jumps, and a large finite number is returned.

    Examples
    --------
    >>> import nngp
    >>> round(float(nngp.curves.layer_derivatives("relu", 1.0, 1.0, 0.0).corr), 12)
    0.25
    """
    phi = as_activation(activation)
    q1, q2, c = _checked(var1, var2, corr)
    if np.any(q1 == 0) or np.any(q2 == 0):
        raise ValueError("derivatives need positive variances; got a zero in var1 or var2")
    if phi.closed_form is not None:
        form = closed_form(phi.closed_form)
        slope, radial1, radial2 = form.rates(np, q1, q2, c)
    else:
        flat = numeric.derivatives(phi, q1.ravel(), q2.ravel(), c.ravel(), float(tol))
        slope, radial1, radial2, _ = (part.reshape(c.shape) for part in flat)
    slope = np.broadcast_to(slope, c.shape)
    return CovarianceDerivatives(
        np.sqrt(q1) * np.sqrt(q2) * slope, radial1 / (2 * q1), radial2 / (2 * q2)
    )


def _closed(key: ClosedFormKey, q1: Array, q2: Array, c: Array) -> tuple[Array, Array]:
    form = closed_form(key)
    one = np.ones(())
    with np.errstate(over="ignore", invalid="ignore"):  # `layer_covariance` raises for infinity
        value = np.asarray(form.value(np, q1, q2, c))
        scale = np.sqrt(form.value(np, q1, q1, one)) * np.sqrt(form.value(np, q2, q2, one))
    loss = np.vectorize(form.loss, otypes=[float])(np.maximum(q1, q2))
    return value, 8 * EPS * loss * scale


def _from_table(phi: Activation, q1: Array, q2: Array, c: Array) -> tuple[Array, Array]:
    if np.any(np.abs(q1 - q2) > 1e-12 * np.maximum(q1, q2)):
        raise ValueError("the look-up table needs var1 == var2; use method='auto'")
    table = default_table(phi)
    return table(q1, c), np.full(c.shape, table.error)


def _checked(var1: ArrayLike, var2: ArrayLike, corr: ArrayLike) -> tuple[Array, Array, Array]:
    named = {"var1": var1, "var2": var2, "corr": corr}
    arrays = [as_reals(a, name) for name, a in named.items()]
    for name, a in zip(named, arrays, strict=True):
        if not np.isfinite(a).all():
            raise ValueError(f"{name} holds NaN or infinity")
    if min(a.min(initial=0.0) for a in arrays[:2]) < 0:
        raise ValueError("variances must not be negative")
    if np.abs(arrays[2]).max(initial=0.0) > 1 + 4 * EPS:
        worst = arrays[2].ravel()[int(np.abs(arrays[2]).argmax())]
        raise ValueError(f"corr must lie in [-1, 1], got {worst}")
    q1, q2, c = np.broadcast_arrays(*arrays)
    # A variable without variance is a constant; its correlation is taken as 0.
    return q1, q2, np.where((q1 > 0) & (q2 > 0), np.clip(c, -1.0, 1.0), 0.0)
