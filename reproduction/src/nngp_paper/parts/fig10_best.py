"""Figure 10: the variances of the best networks beside the critical line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom

from nngp_paper.arrays import Array
from nngp_paper.grids.arrays import no_grids
from nngp_paper.grids.choice import Chosen, by_validation
from nngp_paper.grids.study import GRID_RUNS, MAP_RUNS
from nngp_paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp_paper.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE
from nngp_paper.scope import ACTIVATIONS, Scope
from nngp_paper.shared.critical import (
    CRITICAL_RUNS,
    NO_LINE,
    Theory,
    critical_weight_var,
    read_theories,
)
from nngp_paper.shared.heat_maps import NARROW, map_panels, name_figure, write_note
from nngp_paper.shared.words import by_size, sentence
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="where the best networks are",
    paper="The settings that do best on validation lie near the critical line.",
    look="The 25 best settings of each training size beside the critical line. Activations beside "
    "the paper's were tried with fewer networks, as Table 2 says.",
)
TOP = 25  # networks
RARE = 0.05  # a probability
PANELS = 4  # training sets that are shown


@dataclass(frozen=True)
class Best:
    """The best 25 by validation, the best first, of all depths: by activation and training points;
    `networks` counts those that they were chosen from, `wanted` those of the whole grids.
    `distances` are those of all settings of an activation's grid from its critical line."""

    dataset: str
    activations: tuple[str, ...]
    sizes: tuple[int, ...]
    chosen: dict[tuple[str, int], tuple[Chosen, ...]]
    networks: dict[tuple[str, int], int]
    wanted: dict[tuple[str, int], int]
    distances: dict[str, Array]
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
    theories = read_theories(results.store, names)
    if not any(chosen.values()):
        raise no_grids(scope)
    return Best(
        scope.dataset,
        names,
        tuple(sizes),
        {key: some for key, some in chosen.items() if some},
        {key: sum(grid.networks for grid in of) for key, of in every.items()},
        {(name, train): grids.row_wanted(train, name) for name, train in every},
        {name: _distances(scope, theories.get(name), name) for name in names},
        theories,
    )


def _distances(scope: Scope, theory: Theory | None, name: str) -> Array:
    """Distances of all networks of the grids from the critical line; none without a line."""
    lines = [critical_weight_var(theory, value) for value in scope.bias_vars_of(name)]
    known = np.array([line for line in lines if line is not None])
    weights = [value for depth in scope.depths for value in scope.weight_vars_of(name, depth)]
    return np.abs(np.array(weights)[:, None] - known[None, :]).ravel()


def _spread(sizes: Sequence[int], count: int) -> Sequence[int]:
    """The first, the last, and others evenly between them."""
    if len(sizes) <= count:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (count - 1))] for i in range(count)]


def finding(data: Best) -> str:
    """Median distances of the best from the critical line."""
    away = medians(data)
    if not away:
        return NO_LINE
    low, high = data.weight_range
    return (
        f"Median distance in weight variance from the critical line, on a grid from {low:g} to "
        f"{high:g}, with {by_size(away, '.2f')}"
    )


def medians(data: Best) -> dict[tuple[str, int], float]:
    """Median distances of the best from the critical line, where there is one."""
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
    return away


def by_chance(median: float, count: int, distances: Array) -> float:
    """The probability that `count` networks drawn from the grid without replacement have a median
    distance as small: that more than half of them are as near."""
    near = int((distances <= median + 1e-12).sum())
    return float(hypergeom.sf((count + 1) // 2 - 1, len(distances), near, count))


def verdict(data: Best) -> ClaimVerdict:
    """Whether the best are nearer to the line than networks drawn at random."""
    away = {key: value for key, value in medians(data).items() if key[0] in _judged(data)}
    if not away:
        return ClaimVerdict("not measured", NO_LINE)
    chances = {
        key: by_chance(value, len(data.chosen[key]), data.distances[key[0]])
        for key, value in away.items()
    }
    near = [value < RARE for value in chances.values()]
    return ClaimVerdict(
        share_word(near),
        f"In {sum(near)} of {len(near)} panels of the paper's activations the best "
        f"{max(map(len, data.chosen.values()))} are nearer to the line than {1 - RARE:.0%} of sets "
        f"of as many networks drawn at random; {_beside_chance(data, away, chances)}",
    )


def _beside_chance(
    data: Best, away: dict[tuple[str, int], float], chances: dict[tuple[str, int], float]
) -> str:
    """Median distances and their probabilities by activation and size, beside the whole grid's."""
    sizes = ", ".join(f"{size:,}" for size in sorted({size for _, size in away}))
    parts = []
    for name in dict.fromkeys(name for name, _ in away):
        own = sorted(key for key in away if key[0] == name)
        found = ", ".join(f"{away[key]:.2f} (p {chances[key]:.2g})" for key in own)
        parts.append(f"{name} {found}, the whole grid {np.median(data.distances[name]):.2f}")
    return f"median distances with {sizes} points: {sentence(parts)}"


def _judged(data: Best) -> tuple[str, ...]:
    """The paper's activations, or all where there is none of them."""
    return tuple(name for name in data.activations if name in ACTIVATIONS) or data.activations


POINTS = 9
COLOURS = "plasma"
SMALLEST, LARGEST = 3.2, 8.0  # marks, in points: networks that differ in depth only are rings
BRIGHTEST = 0.88  # of the colours: brighter ones are not seen on white
MARGIN = 0.07  # of the ranges, so that marks at their ends are whole
Looks = dict[int, Style]  # of marks, by depth


def draw(data: Best, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """Rows are activations, columns training sets; each mark is a network, its colour the depth,
    and deeper ones are larger and lie below."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import save

    with plt.rc_context({"font.size": POINTS}):
        titles = [f"{train:,} points" for train in data.sizes]
        figure, axes = map_panels(data.activations, titles, 1.65, narrow)
        looks = _looks(sorted({one.depth for some in data.chosen.values() for one in some}))
        for row, name in zip(axes, data.activations, strict=True):
            for panel, train in zip(row, data.sizes, strict=False):
                _draw_panel(panel, data, name, train, looks)
        _draw_legend(figure, looks)
        name_figure(figure, _title(data))
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
        ncols=len(marks) if figure.get_figwidth() > NARROW else 5,
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


PART = Part("fig10", CLAIM, (CRITICAL_RUNS, *MAP_RUNS[1:], GRID_RUNS), read, finding, verdict, draw)
