"""What was found in a part, in a sentence with its numbers."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nngp.paper.parts import Showing

NO_LINE = "The critical line has not been computed."


def finding(one: Showing) -> str:
    """The sentence; or that there is nothing to say."""
    return f"Missing: {one.problem}." if one.problem else FINDINGS[one.part.name](one.data)


def _rows(data: Any) -> str:
    changes = {
        f"{row.train:,} {row.activation}": row.difference
        for row in data.rows
        if row.difference is not None
    }
    if changes:
        above = sum(change >= 0 for change in changes.values())
        mean = float(np.mean(list(changes.values())))
        low, high = min(changes, key=changes.__getitem__), max(changes, key=changes.__getitem__)
        return (
            f"Chosen by validation, {above} of {len(changes)} measured rows reach the paper's "
            f"accuracy; "
            f"differences go from {_points(changes[low])} ({low}) to {_points(changes[high])} "
            f"({high}), {_points(mean)} in the mean."
        )
    found = [row for row in data.rows if row.chosen is not None]
    if not found:
        return "No grid has been begun."
    best = max(found, key=lambda row: row.chosen.test_accuracy)
    return (
        f"The paper has no such rows. The best is {best.activation} with {best.train:,} training "
        f"points, {_percent(best.chosen.test_accuracy)}."
    )


def _sizes(data: Any) -> str:
    parts = [f"{curve.activation} {_compared(curve)}" for curve in data.curves]
    for line in data.widths:
        first, last = line.points[0], line.points[-1]
        parts.append(
            f"{line.activation} networks of {', '.join(map(str, line.depths))} layers with "
            f"{data.train:,} points: {_percent(first.accuracy)} at width {first.at:,} and "
            f"{_percent(last.accuracy)} at width {last.at:,}"
        )
    return _sentence(parts)


def _compared(curve: Any) -> str:
    """Infinite and finite width at the largest training set that both have, or of one alone."""
    kinds = {
        kind: {point.at: point.accuracy for point in points}
        for kind, points in (("infinite", curve.infinite), ("finite", curve.finite))
        if points
    }
    shared = set.intersection(*map(set, kinds.values()))
    if not shared:
        return "has no training set on which both were tried"
    at = max(shared)
    reached = " and ".join(f"{kind} {_percent(kinds[kind][at])}" for kind in kinds)
    return f"with {at:,} points: {reached}"


def _gaps(data: Any) -> str:
    best = {shape: min(found) for shape, found in data.by_width().items()}
    parts = []
    for name in dict.fromkeys(activation for activation, _ in best):
        widths = [width for activation, width in best if activation == name]
        ends = [f"{best[name, width]:.3f} at width {width:,}" for width in _ends(widths)]
        parts.append(f"{name}: smallest gap {' and '.join(ends)}")
    tried = len(data.learned) + data.left_out
    return _sentence([*parts, f"{len(data.learned)} of {tried} networks learned all labels"])


def _doubt(data: Any) -> str:
    values = {(curve.activation, curve.train): curve.correlation for curve in data.curves}
    return f"Correlation over bins with {_by_size(values, '.3f')}"


def _maps(data: Any) -> str:
    """Where the best are, of few maps."""
    parts = [
        f"{name} {_percent(one.best.test_accuracy)} at {_place(one.best)}"
        f"{_critical(data, name, one.best)}"
        for (name, _), one in data.maps.items()
        if one.best
    ]
    layers = ", ".join(map(str, data.depths))
    said = f"Best with {data.train:,} training points, {layers} layers: {_sentence(parts)}"
    return said if data.theories else f"{said} {NO_LINE}"


def _many_maps(data: Any) -> str:
    """How good the best are, of many."""
    parts = []
    for name in data.activations:
        known = [data.maps[name, depth].best for depth in data.depths if (name, depth) in data.maps]
        parts.append(f"{name} {', '.join(_percent(best.test_accuracy) for best in known if best)}")
    layers = ", ".join(map(str, data.depths))
    said = f"Best with {data.train:,} training points and {layers} layers: {_sentence(parts)}"
    return said if data.theories else f"{said} {NO_LINE}"


def _best(data: Any) -> str:
    """How far the best are from the line."""
    away = {}
    for (name, train), chosen in data.chosen.items():
        line = data.theories.get(name)
        if line is not None and len(line.line_weight_vars):
            apart = [abs(one.weight_var - _on_line(line, one.bias_var)) for one in chosen]
            away[name, train] = float(np.median(apart))
    if not away:
        return NO_LINE
    low, high = data.weight_range
    return (
        f"Median distance in weight variance from the critical line, on a grid from {low:g} to "
        f"{high:g}, with {_by_size(away, '.2f')}"
    )


def _prior(data: Any) -> str:
    net = data.architecture
    return (
        f"{len(data.values)} draws of a {net.activation.name} network of depth {net.depth}, weight "
        f"variance {net.weight_var:g}, bias variance {net.bias_var:g}."
    )


def _angular(data: Any) -> str:
    exact = np.array([np.interp(data.sparse_theta, data.theta, row) for row in data.exact])
    variances = np.max(data.exact, axis=1)[:, None]
    apart = float(np.max(np.abs(data.lookup - exact) / variances))
    return f"Table and exact kernel differ by at most {100 * apart:.2f}% of the variance."


def _spread(data: Any) -> str:
    slopes = zip(data.decay.slope, data.decay.slope_error, strict=True)
    parts = [f"{slope:.3f} ± {error:.3f}" for slope, error in slopes]
    return f"Slopes by layer: {', '.join(parts)}; theory says -0.5.".replace("-", "−")


FINDINGS: dict[str, Callable[[Any], str]] = {
    "table1": _rows,
    "table2": _rows,
    "fig1": _sizes,
    "fig2": _gaps,
    "fig3": _doubt,
    "fig4": _maps,
    "fig5": _prior,
    "fig6": _angular,
    "fig7": _spread,
    "fig8": _doubt,
    "fig9": _many_maps,
    "fig10": _best,
}


def _by_size(values: dict[tuple[str, int], float], form: str) -> str:
    """The training sizes, then for each activation its numbers in that order."""
    sizes = sorted({size for _, size in values})
    parts = []
    for name in dict.fromkeys(name for name, _ in values):
        known = [values.get((name, size)) for size in sizes]
        parts.append(f"{name} {', '.join('–' if v is None else format(v, form) for v in known)}")
    return f"{', '.join(f'{size:,}' for size in sizes)} points: {_sentence(parts)}"


def _critical(data: Any, name: str, best: Any) -> str:
    line = data.theories.get(name)
    if line is None or not len(line.line_weight_vars):
        return ""
    return f" (critical there: {_on_line(line, best.bias_var):.2f})"


def _on_line(line: Any, bias_var: float) -> float:
    """The critical weight variance at a bias variance."""
    order = np.argsort(line.line_bias_vars)
    return float(np.interp(bias_var, line.line_bias_vars[order], line.line_weight_vars[order]))


def _place(one: Any) -> str:
    return f"({one.weight_var:.2f}, {one.bias_var:.2f})"


def _ends(values: Sequence[int]) -> list[int]:
    return sorted({min(values), max(values)})


def _percent(accuracy: float) -> str:
    return f"{100 * accuracy:.2f}%"


def _points(change: float) -> str:
    return f"{change:+.2f}".replace("-", "−") + " points"


def _sentence(parts: Sequence[str]) -> str:
    return "; ".join(parts) + "."
