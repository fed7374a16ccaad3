"""What the theory says about one network and its data.

Takes an architecture and, if there are any, inputs; gives a frozen `Diagnosis`. A kernel learns
from K(x,x) - K(x,x'), and depth drives that to a constant: once the part that still depends on the
data is below the noise, or below rounding, nothing can be learned (paper, sec. 3.2).
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp._safe import TINY
from nngp.architecture import Architecture
from nngp.gram import check_architecture
from nngp.regimes.advice import advice, in_words
from nngp.regimes.inputs import settings_of
from nngp.regimes.line import line_or_end
from nngp.regimes.moments import Moments
from nngp.regimes.remains import remains
from nngp.regimes.state import State, state_of
from nngp.regimes.variance import GRID

ROUNDING = 1e-20  # of squares
DEPTHS_TO_TRAIN = 6.0  # Schoenholz et al. 2016: networks train up to about 6 xi_c layers


@dataclass(frozen=True)
class Diagnosis:
    """Where a network stands and what to do about it; `print` it for plain words.

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
        variance leaves float64.
    contrast : float or None
        Largest distance of that from its limit 1 - c*, over pairs a degree or more apart: what
        tells one pair from another. The same as `spread` where c* = 1.
    noise : float
        Variance of the noise, likewise relative to K(x,x).
    recommendation : str
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
                *in_words(depth, vars(self)),
                f"advice: {self.recommendation}",
            ]
        )


def trainable_depth(architecture: Architecture) -> float:
    """The depth up to which such a network can be trained: about 6 xi_c layers.

    The rule is what Schoenholz et al. 2016 found for finite networks. Infinite at criticality, and
    where correlations freeze while the signal itself vanishes or explodes (tanh without bias
    below its critical point).

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(10, "relu", weight_var=1.6, bias_var=0.1)
    >>> round(nngp.regimes.trainable_depth(net), 1)
    26.9
    """
    return DEPTHS_TO_TRAIN * float(_state(architecture).xi_c[0])


def diagnose(
    architecture: Architecture, X: ArrayLike | None = None, *, noise_var: float = 1e-10
) -> Diagnosis:
    """What depth does to this network, and how much of the data's geometry it leaves.

    Parameters
    ----------
    architecture : Architecture
        With one weight_var and one bias_var for all layers.
    X : array_like of shape (n, d), optional
        The inputs. Their median norm and the angles between at most 300 of them are used;
        without X, angles from 0 to 90 degrees and x·x/d = 1. One-dimensional X is n points on
        the line.
    noise_var : float
        Observation noise, relative to which the remaining geometry is judged.

    Examples
    --------
    >>> import nngp
    >>> found = nngp.regimes.diagnose(nngp.Architecture(3, "tanh", 1.5, 0.1))
    >>> found.phase, found.correlation
    ('ordered', 1.0)
    """
    noise_var, state = _as_noise(noise_var), _state(architecture)
    weight, line = float(state.weight[0]), float(line_or_end(state.moments, state.bias)[0])
    apart, xi_c = float(state.one_minus_correlation[0]), float(state.xi_c[0])
    left = remains(architecture, X, apart)
    values: dict[str, Any] = {
        "phase": str(state.phase[0]),
        "chi": float(state.chi[0]),
        "variance": float(state.variance[0]),
        "correlation": 1 - apart,
        "xi_q": float(state.xi_q[0]),
        "xi_c": xi_c,
        "trainable_depth": DEPTHS_TO_TRAIN * xi_c,
        "critical_weight_var": line,
        "distance": _log_ratio(weight, line),
        "spread": left.spread,
        "contrast": left.contrast,
        "noise": noise_var if left.variance is None else noise_var / max(left.variance, TINY),
    }
    todo = advice(architecture, left, values, _is_constant(state.moments))
    return Diagnosis(architecture, recommendation=todo, **values)


def _state(architecture: Architecture) -> State:
    check_architecture(architecture)
    weight, bias = architecture.weight_var, architecture.bias_var
    if isinstance(weight, tuple) or isinstance(bias, tuple):
        raise ValueError(
            "regimes need one weight_var and one bias_var for all layers, and this network has "
            "different ones; describe it by an Architecture with two numbers"
        )
    settings = settings_of(weight, bias)
    return state_of(architecture.activation, settings.weight, settings.bias)


def _as_noise(noise_var: Any) -> float:
    if not isinstance(noise_var, Real) or not 0 <= float(noise_var) < math.inf:
        raise ValueError(f"noise_var must be a finite number, not negative, got {noise_var!r}")
    return float(noise_var)


def _log_ratio(weight: float, line: float) -> float:
    if math.isinf(line):
        return -math.inf
    return math.log(weight / line) if line > 0 else math.inf


def _is_constant(moments: Moments) -> bool:
    """Whether phi does not vary at any variance, but for rounding."""
    q = np.exp(GRID)
    at = moments(q)
    return bool(np.all(at.slope * q <= ROUNDING * at.second))
