"""Figure 10: the variances of the best networks beside the critical line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom

from nngp_paper.arrays import Array
from nngp_paper.grids.arrays import Grids, no_grids
from nngp_paper.grids.choice import Chosen, by_validation
from nngp_paper.grids.study import GRID_RUNS, MAP_RUNS
from nngp_paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp_paper.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE
from nngp_paper.shared.critical import (
    CRITICAL_RUNS,
    NO_LINE,
    Theory,
    critical_weight_var,
    read_theories,
)
from nngp_paper.shared.heat_maps import (
    AUTHORS_TABLE,
    EXACT,
    NARROW,
    RELATIVE_NOISE,
    map_panels,
    name_figure,
    write_note,
)
from nngp_paper.shared.words import sentence
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="where the best networks are",
    paper="The best performing networks are distributed near the critical line (the 25 best of "
    "each training set).",
    look="The 25 best by validation beside the critical line: on one training set by the authors' "
    "table, as in the paper, and by the exact kernel with both kinds of noise (the first and the "
    "last at the depths of Figure 9), then by the exact kernel on other training sets. With a bias "
    "variance of zero the weight variance of a relu network only scales its kernel: settings that "
    "are the same predictor count once.",
)
TOP = 25  # networks
RARE = 0.05  # a probability
HOMOGENEOUS = ("relu",)  # activations whose kernels scale with the weight variance
LEAST = 200  # networks that a probability is given for
OTHERS = 2  # training sets that are shown beside the one of the maps
SAME = 3  # significant digits of the validation errors of settings that are the same predictor


@dataclass(frozen=True)
class Panel:
    """A kernel with its noise, by name, and a training set."""

    kind: str
    train: int

    @property
    def title(self) -> str:
        return f"{self.kind.replace(', ', chr(10))}\n{self.train:,} points"


@dataclass(frozen=True)
class Best:
    """The best 25 predictors by validation, the best first, of all depths, by activation and panel;
    `networks` counts those that they were chosen from, `wanted` those of the whole grids, `merged`
    the settings that are the same predictor as a better one of the 25. `distances` are those of all
    predictors that were tried from the critical line of their activation."""

    dataset: str
    activations: tuple[str, ...]
    panels: tuple[Panel, ...]
    chosen: dict[tuple[str, Panel], tuple[Chosen, ...]]
    networks: dict[tuple[str, Panel], int]
    wanted: dict[tuple[str, Panel], int]
    merged: dict[tuple[str, Panel], int]
    distances: dict[tuple[str, Panel], Array]
    theories: dict[str, Theory]
    weight_range: tuple[float, float] = WEIGHT_VAR_RANGE
    bias_range: tuple[float, float] = BIAS_VAR_RANGE


def read(results: Results) -> Best:
    """The best of the paper's activations: by each kernel and noise on the training set of figure
    4, and by the exact kernel on others, from the smallest to the largest that have been begun."""
    scope, grids = results.scope, results.grids
    begun = {name for _, name, _ in grids.by_name}
    names = tuple(name for name in scope.paper_activations if name in begun)
    if not names:
        raise no_grids(scope)
    theories = read_theories(results.store, names)
    kinds = {AUTHORS_TABLE: results.authors_grids, RELATIVE_NOISE: results.relative_grids}
    panels: dict[Panel, Grids] = {}
    for panel in _panels(grids, kinds):
        panels[panel] = kinds.get(panel.kind, grids)
    found = {
        (name, panel): _found(name, panel, of, theories.get(name))
        for name in names
        for panel, of in panels.items()
    }
    known = {key: one for key, one in found.items() if one.chosen}
    if not known:
        raise no_grids(scope)
    return Best(
        scope.dataset,
        names,
        tuple(panels),
        {key: one.chosen for key, one in known.items()},
        {key: one.networks for key, one in found.items()},
        {key: one.wanted for key, one in found.items()},
        {key: one.merged for key, one in found.items()},
        {key: one.distances for key, one in found.items()},
        theories,
    )


def _panels(grids: Grids, kinds: Mapping[str, Grids]) -> list[Panel]:
    """The kinds on the training set that they have, and the exact kernel on some others."""
    sizes = sorted({train for train, _, _ in grids.by_name})
    shared = {train for of in kinds.values() for train, _, _ in of.by_name} & set(sizes)
    if not shared:
        return [Panel(EXACT, train) for train in _spread(sizes, len(kinds) + OTHERS)]
    at = max(shared)
    others = [train for train in sizes if train != at]
    there = [name for name, of in kinds.items() if any(key[0] == at for key in of.by_name)]
    order = [name for name in (AUTHORS_TABLE, EXACT, RELATIVE_NOISE) if name in (EXACT, *there)]
    return [Panel(kind, at) for kind in order] + [
        Panel(EXACT, train) for train in _spread(others, OTHERS)
    ]


@dataclass(frozen=True)
class _Found:
    """Results of one activation and panel."""

    chosen: tuple[Chosen, ...]
    networks: int
    wanted: int
    merged: int
    distances: Array


def _found(name: str, panel: Panel, grids: Grids, theory: Theory | None) -> _Found:
    own = grids.of(panel.train, name)
    every = by_validation(own, None)
    # Of the authors' table a scale is more than a scale: its integral is cut.
    different = every if panel.kind == AUTHORS_TABLE else distinct(every, name)
    best = tuple(different[:TOP])
    last = every.index(best[-1]) + 1 if best else 0
    wanted = sum(grid.wanted for grid in own)
    if panel.kind == EXACT:
        wanted = grids.row_wanted(panel.train, name)
    return _Found(
        best,
        sum(grid.networks for grid in own),
        wanted,
        last - len(best),
        np.array([apart for one in different if (apart := _apart(theory, one)) is not None]),
    )


def distinct(ranked: Sequence[Chosen], activation: str) -> list[Chosen]:
    """Networks without those that are the same predictor as a better one: relu networks of one
    depth without biases whose validation scores are the same. (Where noise outweighs a kernel that
    has become small, they differ.)"""
    if activation not in HOMOGENEOUS:
        return list(ranked)
    found: dict[object, Chosen] = {}
    for place, one in enumerate(ranked):
        error = f"{one.val_mse:.{SAME}g}"
        found.setdefault((one.depth, error) if one.bias_var == 0 else place, one)
    return list(found.values())


def _apart(theory: Theory | None, one: Chosen) -> float | None:
    """Distance from the critical line in weight variance."""
    line = critical_weight_var(theory, one.bias_var)
    return None if line is None else abs(one.weight_var - line)


def _spread(sizes: Sequence[int], count: int) -> Sequence[int]:
    """The first, the last, and others evenly between them."""
    if len(sizes) <= count:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (count - 1))] for i in range(count)]


def finding(data: Best) -> str:
    """Median distances of the best from the critical line, and how many settings were merged."""
    away = medians(data)
    if not away:
        return NO_LINE
    low, high = data.weight_range
    parts = [
        f"{name} {', '.join(f'{v:.2f}' for (n, _), v in away.items() if n == name)}"
        for name in data.activations
    ]
    merged = sum(data.merged.values())
    same = f" {merged} settings are the same predictor as a better one." if merged else ""
    return (
        f"Median distance in weight variance from the critical line, on a grid from {low:g} to "
        f"{high:g}, from the left: {sentence(parts)}{same}"
    )


def medians(data: Best) -> dict[tuple[str, Panel], float]:
    """Median distances of the best from the critical line, where there is one."""
    away = {}
    for key, chosen in data.chosen.items():
        apart = [_apart(data.theories.get(key[0]), one) for one in chosen]
        known = [value for value in apart if value is not None]
        if known:
            away[key] = float(np.median(known))
    return away


def by_chance(median: float, count: int, distances: Array) -> float:
    """The probability that `count` networks drawn from the grid without replacement have a median
    distance as small: that more than half of them are as near."""
    near = int((distances <= median + 1e-12).sum())
    return float(hypergeom.sf((count + 1) // 2 - 1, len(distances), near, count))


def verdict(data: Best) -> ClaimVerdict:
    """Whether the best are nearer to the line than networks drawn at random, in the panels with
    enough networks to tell."""
    away = medians(data)
    if not away:
        return ClaimVerdict("not measured", NO_LINE)
    chances = {
        key: by_chance(value, len(data.chosen[key]), data.distances[key])
        for key, value in away.items()
        if len(data.distances[key]) >= LEAST
    }
    near = [value < RARE for value in chances.values()]
    if not near:
        return ClaimVerdict(
            "not measured", f"No panel has the {LEAST} networks that a comparison needs."
        )
    return ClaimVerdict(
        share_word(near),
        f"In {sum(near)} of {len(near)} panels with {LEAST} networks or more the best "
        f"{max(map(len, data.chosen.values()))} are nearer to the line than {1 - RARE:.0%} of sets "
        f"of as many networks drawn at random; {_beside_chance(away, chances)}.",
    )


def _beside_chance(
    away: dict[tuple[str, Panel], float], chances: dict[tuple[str, Panel], float]
) -> str:
    """Median distances and their probabilities, by activation and panel."""
    parts = []
    for name in dict.fromkeys(name for name, _ in chances):
        found = [
            f"{panel.kind}, {panel.train:,} points {away[name, panel]:.2f} (p {chance:.2g})"
            for (own, panel), chance in chances.items()
            if own == name
        ]
        parts.append(f"{name}: {'; '.join(found)}")
    return f"median distances of {'. '.join(parts)}"


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
        titles = [panel.title for panel in data.panels]
        figure, axes = map_panels(data.activations, titles, 1.65, narrow)
        looks = _looks(sorted({one.depth for some in data.chosen.values() for one in some}))
        for row, name in zip(axes, data.activations, strict=True):
            for axes_of, panel in zip(row, data.panels, strict=False):
                _draw_panel(axes_of, data, name, panel, looks)
        _draw_legend(figure, looks)
        name_figure(figure, _title(data))
        save(figure, path)
    return figure


def _draw_panel(axes: Axes, data: Best, name: str, panel: Panel, looks: Looks) -> None:
    if name in data.theories:
        theory = data.theories[name]
        axes.plot(*theory.line_within(np.array(data.weight_range)), color="0.4", lw=1.1, ls="--")
    chosen = data.chosen.get((name, panel), ())
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


RUNS = (CRITICAL_RUNS, *MAP_RUNS[1:], GRID_RUNS)  # MAP_RUNS[0] is a part of the whole grid
PART = Part("fig10", CLAIM, RUNS, read, finding, verdict, draw)
