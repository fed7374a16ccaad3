"""Diagnosis of one network and its data by the theory of signal propagation.

Takes a network and optionally inputs; gives a frozen `Diagnosis`, or a `NetworkDiagnosis` where
layers are not alike. A kernel learns from
K(x,x) - K(x,x'), and depth drives that to a constant: once the part that depends on the data is
below the noise, or below rounding, nothing can be learned (paper, sec. 3.2).
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import cast, overload

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import TINY
from nngp.architecture import Architecture, Network, WithHead
from nngp.curve import curve_at
from nngp.gram import check_network
from nngp.regimes.criticality import critical_weight_vars
from nngp.regimes.moments import Moments
from nngp.regimes.network_diagnosis import NetworkDiagnosis, network_diagnosis
from nngp.regimes.output_geometry import input_geometry, output_geometry
from nngp.regimes.propagation_state import PropagationState, propagation_state
from nngp.regimes.recommendation import Findings, describe, recommend
from nngp.regimes.validation import broadcast_variances
from nngp.regimes.variance import GRID

ROUNDING = 1e-20  # of squares
DEPTHS_TO_TRAIN = 6.0  # Schoenholz et al. 2016: networks train up to about 6 xi_c layers


@dataclass(frozen=True)
class Diagnosis:
    """Regime of a network, and a recommendation; `print` it for a summary in words.

    Attributes
    ----------
    phase : str
        See `nngp.regimes.phase`.
    chi, variance, correlation, xi_q, xi_c : float
        chi_1, the fixed points q* and c*, and the depth scales.
    trainable_depth : float
        About 6 xi_c layers.
    critical_weight_var : float
        The critical line at this bias_var; 0 or inf if there is none.
    distance : float
        log(weight_var / critical_weight_var): negative on the ordered or bounded side.
    spread : float or None
        Largest (K(x,x) - K(x,x')) / K(x,x) at the output; None at infinite depth or where the
        variance overflows or underflows.
    contrast : float or None
        Largest distance of (K(x,x) - K(x,x')) / K(x,x) from its limit 1 - c*, over pairs a degree
        or more apart. The same as `spread` where c* = 1.
    noise : float
        Variance of the noise relative to K(x,x).
    recommendation : str
        Whether to keep the network, and otherwise which change helps.

    Examples
    --------
    >>> import nngp
    >>> from nngp import regimes
    >>> found = regimes.diagnose(nngp.Architecture(50, "tanh", 1.0, 0.1))
    >>> found.phase, round(found.trainable_depth), round(found.critical_weight_var, 2)
    ('ordered', 16, 1.99)
    """

    architecture: Architecture
    phase: str
    chi: float
    variance: float
    correlation: float
    xi_q: float
    xi_c: float
    trainable_depth: float
    critical_weight_var: float
    distance: float
    spread: float | None
    contrast: float | None
    noise: float
    recommendation: str

    def __str__(self) -> str:
        name, depth = self.architecture.activation.name, self.architecture.depth
        return "\n".join(
            [
                f"{name} network of depth {depth}: {self.phase} phase (chi = {self.chi:.4g}, q* = "
                f"{self.variance:.4g}, c* = {self.correlation:.4g})",
                *describe(depth, cast(Findings, vars(self))),
                f"advice: {self.recommendation}",
            ]
        )


def trainable_depth(architecture: Architecture) -> float:
    """The depth up to which a network can be trained: about 6 xi_c layers.

    The rule is an empirical one for finite networks (Schoenholz et al. 2016). Infinite at
    criticality, and where correlations stop changing while the signal vanishes or explodes (tanh
    without bias below its critical point).

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(10, "relu", weight_var=1.6, bias_var=0.1)
    >>> round(nngp.regimes.trainable_depth(net), 1)
    26.9
    """
    return DEPTHS_TO_TRAIN * float(_state(architecture).xi_c[0])


@overload
def diagnose(
    network: Architecture, X: ArrayLike | None = None, *, noise_var: float = 1e-10
) -> Diagnosis: ...
@overload
def diagnose(
    network: Network, X: ArrayLike | None = None, *, noise_var: float = 1e-10
) -> Diagnosis | NetworkDiagnosis: ...
def diagnose(
    network: Network, X: ArrayLike | None = None, *, noise_var: float = 1e-10
) -> Diagnosis | NetworkDiagnosis:
    """Diagnose the regime of a network, and how much of the data's geometry reaches its output.

    Parameters
    ----------
    network : Network
        An `Architecture` with one weight_var and one bias_var for all layers has a phase and a
        limit of infinite depth. Of any other network the output is measured.
    X : array_like of shape (n, d), optional
        The inputs. Their median norm and the angles between at most 300 of them are used;
        without X, angles from 0 to 90 degrees and x·x/d = 1. One-dimensional X is n points on
        the line.
    noise_var : float
        Observation noise, to which the geometry at the output is compared.

    Returns
    -------
    Diagnosis or NetworkDiagnosis
        The second for networks that are no `Architecture` of equal layers.

    Examples
    --------
    >>> import nngp
    >>> found = nngp.regimes.diagnose(nngp.Architecture(3, "tanh", 1.5, 0.1))
    >>> found.phase, found.correlation
    ('ordered', 1.0)
    >>> block = nngp.Residual(nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(1.0), nngp.Repeat(block, 100), nngp.Dense(1.0))
    >>> nngp.regimes.diagnose(net).recommendation
    'keep it: what distinguishes inputs is above the noise'
    """
    noise_var = _as_noise(noise_var)
    check_network(network)
    if isinstance(network, WithHead):
        return diagnose(network.head, None, noise_var=noise_var)  # of inputs of norm one
    network = network.base  # depth does to an average what it does to its network
    if isinstance(network, Architecture) and has_equal_layers(network):
        return _of_equal_layers(network, X, noise_var)
    geometry = output_geometry(network, X, None)
    curve = curve_at(network, input_geometry(X)[0]) if geometry.has_kernel else None
    return network_diagnosis(
        network, geometry, curve, _relative_noise(noise_var, geometry.variance)
    )


def has_equal_layers(architecture: Architecture) -> bool:
    """Whether all layers have one weight_var and one bias_var."""
    return not isinstance(architecture.weight_var, tuple) and not isinstance(
        architecture.bias_var, tuple
    )


def _of_equal_layers(
    architecture: Architecture, X: ArrayLike | None, noise_var: float
) -> Diagnosis:
    state = _state(architecture)
    weight, line = float(state.weight[0]), float(critical_weight_vars(state.moments, state.bias)[0])
    apart, xi_c = float(state.one_minus_correlation[0]), float(state.xi_c[0])
    geometry = output_geometry(architecture, X, apart)
    values: Findings = {
        "phase": str(state.phase[0]),
        "chi": float(state.chi[0]),
        "variance": float(state.variance[0]),
        "correlation": 1 - apart,
        "xi_q": float(state.xi_q[0]),
        "xi_c": xi_c,
        "trainable_depth": DEPTHS_TO_TRAIN * xi_c,
        "critical_weight_var": line,
        "distance": _log_ratio(weight, line),
        "spread": geometry.spread,
        "contrast": geometry.contrast,
        "noise": _relative_noise(noise_var, geometry.variance),
    }
    recommendation = recommend(architecture, geometry, values, _is_constant(state.moments))
    return Diagnosis(architecture, recommendation=recommendation, **values)


def _state(architecture: Architecture) -> PropagationState:
    check_network(architecture)
    if not isinstance(architecture, Architecture):
        raise TypeError(
            "a trainable depth is known for an nngp.Architecture; use nngp.regimes.propagate for "
            "a repeated part"
        )
    weight, bias = architecture.weight_var, architecture.bias_var
    if isinstance(weight, tuple) or isinstance(bias, tuple):
        raise ValueError(
            "a phase needs one weight_var and one bias_var for all layers, and this network has "
            "different ones; describe it by an Architecture with two numbers"
        )
    variances = broadcast_variances(weight, bias)
    return propagation_state(architecture.activation, variances.weight, variances.bias)


def _as_noise(noise_var: object) -> float:
    if not isinstance(noise_var, Real) or not 0 <= float(noise_var) < math.inf:
        raise ValueError(f"noise_var must be a finite number, not negative, got {noise_var!r}")
    return float(noise_var)


def _relative_noise(noise_var: float, variance: float | None) -> float:
    return noise_var if variance is None else noise_var / max(variance, TINY)


def _log_ratio(weight: float, line: float) -> float:
    if math.isinf(line):
        return -math.inf
    return math.log(weight / line) if line > 0 else math.inf


def _is_constant(moments: Moments) -> bool:
    """Whether phi is constant to rounding at every variance."""
    q = np.exp(GRID)
    at = moments(q)
    return bool(np.all(at.slope * q <= ROUNDING * at.second))
