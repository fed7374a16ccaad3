"""Figure 4: test accuracy over the two variances, and the phase diagram beside it."""

from pathlib import Path

import numpy as np

from nngp_paper.arrays import Mask
from nngp_paper.grids.arrays import no_grids
from nngp_paper.grids.study import DEEP_RUNS, deep_one
from nngp_paper.part import Axes, Claim, Figure, Part, Results
from nngp_paper.shared import heat_maps
from nngp_paper.shared.critical import CRITICAL_RUNS, Theory, critical_weight_var
from nngp_paper.shared.heat_maps import NARROW, POINTS, WIDTH, HeatMaps, read_heat_maps
from nngp_paper.shared.propagation import (
    chances,
    combined,
    correlations,
    no_line,
    sources_sentence,
    strength,
)
from nngp_paper.shared.words import percent
from nngp_paper.verdict import ClaimVerdict

CLAIM = Claim(
    title="accuracy over the two variances, and the phase diagram",
    paper="Performance appears to closely track the structure from the phase diagram: it is best "
    "along the critical line, and far from criticality the process cannot be trained.",
    look="Accuracy by weight and bias variance; the mark is the best network by validation. From "
    "left to right: the authors' look-up table, as in the paper; the exact kernel with their "
    "noise of 1e-10, which hides a kernel that has shrunk below it; and noise relative to the "
    "kernel's scale, with which only that is lost which the network itself loses.",
)


def read(results: Results) -> HeatMaps:
    """The paper's activations at one depth, the nearest to 50 layers that there is."""
    names = results.scope.paper_activations
    known = {depth for _, name, depth in results.grids.by_name if name in names}
    if not known:
        raise no_grids(results.scope)
    return read_heat_maps(results, names, [deep_one(known)])


def finding(data: HeatMaps) -> str:
    """The best network of each map, and the critical weight variance at its bias variance."""
    parts = []
    for (name, _), one in data.maps.items():
        if one.best:
            place = f"({one.best.weight_var:.2f}, {one.best.bias_var:.2f})"
            critical = critical_weight_var(data.theories.get(name), one.best.bias_var)
            note = "" if critical is None else f" (critical there: {critical:.2f})"
            parts.append(f"{name} {percent(one.best.test_accuracy)} at {place}{note}")
    return heat_maps.best_sentence(data, ", ", parts)


def verdict(data: HeatMaps) -> ClaimVerdict:
    """Whether accuracy follows the line, with both kinds of noise."""
    if not data.theories:
        return no_line()
    found = {
        kind: [one for name in data.activations for one in data.followings(name, maps)]
        for kind, maps in data.kinds
    }
    words = [strength(one) for some in found.values() for one in some]
    names = ", ".join(data.activations)
    parts = [f"{kind} {correlations(some)}" for kind, some in found.items()]
    return ClaimVerdict(
        combined(words),
        f"{sources_sentence(found)}. Rank correlation of accuracy and distance from the critical "
        f"line for {names}: {'; '.join(parts)} (chance: {chances(found.values())}).",
    )


def draw(data: HeatMaps, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """A row for each activation: its heat maps, by kind of noise, and its phases on the right."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import save

    (depth,) = data.depths
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = _panels(len(data.activations), len(data.kinds), narrow)
        norm = heat_maps.error_scale(data)
        for (*maps, last), name in zip(axes, data.activations, strict=True):
            for panel, (kind, some) in zip(maps, data.kinds, strict=True):
                heat_maps.draw_map(panel, data, some, name, depth, norm)
                panel.set_title(f"{name}: {kind}".replace(", ", "\n"))
            _draw_phases(last, data.theories.get(name))
            last.set_title(f"{name}: phases")
        heat_maps.draw_colour_bar(figure, [panel for row in axes for panel in row[:-1]], norm)
        title = f"test accuracy: {heat_maps.data_words(data)}, {depth} hidden layers"
        heat_maps.name_figure(figure, title)
        heat_maps.draw_legend(figure, data)
        save(figure, path)
    return figure


def _panels(activations: int, kinds: int, narrow: bool) -> tuple[Figure, list[list[Axes]]]:
    """Panels by activation; on narrow figures all below each other."""
    import matplotlib.pyplot as plt

    columns = 1 if narrow else kinds + 1
    rows = activations * (kinds + 1) // columns
    size = (NARROW, 1.0 + 2.1 * rows) if narrow else (WIDTH, 0.8 + 2.1 * rows)
    figure, grid = plt.subplots(*(rows, columns), figsize=size, squeeze=False, layout="constrained")
    for row in grid:
        row[0].set_ylabel("bias variance")
    for below in grid[-1]:
        below.set_xlabel("weight variance")
    flat, each = list(grid.ravel()), kinds + 1
    return figure, [flat[i * each : (i + 1) * each] for i in range(activations)]


TINTS = {
    **{"chaotic": "#FAE3D3", "unbounded": "#F5E4ED", "ordered": "#D9E8F3", "bounded": "#D9E8F3"},
    "critical": "#FFFFFF",
}
LABEL_WIDTH = 0.25  # part of a panel's width that the name of a phase takes


def _draw_phases(axes: Axes, theory: Theory | None) -> None:
    if theory is None:
        heat_maps.write_note(axes, "not computed")
        return
    # What holds at bias_var = 0 only has no area: the lowest row is drawn as the one above it.
    phase = theory.phase[np.maximum(np.arange(len(theory.bias_vars)), 1)]
    for name in np.unique(phase):
        area = phase == name
        colour = TINTS[name]
        axes.contourf(theory.weight_vars, theory.bias_vars, area, levels=(0.5, 1), colors=colour)
        _name_area(axes, theory, area, name)
    axes.plot(*theory.line_within(theory.weight_vars), **heat_maps.line_look())
    axes.set(xlim=theory.weight_vars[[0, -1]], ylim=theory.bias_vars[[0, -1]])


def _name_area(axes: Axes, theory: Theory, area: Mask, name: str) -> None:
    """The phase's name where the phase is widest, if there is room."""
    row = int(area.sum(axis=1).argmax())
    weights = theory.weight_vars[area[row]]
    if len(weights) > LABEL_WIDTH * len(theory.weight_vars):
        inner = np.clip(theory.bias_vars[row], *np.quantile(theory.bias_vars, (0.12, 0.88)))
        axes.text(weights.mean(), inner, name, ha="center", va="center", fontsize=POINTS - 2)


RUNS = (CRITICAL_RUNS, *DEEP_RUNS)
PART = Part("fig4", CLAIM, RUNS, read, finding, verdict, draw)
