"""Figure 10: the variances of the best networks beside the critical line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nngp.architecture.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE
from nngp.paper.critical import (
    CRITICAL_RUNS,
    NO_LINE,
    Theory,
    critical_weight_var,
    read_theories,
)
from nngp.paper.grids.arrays import no_grids
from nngp.paper.grids.choice import Chosen, by_validation
from nngp.paper.grids.study import GRID_RUNS
from nngp.paper.heat_maps import write_note
from nngp.paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp.paper.words import by_size

CLAIM = Claim(
    title="where the best networks are",
    paper="The settings that do best on validation lie near the critical line.",
    look="The 25 best settings of each training size beside the critical line.",
)
TOP = 25  # networks
PANELS = 4  # training sets that are shown


@dataclass(frozen=True)
class Best:
    """The best 25 by validation, the best first, of all depths: by activation and training points;
    `networks` counts those that they were chosen from, `wanted` those of the whole grids."""

    dataset: str
    activations: tuple[str, ...]
    sizes: tuple[int, ...]
    chosen: dict[tuple[str, int], tuple[Chosen, ...]]
    networks: dict[tuple[str, int], int]
    wanted: dict[tuple[str, int], int]
    theories: dict[str, Theory]
    weight_range: tuple[float, float] = WEIGHT_VAR_RANGE
    bias_range: tuple[float, float] = BIAS_VAR_RANGE


def read(results: Results) -> Best:
    """The best of every activation on up to four training sets, from the smallest to the largest
    that have been begun."""
    scope, grids = results.scope, results.grids
    begun = {name for _, name, _ in grids.by_name}
    names = tuple(name for name in scope.activations if name in begun)
    sizes = _spread(sorted({train for train, _, _ in grids.by_name}), PANELS)
    every = {(name, train): grids.of(train, name) for name in names for train in sizes}
    chosen = {key: tuple(by_validation(of, TOP)) for key, of in every.items()}
    if not any(chosen.values()):
        raise no_grids(scope)
    return Best(
        scope.dataset,
        names,
        tuple(sizes),
        {key: some for key, some in chosen.items() if some},
        {key: sum(grid.networks for grid in of) for key, of in every.items()},
        {(name, train): grids.row_wanted(train, name) for name, train in every},
        read_theories(results.store, names),
    )


def _spread(sizes: Sequence[int], count: int) -> Sequence[int]:
    """The first, the last, and others evenly between them."""
    if len(sizes) <= count:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (count - 1))] for i in range(count)]


def finding(data: Best) -> str:
    """Median distances of the best from the critical line."""
    away = {}
    for (name, train), chosen in data.chosen.items():
        lines = [critical_weight_var(data.theories.get(name), one.bias_var) for one in chosen]
        apart = [
            abs(one.weight_var - line)
            for one, line in zip(chosen, lines, strict=True)
            if line is not None
        ]
        if apart:
            away[name, train] = float(np.median(apart))
    if not away:
        return NO_LINE
    low, high = data.weight_range
    return (
        f"Median distance in weight variance from the critical line, on a grid from {low:g} to "
        f"{high:g}, with {by_size(away, '.2f')}"
    )


WIDTH, POINTS = 7.2, 9
COLOURS = "plasma"
SMALLEST, LARGEST = 3.2, 8.0  # marks, in points: networks that differ in depth only are rings
BRIGHTEST = 0.88  # of the colours: brighter ones are not seen on white
MARGIN = 0.07  # of the ranges, so that marks at their ends are whole
Looks = dict[int, Style]  # of marks, by depth


def draw(data: Best, path: str | Path | None = None) -> Figure:
    """Rows are activations, columns training sets; each mark is a network, its colour the depth,
    and deeper ones are larger and lie below."""
    import matplotlib.pyplot as plt

    from nngp.plots.style import save, variance_panels

    with plt.rc_context({"font.size": POINTS}):
        titles = [f"{train:,} points" for train in data.sizes]
        size = (WIDTH, 1.0 + 1.65 * len(data.activations))
        figure, axes = variance_panels(data.activations, titles, size)
        looks = _looks(sorted({one.depth for some in data.chosen.values() for one in some}))
        for row, name in zip(axes, data.activations, strict=True):
            for panel, train in zip(row, data.sizes, strict=True):
                _draw_panel(panel, data, name, train, looks)
        _draw_legend(figure, looks)
        figure.suptitle(_title(data), fontsize=POINTS + 1)
        save(figure, path)
    return figure


def _draw_panel(axes: Axes, data: Best, name: str, train: int, looks: Looks) -> None:
    if name in data.theories:
        theory = data.theories[name]
        axes.plot(*theory.line_within(np.array(data.weight_range)), color="0.4", lw=1.1, ls="--")
    chosen = data.chosen.get((name, train), ())
    if not chosen:
        write_note(axes, "not run")
    for depth, look in reversed(looks.items()):
        own = [(one.weight_var, one.bias_var) for one in chosen if one.depth == depth]
        if own:
            axes.plot(*zip(*own, strict=True), **look)
    for direction, (first, last) in (("x", data.weight_range), ("y", data.bias_range)):
        beyond = MARGIN * (last - first)
        axes.set(**{f"{direction}lim": (first - beyond, last + beyond)})


def _looks(depths: Sequence[int]) -> Looks:
    """The mark of each depth, the shallowest first."""
    import matplotlib.pyplot as plt

    return {
        depth: {
            "ls": "none",
            "marker": "o",
            "ms": SMALLEST + part * (LARGEST - SMALLEST),
            "mfc": plt.get_cmap(COLOURS)(BRIGHTEST * part),
            "mec": "white",
            "mew": 0.5,
        }
        for depth, part in zip(depths, np.linspace(0, 1, len(depths)), strict=True)
    }


def _draw_legend(figure: Figure, looks: Looks) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], label=f"{depth}", **look) for depth, look in looks.items()]
    figure.legend(
        handles=marks,
        title="depth (hidden layers)",
        loc="outside lower center",
        ncols=len(marks),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.2,
    )


def _title(data: Best) -> str:
    count = max(len(some) for some in data.chosen.values())
    partly = any(data.networks[key] < data.wanted[key] for key in data.chosen)
    note = "; some grids are not complete" if partly else ""
    line = "; dashed, the critical line" if data.theories else ""
    return f"{data.dataset}: the {count} best by validation{line}{note}"


PART = Part("fig10", CLAIM, (CRITICAL_RUNS, GRID_RUNS), read, finding, draw)
