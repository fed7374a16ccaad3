"""The recommendation of a diagnosis, and its numbers as lines of text."""

import math
from typing import TypedDict

from nngp.architecture import Architecture
from nngp.regimes.output_geometry import OutputGeometry

ROUNDING = 2.0**-52


class Findings(TypedDict):
    """The numbers of a diagnosis; their meaning is documented in `Diagnosis`."""

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


def recommend(
    architecture: Architecture, found: OutputGeometry, values: Findings, is_constant: bool
) -> str:
    """Recommend keeping or changing a network, from the fields of its diagnosis."""
    if is_constant:
        return (
            f"activation '{architecture.activation.name}' is constant, so at no depth anything is "
            "left of the inputs; use another activation"
        )
    if found.one_direction:
        return (
            "all points of X lie in one direction: it is the data, not the depth, that leave "
            "nothing to tell apart"
        )
    if architecture.is_infinite:
        return _at_infinite_depth(found)
    if found.contrast is None:
        return f"the variance leaves float64 at this depth; {_use_fewer_layers(values)}"
    if found.contrast <= max(ROUNDING, values["noise"]):
        return _below_noise(found.contrast, values)
    if freezes(values):
        signal = f"the signal, though it {variance_limit(values)}, is enough"
        return f"keep it: correlations freeze, and {signal}"
    if values["phase"] == "critical" or architecture.depth <= values["trainable_depth"]:
        return "keep it: the depth is within what this setting carries"
    return f"deeper than this setting carries; {_use_fewer_layers(values)}"


def freezes(values: Findings) -> bool:
    """Whether correlations stop changing while the variance vanishes or explodes."""
    return not 0 < values["variance"] < math.inf and math.isinf(values["xi_c"])


def variance_limit(values: Findings) -> str:
    """Verb for a variance whose limit is not finite and positive."""
    return "explodes" if values["variance"] > 0 else "vanishes"


def describe(depth: float, values: Findings) -> list[str]:
    """Distance to criticality, depth scales and output geometry, a line each."""
    return [_distance(values), _depth_scales(values), _contrast(depth, values)]


def _at_infinite_depth(found: OutputGeometry) -> str:
    if found.has_kernel:
        return "the limit kernel is used, which keeps the proportions of what depth takes away"
    return "the infinitely deep network has no limit kernel; use a finite depth"


def _below_noise(contrast: float, values: Findings) -> str:
    floor = "rounding" if contrast <= ROUNDING else "the noise"
    remedy = _use_fewer_layers(values)
    if values["phase"] in ("ordered", "bounded"):
        remedy += "; or keep it, with nngp.normalize and relative_noise=True"
    return f"the data's geometry is below {floor}; {remedy}"


def _use_fewer_layers(values: Findings) -> str:
    line = values["critical_weight_var"]
    if 0 < line < math.inf:
        return f"use fewer layers, or move weight_var towards {line:.4g}"
    return "use fewer layers, or use an activation that has a critical line"


def _distance(values: Findings) -> str:
    line, distance = values["critical_weight_var"], values["distance"]
    if not 0 < line < math.inf:
        return "distance to criticality: there is no critical weight_var at this bias_var"
    side = "on" if abs(distance) < 1e-9 else ("above" if distance > 0 else "below")
    return (
        f"distance to criticality: weight_var {line * math.exp(distance):.4g} is {side} the "
        f"critical {line:.4g} (log ratio {distance:+.3f})"
    )


def _depth_scales(values: Findings) -> str:
    if freezes(values) and values["phase"] != "critical":
        return (
            f"depth scales: correlations freeze while the signal {variance_limit(values)}, over "
            f"{values['xi_q']:.3g} layers"
        )
    return (
        f"depth scales: {values['xi_c']:.3g} layers for correlations, {values['xi_q']:.3g} for the "
        f"variance; trainable to about {values['trainable_depth']:.3g} layers"
    )


def _contrast(depth: float, values: Findings) -> str:
    if values["contrast"] is None:
        why = "the depth is infinite" if math.isinf(depth) else "the variance leaves float64"
        return f"geometry left at the output: not measured, {why}"
    return (
        f"geometry left at the output: {values['contrast']:.2g} of the variance (rounding "
        f"{ROUNDING:.1e}, noise {values['noise']:.1e})"
    )
