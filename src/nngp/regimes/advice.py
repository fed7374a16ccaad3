"""A diagnosis in plain words: what to do, and the lines that print it.

Takes numbers; gives sentences.
"""

import math
from typing import Any

from nngp.architecture import Architecture
from nngp.regimes.remains import Remains

ROUNDING = 2.0**-52


def advice(
    architecture: Architecture, found: Remains, values: dict[str, Any], is_constant: bool
) -> str:
    """What to do about a network, from the fields of its diagnosis."""
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
        return _without_end(found)
    if found.contrast is None:
        return f"the variance leaves float64 at this depth; use fewer layers, or {_nearer(values)}"
    if found.contrast <= max(ROUNDING, values["noise"]):
        return _too_little(found.contrast, values)
    if freezes(values):
        return f"keep it: correlations freeze, and the signal, though it {fate(values)}, is enough"
    if values["phase"] == "critical" or architecture.depth <= values["trainable_depth"]:
        return "keep it: the depth is within what this setting carries"
    return f"deeper than this setting carries; use fewer layers, or {_nearer(values)}"


def freezes(values: dict[str, Any]) -> bool:
    """Whether correlations stay while the variance does not."""
    return not 0 < values["variance"] < math.inf and math.isinf(values["xi_c"])


def fate(values: dict[str, Any]) -> str:
    """What becomes of a variance that does not rest."""
    return "explodes" if values["variance"] > 0 else "vanishes"


def in_words(depth: float, values: dict[str, Any]) -> list[str]:
    """The lines between the name of the network and the advice."""
    return [_distance(values), _depth_scales(values), _contrast(depth, values)]


def _without_end(found: Remains) -> str:
    if found.has_kernel:
        return "the limit kernel is used, which keeps the proportions of what depth takes away"
    return "the infinitely deep network has no limit kernel; use a finite depth"


def _too_little(contrast: float, values: dict[str, Any]) -> str:
    what = "rounding" if contrast <= ROUNDING else "the noise"
    remedy = f"use fewer layers, or {_nearer(values)}"
    if values["phase"] in ("ordered", "bounded"):
        remedy += "; or keep it, with nngp.normalize and relative_noise=True"
    return f"the data's geometry is below {what}; {remedy}"


def _nearer(values: dict[str, Any]) -> str:
    line = values["critical_weight_var"]
    if 0 < line < math.inf:
        return f"move weight_var towards {line:.4g}"
    return "use an activation that has a critical line"


def _distance(values: dict[str, Any]) -> str:
    line, distance = values["critical_weight_var"], values["distance"]
    if not 0 < line < math.inf:
        return "distance to criticality: there is no critical weight_var at this bias_var"
    side = "on" if abs(distance) < 1e-9 else ("above" if distance > 0 else "below")
    return (
        f"distance to criticality: weight_var {line * math.exp(distance):.4g} is {side} the "
        f"critical {line:.4g} (log ratio {distance:+.3f})"
    )


def _depth_scales(values: dict[str, Any]) -> str:
    if freezes(values) and values["phase"] != "critical":
        return (
            f"depth scales: correlations freeze while the signal {fate(values)}, over "
            f"{values['xi_q']:.3g} layers"
        )
    return (
        f"depth scales: {values['xi_c']:.3g} layers for correlations, {values['xi_q']:.3g} for the "
        f"variance; trainable to about {values['trainable_depth']:.3g} layers"
    )


def _contrast(depth: float, values: dict[str, Any]) -> str:
    if values["contrast"] is None:
        why = "the depth is infinite" if math.isinf(depth) else "the variance leaves float64"
        return f"geometry left at the output: not measured, {why}"
    return (
        f"geometry left at the output: {values['contrast']:.2g} of the variance (rounding "
        f"{ROUNDING:.1e}, noise {values['noise']:.1e})"
    )
