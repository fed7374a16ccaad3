"""From data to the covariance matrix of eq. 7: one place decides how, and says so.

Takes an architecture and inputs; gives K as a dense float64 array.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable, default_table
from nngp.curve import ToleranceWarning, curve_at, output_variance
from nngp.gram import tiles
from nngp.gram.equal_norm import CurveTransform
from nngp.gram.inputs import Inputs, common_var
from nngp.gram.lookup import LookupTransform
from nngp.gram.pairwise import PairwiseTransform, layer_variances

Array = NDArray[np.float64]
METHODS = ("auto", "curve", "pairwise", "lookup")
WARN_ABOVE = 1e-9  # error of an entry, relative to the variance


@dataclass(frozen=True)
class KernelPlan:
    """How a kernel matrix will be computed, and why.

    `error` is the largest error of an entry relative to the variance, rounding of the cosines
    included, for pairs with 1 - |c| > 2^-16. It is known beforehand for the curve only.
    """

    method: str
    reason: str
    input_var: float | None
    error: float | None


def plan_kernel(
    architecture: Architecture, X1: ArrayLike, X2: ArrayLike | None = None, *, method: str = "auto"
) -> KernelPlan:
    """What `kernel` would do with these inputs.

    Examples
    --------
    >>> import nngp
    >>> nngp.plan_kernel(nngp.Architecture(3), [[1.0, 2.0], [2.0, 2.0]]).method
    'pairwise'
    """
    _check_architecture(architecture)
    first, second = _inputs(X1, X2)
    return _plan(architecture, method, first, second)


def kernel(
    architecture: Architecture,
    X1: ArrayLike,
    X2: ArrayLike | None = None,
    *,
    method: str = "auto",
    table: LookupTable | None = None,
) -> Array:
    """The NNGP kernel matrix K^L(x, x') of eq. 5.

    Parameters
    ----------
    architecture : Architecture
    X1 : array_like, (n, d)
    X2 : array_like, (m, d), optional
        X1 against itself by default: exactly symmetric, with the exact diagonal.
    method : {"auto", "curve", "pairwise", "lookup"}
        "auto" reads the compiled curve when all inputs share one norm (up to rounding), and
        runs the recursion pair by pair otherwise. "lookup" is the paper's table.
    table : LookupTable, optional
        The table for method="lookup".

    Warns
    -----
    ToleranceWarning
        If an entry may be off by more than 1e-9 of the variance.

    Returns
    -------
    ndarray of float64, (n, n) or (n, m)

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(2, "relu", weight_var=2.0, bias_var=0.0)
    >>> nngp.kernel(net, [[1.0, 1.0], [1.0, -1.0]]).round(4).tolist()
    [[2.0, 0.9875], [0.9875, 2.0]]
    """
    _check_architecture(architecture)
    first, second = _inputs(X1, X2)
    plan = _plan(architecture, method, first, second)
    if table is not None and plan.method != "lookup":
        raise ValueError("a table is used only with method='lookup'")
    transform = _transform(plan, architecture, first, second or first, table)
    other = None if second is None else second.directions
    out = tiles.fill(first.directions, other, transform)
    if second is None:
        np.fill_diagonal(out, transform.diagonal)
    if not isinstance(transform, LookupTransform) and (error := transform.error()) > WARN_ABOVE:
        warnings.warn(
            f"entries of this kernel may be off by {error:.1e} of the variance: inputs nearly "
            "coincide and the network tears them apart, or the activation is not computed to "
            "float64 precision",
            ToleranceWarning,
            stacklevel=2,
        )
    return out


def _transform(
    plan: KernelPlan,
    architecture: Architecture,
    left: Inputs,
    right: Inputs,
    table: LookupTable | None,
) -> CurveTransform | LookupTransform | PairwiseTransform:
    if plan.method == "pairwise" or plan.input_var is None:
        return PairwiseTransform(architecture, left, right)
    if plan.method == "curve":
        curve = curve_at(architecture, plan.input_var)
        return CurveTransform(curve, left.directions, right.directions)
    chosen = default_table(architecture.activation) if table is None else table
    return LookupTransform(architecture, plan.input_var, chosen)


def kernel_diag(architecture: Architecture, X: ArrayLike) -> Array:
    """K^L(x, x) of every input, without the matrix.

    Examples
    --------
    >>> import nngp
    >>> nngp.kernel_diag(nngp.Architecture(1, "relu", 2.0, 0.5), [[1.0, 1.0]]).round(6).tolist()
    [3.0]
    """
    _check_architecture(architecture)
    inputs = Inputs.of(X)
    shared = common_var(inputs)
    if shared is not None:
        return np.full(len(inputs.X), output_variance(architecture, shared))
    return layer_variances(architecture, inputs.var)[-1]


def _check_architecture(architecture: Architecture) -> None:
    if not isinstance(architecture, Architecture):
        raise TypeError(
            f"the first argument must be an nngp.Architecture, got {type(architecture).__name__}"
        )


def _inputs(X1: ArrayLike, X2: ArrayLike | None) -> tuple[Inputs, Inputs | None]:
    first = Inputs.of(X1, "X1")
    if X2 is None:
        return first, None
    second = Inputs.of(X2, "X2")
    if first.X.shape[1] != second.X.shape[1]:
        raise ValueError(
            f"X1 has {first.X.shape[1]} features and X2 has {second.X.shape[1]}; they must agree"
        )
    return first, second


def _plan(
    architecture: Architecture, method: str, first: Inputs, second: Inputs | None
) -> KernelPlan:
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    shared = common_var(*([first] if second is None else [first, second]))
    if method == "auto":
        method = "pairwise" if shared is None else "curve"
        reason = "all inputs share one norm"
        if shared is None:
            spread = max(float(np.ptp(s.var) / s.var.max()) for s in (first, second or first))
            reason = f"the inputs' norms differ (x·x/d by {spread:.1e} of the largest)"
            if spread < 1e-5:
                reason += "; nngp.normalize in float64 would make them equal"
    else:
        reason = "asked for"
    if method in ("curve", "lookup") and shared is None:
        raise ValueError(
            f"method='{method}' needs inputs of equal norm; use nngp.normalize first, or "
            "method='pairwise'"
        )
    error = None
    if method == "curve" and shared is not None:
        error = CurveTransform(curve_at(architecture, shared), first.X, first.X).error()
    return KernelPlan(method, reason, shared, error)
