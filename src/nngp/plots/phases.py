"""Section 3.2: signal propagation, the numbers of the figure in `phases_figure`.

Takes an activation; gives its phase diagram with the limiting depth scale, and for some networks
the map from a layer's correlation to the next one's and the flow of variance and correlation with
depth. Networks start from a layer of variance q_0 and correlation c_0, and every further layer has
the weight_var and bias_var in question.
"""

from dataclasses import dataclass

import numpy as np

from nngp import regimes
from nngp._arrays import TINY, Array
from nngp.architecture import Activation, ActivationLike, as_activation
from nngp.regimes.criticality import spaced_for_line
from nngp.regimes.deficits import at_one_variance
from nngp.regimes.moments import moments_of

BIAS_VAR = 0.1
BESIDE = (0.5, 1.0, 2.0)  # times the critical weight_var: one network in each phase, and between
WEIGHT_VAR = 1.6  # where there is no critical line
GRID = (51, 41)  # weight_vars, bias_vars; none is 2, where relu is critical
RANGES = (5.0, 2.0)  # the paper's; wider, and half as fine, if a network lies outside
LAYERS = 20
VARIANCES = (0.02, 5.0)  # where the flow of the variance starts
CORRELATIONS = (0.0, 0.5, 0.9)  # and that of the correlation
PRINTED = 1e-5  # relative accuracy of a number printed with six digits
EXTREMES = (1e-8, 1e8)  # variances beyond which a flow is not followed


@dataclass(frozen=True)
class Propagation:
    """One network: its phase, its fixed points, and the flow of signals towards them."""

    weight_var: float
    bias_var: float
    phase: str
    variance: float  # q*, which may be 0 or inf
    correlation: float  # c*
    chi: float  # slope of the correlation map at 1
    depth_scales: tuple[float, float]  # of variance and correlation, in layers
    cosines: Array  # c_l
    mapped: Array  # c_{l+1} of each
    variances: tuple[Array, ...]  # q_0, q_1, ... of each start
    correlations: tuple[Array, ...]  # c_0, c_1, ... of each start


@dataclass(frozen=True)
class Phases:
    """The whole figure; `depth_scale` is (bias_vars, weight_vars) like the diagram's arrays."""

    diagram: regimes.PhaseDiagram
    depth_scale: Array
    critical_weight_var: float  # at the networks' bias_var; 0 or inf if there is none
    networks: tuple[Propagation, ...]
    name: str  # of the activation, as the user gave it


def phases(
    activation: ActivationLike,
    weight_var: float | None = None,
    bias_var: float | None = None,
    *,
    name: str | None = None,
) -> Phases:
    """The figure's numbers: of the network given, or of three across the critical line. `name` is
    that of the activation in the figure, by default its own."""
    phi = as_activation(activation)
    bias_var = BIAS_VAR if bias_var is None else float(bias_var)
    critical = _critical_weight_var(phi, bias_var)
    weight_vars = _across(critical) if weight_var is None else (float(weight_var),)
    networks = tuple(
        propagation(phi, each, bias_var, _is_near(each, critical)) for each in weight_vars
    )
    diagram = regimes.phase_diagram(phi, *_grids(max(weight_vars), bias_var))
    return Phases(
        diagram, limiting_depth_scale(diagram), critical, networks, name or diagram.activation
    )


def limiting_depth_scale(diagram: regimes.PhaseDiagram) -> Array:
    """Layers in which a network forgets its inputs: the depth scale of the correlation, or of a
    variance that vanishes or grows for ever, if that is smaller."""
    rests = (diagram.variance > 0) & np.isfinite(diagram.variance)
    return np.where(rests, diagram.xi_c, np.minimum(diagram.xi_c, diagram.xi_q))


def propagation(
    phi: Activation, weight_var: float, bias_var: float, on_line: bool = False
) -> Propagation:
    """Fixed points, correlation map and flows of one network; one `on_line` is critical, whichever
    side of the line rounding puts it on."""
    at = (phi, weight_var, bias_var)
    variance = regimes.variance_fixed_point(*at)
    cosines = np.linspace(0.0, 1.0, 101)
    # A network that does not rest is shown far on its way to 0 or infinity.
    _, mapped = _next_layer(*at, float(np.clip(variance, *EXTREMES)), cosines)
    start = variance if 0 < variance < np.inf else 1.0
    return Propagation(
        weight_var,
        bias_var,
        "critical" if on_line else regimes.phase(*at),
        variance,
        regimes.correlation_fixed_point(*at),
        regimes.chi(*at),
        regimes.depth_scale(*at),
        cosines,
        mapped,
        tuple(_flow(*at, q, np.zeros(0))[0] for q in VARIANCES),
        tuple(_flow(*at, start, np.array(CORRELATIONS))[1].T),
    )


def _grids(weight_var: float, bias_var: float) -> tuple[Array, Array]:
    """Axes of the diagram, fine near bias_var = 0, where the line is steep. At large biases
    correlations come near 1 and take long."""
    counts = GRID if bias_var <= RANGES[1] else tuple(1 + count // 2 for count in GRID)
    return (
        np.linspace(0.1, max(RANGES[0], 1.2 * weight_var), counts[0]),
        spaced_for_line(0.0, max(RANGES[1], 1.2 * bias_var), counts[1]),
    )


def _critical_weight_var(phi: Activation, bias_var: float) -> float:
    """Infinite where every network is on the quiet side of the line, 0 where none is."""
    return float(regimes.phase_diagram(phi, [1.0], [bias_var]).critical_weight_vars[0])


def _is_near(weight_var: float, critical: float) -> bool:
    """Whether a weight_var is the critical one up to the digits that are printed."""
    return 0 < critical < np.inf and abs(weight_var / critical - 1) < PRINTED


def _across(critical: float) -> tuple[float, ...]:
    if not 0 < critical < np.inf:
        return (WEIGHT_VAR,)
    return tuple(times * critical for times in BESIDE)


def _flow(
    phi: Activation, weight_var: float, bias_var: float, q: float, c: Array
) -> tuple[Array, Array]:
    """q_l and c_l for l = 0, 1, ... as long as the variance is of a size to be drawn."""
    states = [(q, c)]
    while len(states) <= LAYERS:
        after = _next_layer(phi, weight_var, bias_var, *states[-1])
        if not EXTREMES[0] < after[0] < EXTREMES[1]:
            break
        states.append(after)
    variances, correlations = zip(*states, strict=True)
    return np.array(variances), np.array(correlations)


def _next_layer(
    phi: Activation, weight_var: float, bias_var: float, q: float, c: Array
) -> tuple[float, Array]:
    """One step of eq. 5 for pairs of inputs of variance q and correlations c."""
    second = float(moments_of(phi)(np.array([q])).second[0])
    variance = bias_var + weight_var * second
    deficits = at_one_variance(phi, q, 1 - c)
    return variance, 1 - weight_var * deficits / max(variance, TINY)
