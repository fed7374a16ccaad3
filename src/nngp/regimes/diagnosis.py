"""What the theory says about one network and its data, in numbers and in plain words.

Takes an architecture and, if there are any, inputs; gives a frozen `Diagnosis`. A kernel learns
from K(x,x) - K(x,x'), and depth drives that to a constant: once the part that still depends on the
data is below the noise, or below rounding, nothing can be learned (paper, sec. 3.2).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._safe import TINY
from nngp.architecture import Architecture
from nngp.curve import VarianceError, curve_at
from nngp.regimes.line import line_or_end
from nngp.regimes.state import State, state_of

Array = NDArray[np.float64]
ROUNDING = float(np.finfo(np.float64).eps)
DEPTHS_TO_TRAIN = 6.0  # Schoenholz et al. 2016: networks train up to about 6 xi_c layers
SAMPLE = 300  # points whose pairs are looked at


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
        depth = self.architecture.depth
        return "\n".join(
            [
                f"{self.architecture.activation.name} network of depth {depth}: {self.phase} "
                f"phase (chi = {self.chi:.4g}, q* = {self.variance:.4g}, c* = "
                f"{self.correlation:.4g})",
                _distance_in_words(self),
                f"depth scales: {self.xi_c:.3g} layers for correlations, {self.xi_q:.3g} for the "
                f"variance; trainable to about {self.trainable_depth:.3g} layers",
                _contrast_in_words(self.contrast, self.noise, depth),
                f"advice: {self.recommendation}",
            ]
        )


def trainable_depth(architecture: Architecture) -> float:
    """The depth up to which such a network can be trained: about 6 xi_c layers.

    The rule is what Schoenholz et al. 2016 found for finite networks; infinite at criticality.

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
        without X, angles from 0 to 90 degrees and x·x/d = 1.
    noise_var : float
        Observation noise, relative to which the remaining geometry is judged.

    Examples
    --------
    >>> import nngp
    >>> found = nngp.regimes.diagnose(nngp.Architecture(3, "tanh", 1.5, 0.1))
    >>> found.phase, found.correlation
    ('ordered', 1.0)
    """
    noise_var = float(noise_var)
    if not 0 <= noise_var < math.inf:
        raise ValueError(f"noise_var must be finite and not negative, got {noise_var}")
    state = _state(architecture)
    weight, line = float(state.weight[0]), float(line_or_end(state.moments, state.bias)[0])
    apart, xi_c = float(state.one_minus_correlation[0]), float(state.xi_c[0])
    output, spread, contrast = _remains(architecture, X, apart)
    values: dict[str, Any] = {
        "phase": str(state.phase[0]),
        "chi": float(state.chi[0]),
        "variance": float(state.variance[0]),
        "correlation": 1 - apart,
        "xi_q": float(state.xi_q[0]),
        "xi_c": xi_c,
        "trainable_depth": DEPTHS_TO_TRAIN * xi_c,
        "critical_weight_var": line,
        "distance": -math.inf if math.isinf(line) else _log_ratio(weight, line),
        "spread": spread,
        "contrast": contrast,
        "noise": noise_var if output is None else noise_var / max(output, TINY),
    }
    return Diagnosis(architecture, recommendation=_advice(architecture, values), **values)


def _log_ratio(weight: float, line: float) -> float:
    return math.log(weight / line) if line > 0 else math.inf


def _state(architecture: Architecture) -> State:
    weight, bias = architecture.weight_var, architecture.bias_var
    if isinstance(weight, tuple) or isinstance(bias, tuple):
        raise ValueError(
            "regimes need one weight_var and one bias_var for all layers, and this network has "
            "different ones; describe it by an Architecture with two numbers"
        )
    return state_of(architecture.activation, np.array([weight]), np.array([bias]))


def _remains(
    architecture: Architecture, X: ArrayLike | None, apart: float
) -> tuple[float | None, float | None, float | None]:
    """K(x,x) at the output, `spread` and `contrast`; `apart` is 1 - c*."""
    degree = math.pi / 180
    if X is None:
        input_var, one_minus = 1.0, 1 - np.cos(degree * np.arange(1, 91))
    else:
        input_var, one_minus = _geometry(X)
    if architecture.is_infinite:
        return None, None, None
    try:
        curve = curve_at(architecture, input_var)
    except VarianceError:
        return None, None, None
    if curve.variance == 0:
        return 0.0, 0.0, 0.0
    share = curve.deficit(one_minus=one_minus) / curve.variance
    clear = one_minus >= 1 - math.cos(degree)
    contrast = np.abs(share - apart)[clear | ~clear.any()].max()
    return curve.variance, float(share.max()), float(contrast)


def _geometry(X: ArrayLike) -> tuple[float, Array]:
    """Median x·x/d, and 1 - cosine of every pair among some of the points."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2 or not points.size:
        raise ValueError(
            f"X must have shape (n, d) with at least two points, got shape {points.shape}"
        )
    if not np.isfinite(points).all():
        raise ValueError("X holds NaN or infinity; remove or fill those values")
    if len(points) > SAMPLE:
        points = points[np.linspace(0, len(points) - 1, SAMPLE).astype(int)]
    norm = np.linalg.norm(points, axis=1)
    if not np.median(norm) > 0:
        raise ValueError("most points of X are zero and have no direction; remove them")
    unit = points[norm > 0] / norm[norm > 0, None]
    distance2 = [((unit[i + 1 :] - row) ** 2).sum(axis=1) for i, row in enumerate(unit)]
    one_minus = np.clip(0.5 * np.concatenate(distance2), 0.0, 2.0)
    return float(np.median(norm) ** 2 / points.shape[1]), one_minus


def _advice(architecture: Architecture, values: dict[str, Any]) -> str:
    contrast, noise = values["contrast"], values["noise"]
    line, phase = values["critical_weight_var"], values["phase"]
    nearer = (
        f"move weight_var towards {line:.4g}"
        if 0 < line < math.inf
        else "use an activation that has a critical line"
    )
    if architecture.is_infinite and phase in ("ordered", "bounded"):
        return "the limit kernel is used, which keeps the proportions of what depth takes away"
    if architecture.is_infinite:
        return "without end only duplicates are told apart in this phase; use a finite depth"
    if contrast is None:
        return f"the variance leaves float64 at this depth; use fewer layers, or {nearer}"
    if contrast <= max(ROUNDING, noise):
        what = "rounding" if contrast <= ROUNDING else "the noise"
        remedy = f"use fewer layers, or {nearer}"
        if phase in ("ordered", "bounded"):
            remedy += "; or keep it, with nngp.normalize and relative_noise=True"
        return f"the data's geometry is below {what}; {remedy}"
    if phase == "critical" or architecture.depth <= values["trainable_depth"]:
        return "keep it: the depth is within what this setting carries"
    return f"deeper than this setting carries; use fewer layers, or {nearer}"


def _distance_in_words(found: Diagnosis) -> str:
    line = found.critical_weight_var
    if not 0 < line < math.inf:
        return "distance to criticality: there is no critical weight_var at this bias_var"
    side = "on" if abs(found.distance) < 1e-9 else ("above" if found.distance > 0 else "below")
    return (
        f"distance to criticality: weight_var {found.architecture.weight_var:.4g} is {side} the "
        f"critical {line:.4g} (log ratio {found.distance:+.3f})"
    )


def _contrast_in_words(contrast: float | None, noise: float, depth: float) -> str:
    if contrast is None:
        why = "the depth is infinite" if math.isinf(depth) else "the variance leaves float64"
        return f"geometry left at the output: not measured, {why}"
    return (
        f"geometry left at the output: {contrast:.2g} of the variance (rounding {ROUNDING:.1e}, "
        f"noise {noise:.1e})"
    )
