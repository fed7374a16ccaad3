"""The phase diagram: every regime on a grid of weight and bias variances.

Takes an activation and two grids; gives a frozen `PhaseDiagram` of arrays, bias along the rows
and weight along the columns, as the paper's figures have it (sec. 3.2).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array
from nngp.architecture import ActivationLike, as_activation
from nngp.regimes.criticality import critical_weight_vars
from nngp.regimes.propagation_state import propagation_state
from nngp.regimes.validation import as_grid

WEIGHT_VARS = np.linspace(0.1, 5.0, 30)  # the paper's grid (app. D)
BIAS_VARS = np.linspace(0.0, 2.0, 30)
FIELDS = ("variance", "correlation", "chi", "chi_at_fixed_point", "xi_q", "xi_c", "phase")


@dataclass(frozen=True)
class PhaseDiagram:
    """Fixed points, depth scales and phases for B bias variances times W weight variances.

    Attributes
    ----------
    activation : str
    weight_vars, bias_vars : ndarray of shape (W,), (B,)
    variance, correlation : ndarray of shape (B, W)
        The fixed points q* and c*.
    chi, chi_at_fixed_point : ndarray of shape (B, W)
        Slope of the correlation map at 1 and at c*.
    xi_q, xi_c : ndarray of shape (B, W)
        Depth scales.
    phase : ndarray of str, shape (B, W)
    critical_weight_vars : ndarray of shape (B,)
        The critical line; 0 where every network is above it, inf where none is.

    Examples
    --------
    >>> from nngp import regimes
    >>> diagram = regimes.phase_diagram("tanh", [0.5, 1.5, 3.0], [0.05])
    >>> diagram.phase.tolist(), diagram.critical_weight_vars.round(2).tolist()
    ([['ordered', 'ordered', 'chaotic']], [1.76])
    """

    activation: str
    weight_vars: Array
    bias_vars: Array
    variance: Array
    correlation: Array
    chi: Array
    chi_at_fixed_point: Array
    xi_q: Array
    xi_c: Array
    phase: NDArray[np.str_]
    critical_weight_vars: Array

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of equal length with one row for each network, for `pandas.DataFrame`.

        Examples
        --------
        >>> from nngp import regimes
        >>> columns = regimes.phase_diagram("tanh", [0.5, 1.5, 3.0], [0.05]).columns()
        >>> columns["weight_var"].tolist(), columns["phase"].tolist()
        ([0.5, 1.5, 3.0], ['ordered', 'ordered', 'chaotic'])
        """
        weight, bias = np.meshgrid(self.weight_vars, self.bias_vars)
        line = np.broadcast_to(self.critical_weight_vars[:, None], weight.shape)
        out = {"weight_var": weight.ravel(), "bias_var": bias.ravel()}
        out |= {name: getattr(self, name).ravel() for name in FIELDS}
        return out | {"critical_weight_var": line.ravel()}


def phase_diagram(
    activation: ActivationLike,
    weight_vars: ArrayLike | None = None,
    bias_vars: ArrayLike | None = None,
) -> PhaseDiagram:
    """Fixed points, slopes, depth scales and phases on a grid.

    Parameters
    ----------
    activation : str, callable or Activation
    weight_vars, bias_vars : array_like, one-dimensional, optional
        By default the paper's grid, 30 weight variances from 0.1 to 5 and 30 bias variances
        from 0 to 2.

    Examples
    --------
    >>> from nngp import regimes
    >>> diagram = regimes.phase_diagram("erf", [0.5, 3.0], [0.1])
    >>> diagram.phase.tolist()
    [['ordered', 'chaotic']]
    """
    phi = as_activation(activation)
    weights = as_grid("weight_vars", WEIGHT_VARS if weight_vars is None else weight_vars)
    biases = as_grid("bias_vars", BIAS_VARS if bias_vars is None else bias_vars)
    weight, bias = np.meshgrid(weights, biases)
    state = propagation_state(phi, weight.ravel(), bias.ravel())
    shape = weight.shape
    return PhaseDiagram(
        activation=phi.name,
        weight_vars=weights,
        bias_vars=biases,
        variance=state.variance.reshape(shape),
        correlation=(1 - state.one_minus_correlation).reshape(shape),
        chi=state.chi.reshape(shape),
        chi_at_fixed_point=state.chi_at_fixed_point.reshape(shape),
        xi_q=state.xi_q.reshape(shape),
        xi_c=state.xi_c.reshape(shape),
        phase=state.phase.reshape(shape),
        critical_weight_vars=critical_weight_vars(state.moments, biases),
    )
