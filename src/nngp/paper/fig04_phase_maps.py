"""Figure 4: test accuracy over the two variances, and the phase diagram beside it."""

from pathlib import Path

import numpy as np

from nngp._arrays import Mask
from nngp.paper import heat_maps
from nngp.paper.critical import CRITICAL_RUNS, Theory, critical_weight_var
from nngp.paper.grids.arrays import no_grids
from nngp.paper.grids.study import GRID_RUNS, RELATIVE_RUNS, deep_one
from nngp.paper.heat_maps import POINTS, WIDTH, HeatMaps, read_heat_maps
from nngp.paper.part import Axes, Claim, Figure, Part, Results
from nngp.paper.words import percent

CLAIM = Claim(
    title="accuracy over the two variances, and the phase diagram",
    paper="Accuracy follows signal propagation: deep networks do well near the critical line, and "
    "fall to chance far from it.",
    look="Bright cells should lie along the critical line of the phase diagram beside them; the "
    "mark is the best network by validation.",
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


def draw(data: HeatMaps, path: str | Path | None = None) -> Figure:
    """A row for each activation, its heat map on the left, its phases on the right."""
    import matplotlib.pyplot as plt

    from nngp.plots.style import save

    (depth,) = data.depths
    rows = len(data.activations)
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(
            *(rows, 2),
            figsize=(WIDTH, 0.6 + 2.5 * rows),
            width_ratios=(1.12, 1),  # the colours' scale is on the left
            squeeze=False,
            layout="constrained",
        )
        norm = heat_maps.error_scale(data)
        for (left, right), name in zip(axes, data.activations, strict=True):
            heat_maps.draw_map(left, data, name, depth, norm)
            _draw_phases(right, data.theories.get(name))
            left.set(ylabel="bias variance", title=f"{name}: test accuracy")
            right.set(title=f"{name}: phases")
        for below in axes[-1]:
            below.set_xlabel("weight variance")
        heat_maps.draw_colour_bar(figure, axes[:, 0].tolist(), norm)
        figure.suptitle(f"{heat_maps.data_words(data)}, {depth} hidden layers", fontsize=POINTS + 1)
        heat_maps.draw_legend(figure, data)
        save(figure, path)
    return figure


LABEL_WIDTH = 0.25  # part of a panel's width that the name of a phase takes


def _draw_phases(axes: Axes, theory: Theory | None) -> None:
    from nngp.plots.phases_figure import STYLES

    if theory is None:
        heat_maps.write_note(axes, "not computed")
        return
    # What holds at bias_var = 0 only has no area: the lowest row is drawn as the one above it.
    phase = theory.phase[np.maximum(np.arange(len(theory.bias_vars)), 1)]
    for name in np.unique(phase):
        area = phase == name
        colour = STYLES[name].tint
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
        axes.text(weights.mean(), inner, name, ha="center", va="center")


PART = Part("fig4", CLAIM, (CRITICAL_RUNS, RELATIVE_RUNS, GRID_RUNS), read, finding, draw)
