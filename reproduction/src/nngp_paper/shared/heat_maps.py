"""Heat maps of test accuracy over the two variances (figures 4 and 9): read and drawn.

Colours go by the logarithm of the error, else the best networks would all look alike. cividis is
read alike by readers with and without colour blindness, and prints well in grey.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from nngp_paper.arrays import Array, Mask
from nngp_paper.grids.arrays import Grid, Grids
from nngp_paper.grids.choice import Chosen, by_validation
from nngp_paper.part import Axes, Figure, Results, Style
from nngp_paper.shared.critical import NO_LINE, Theory, read_theories
from nngp_paper.shared.propagation import Following, following
from nngp_paper.shared.words import sentence

if TYPE_CHECKING:
    from matplotlib.colors import LogNorm


@dataclass(frozen=True)
class HeatMap:
    """One grid and the network of it that validation chooses."""

    grid: Grid
    best: Chosen | None


AUTHORS_TABLE, EXACT = "authors' table", "exact kernel, noise 1e-10"
RELATIVE_NOISE = "exact kernel, relative noise"
Maps = dict[tuple[str, int], HeatMap]  # by activation and depth


@dataclass(frozen=True)
class HeatMaps:
    """Heat maps on one training set by activation and depth, and the theory of each activation;
    what is missing in either was not run. `maps` are those of the exact kernel with the paper's
    noise, `relative` those with noise relative to the kernel's scale, `authors` those of the
    authors' look-up table; `asked` is the number of networks of a grid."""

    dataset: str
    train: int
    activations: tuple[str, ...]
    depths: tuple[int, ...]
    maps: Maps
    theories: dict[str, Theory]
    asked: dict[tuple[str, int], int]
    relative: Maps
    authors: Maps

    @property
    def networks(self) -> int:
        """Number of networks that were run, with each kind of kernel and noise."""
        return sum(one.grid.networks for _, maps in self.kinds for one in maps.values())

    @property
    def wanted(self) -> int:
        """Number of networks of the whole grids."""
        wanted = sum(one.grid.wanted for _, maps in self.kinds for one in maps.values())
        keys = list(product(self.activations, self.depths))
        left = [key for _, maps in self.kinds for key in keys if key not in maps]
        return wanted + sum(self.asked[key] for key in left)

    @property
    def kinds(self) -> list[tuple[str, Maps]]:
        """Kernels and noises of which there are maps, by name: from what the authors computed to
        what the network alone does."""
        every = {AUTHORS_TABLE: self.authors, EXACT: self.maps, RELATIVE_NOISE: self.relative}
        return [(name, maps) for name, maps in every.items() if maps]

    def followings(self, name: str, maps: Maps) -> list[Following]:
        """How accuracy follows the critical line, by depth."""
        own = [maps[name, depth] for depth in self.depths if (name, depth) in maps]
        return [following(one.grid, self.theories.get(name)) for one in own]


def read_heat_maps(results: Results, names: Sequence[str], depths: Sequence[int]) -> HeatMaps:
    """Heat maps of these activations and depths: on the training set that has grids with the
    authors' table or relative noise, else on the one with the fullest grids."""
    grids, relative, authors = results.grids, results.relative_grids, results.authors_grids
    others = {key[0] for one in (relative, authors) for key in one.by_name}
    both = others & {key[0] for key in grids.by_name}
    train = max(both) if both else _fullest(grids, names, depths)
    maps = _maps(grids, train, names, depths)
    shown = tuple(name for name in names if any(key[0] == name for key in maps))
    return HeatMaps(
        results.scope.dataset,
        train,
        shown,
        tuple(depths),
        maps,
        read_theories(results.store, shown),
        {key: results.scope.networks(*key) for key in product(shown, depths)},
        _maps(relative, train, shown, depths),
        _maps(authors, train, shown, depths),
    )


def _maps(grids: Grids, train: int, names: Sequence[str], depths: Sequence[int]) -> Maps:
    return {
        (name, depth): HeatMap(grid, next(iter(by_validation([grid])), None))
        for name, depth in product(names, depths)
        if (grid := grids.get(train, name, depth)) is not None
    }


def _fullest(grids: Grids, names: Sequence[str], depths: Sequence[int]) -> int:
    """The largest training set that has as many complete grids of these as any; where none is
    complete, the one that has the most networks."""
    complete, networks = (dict.fromkeys(grids.scope.sizes, 0) for _ in range(2))
    for (train, name, depth), grid in grids.by_name.items():
        if name in names and depth in depths:
            complete[train] += grid.complete
            networks[train] += grid.networks
    counts = complete if any(complete.values()) else networks
    return max(counts, key=lambda train: (counts[train], train))


def best_sentence(data: HeatMaps, between: str, parts: Sequence[str]) -> str:
    """A finding: training points and layers, then a part for each activation."""
    layers = ", ".join(map(str, data.depths))
    found = f"Best with {data.train:,} training points{between}{layers} layers: {sentence(parts)}"
    return found if data.theories else f"{found} {NO_LINE}"


WIDTH, NARROW, POINTS = 7.2, 3.9, 9
COLOURS = "cividis_r"
NO_KERNEL = "0.75"
STAR: Style = {"marker": "*", "ms": 10, "mfc": "white", "mec": "black", "mew": 0.9}


def line_look() -> Style:
    """Look of the critical line: seen on dark and bright alike."""
    from matplotlib.patheffects import withStroke

    stroke = withStroke(linewidth=2.4, foreground="black")
    return {"color": "white", "lw": 1.0, "path_effects": [stroke]}


def error_scale(data: HeatMaps) -> "LogNorm":
    """The scale of colours, from the best to the worst of all heat maps."""
    from matplotlib.colors import LogNorm

    every = [one for _, maps in data.kinds for one in maps.values()]
    errors = np.concatenate([_errors(one).ravel() for one in every])
    known = errors[np.isfinite(errors)]
    lowest, highest = (known.min(), known.max()) if known.size else (0.1, 1.0)
    return LogNorm(lowest, max(highest, 1.01 * lowest))


def draw_map(
    axes: Axes, data: HeatMaps, maps: Maps, name: str, depth: int, norm: "LogNorm"
) -> None:
    """The cell of a network lies around it: grey without a kernel, hatched if it was not run."""
    from matplotlib.colors import ListedColormap

    axes.locator_params(axis="x", nbins=5)
    one = maps.get((name, depth))
    if one is None:
        write_note(axes, "not run")
        return
    weights, biases = _edges(one.grid.weight_vars), _edges(one.grid.bias_vars)
    cells: Style = {"rasterized": True}
    if (left := one.grid.asked & ~one.grid.tried).any():
        hatched: Style = {"facecolor": "none", "edgecolor": "0.75", "hatch": "////", "lw": 0}
        axes.pcolor(weights, biases, np.ma.masked_equal(left.T, False), **hatched)
    if (grey := _without_kernel(one)).any():
        hidden = np.ma.masked_equal(grey.T, False)
        axes.pcolormesh(weights, biases, hidden, cmap=ListedColormap([NO_KERNEL]), **cells)
    errors = np.ma.masked_invalid(_errors(one).T)
    axes.pcolormesh(weights, biases, errors, norm=norm, cmap=COLOURS, **cells)
    if name in data.theories:
        axes.plot(*data.theories[name].line_within(weights), **line_look())
    if one.best is not None:
        axes.plot(one.best.weight_var, one.best.bias_var, ls="none", clip_on=False, **STAR)
    frame = next(iter(data.maps.values())).grid  # the other kind of noise may have wider cells
    axes.set(xlim=_edges(frame.weight_vars)[[0, -1]], ylim=_edges(frame.bias_vars)[[0, -1]])


def write_note(axes: Axes, text: str) -> None:
    """A word in the middle of an empty panel."""
    axes.text(0.5, 0.5, text, ha="center", transform=axes.transAxes, color="0.35")


def map_panels(
    rows: Sequence[str], columns: Sequence[str], height: float, narrow: bool
) -> tuple[Figure, list[list[Axes]]]:
    """Panels over the two variances, by row and column. On narrow figures the panels of a row stand
    two by two, each with its full name."""
    import matplotlib.pyplot as plt

    across = min(2, len(columns)) if narrow else len(columns)
    down = -(-len(columns) // across)
    size = (NARROW, 1.1 + 1.7 * down * len(rows)) if narrow else (WIDTH, 1.0 + height * len(rows))
    shared: Style = {"sharex": True, "sharey": True, "squeeze": False}
    figure, grid = plt.subplots(
        *(down * len(rows), across), figsize=size, layout="constrained", **shared
    )
    axes = [list(grid[i * down : (i + 1) * down].ravel()) for i in range(len(rows))]
    for row, (name, panels) in enumerate(zip(rows, axes, strict=True)):
        for panel, title in zip(panels, columns, strict=False):
            whole = f"{name.replace(chr(10), ', ')}\n{title}"
            panel.set_title(whole if narrow else title if not row else "", fontsize=POINTS - narrow)
        for panel in panels[len(columns) :]:
            panel.set_axis_off()
    for row, line in enumerate(grid):
        words = "bias variance" if narrow else f"{rows[row]}\nbias variance"
        line[0].set_ylabel(words, fontsize=POINTS - narrow)
    for panel in grid[-1]:
        panel.set_xlabel("weight variance")
    return figure, axes


def draw_colour_bar(figure: Figure, axes: list[Axes], norm: "LogNorm") -> None:
    """A bar whose colours go by the logarithm of the error, and its ticks by accuracy."""
    from matplotlib.cm import ScalarMappable

    from nngp_paper.plots.style import accuracy_ticks

    thin = 30 if figure.get_figwidth() > NARROW else 100
    bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, pad=0.02, aspect=thin)
    bar.ax.invert_yaxis()
    named = accuracy_ticks(norm.vmin or 0.1, norm.vmax or 1.0)
    bar.set_ticks([1 - accuracy for accuracy in named], labels=[f"{each:g}" for each in named])
    bar.minorticks_off()


def draw_legend(figure: Figure, data: HeatMaps) -> None:
    """The marks that are there."""
    from matplotlib.artist import Artist
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks: list[Artist] = [Line2D([], [], ls="none", label="best by validation", **STAR)]
    if data.theories:
        marks.append(Line2D([], [], label="critical line", **line_look()))
    every = [one for _, maps in data.kinds for one in maps.values()]
    if any(_without_kernel(one).any() for one in every):
        marks.append(Patch(facecolor=NO_KERNEL, label="no kernel"))
    if any((one.grid.asked & ~one.grid.tried).any() for one in every):
        look: Style = {"facecolor": "none", "edgecolor": "0.75", "hatch": "////"}
        marks.append(Patch(label="not run", **look))
    columns = 4 if figure.get_figwidth() > NARROW else 2
    figure.legend(handles=marks, loc="outside lower center", ncols=columns, frameon=False)


def name_figure(figure: Figure, title: str) -> None:
    """A title, in lines that fit."""
    longest = 50 if figure.get_figwidth() <= NARROW else 95
    figure.suptitle("\n".join(textwrap.wrap(title, longest)), fontsize=POINTS)


def data_words(data: HeatMaps) -> str:
    """Data set and training points, for a title; the networks too if some are missing."""
    missing = data.wanted - data.networks
    partly = f" ({data.networks:,} of {data.wanted:,} networks)" if missing else ""
    return f"{data.dataset}, {data.train:,} training points{partly}"


def _errors(one: HeatMap) -> Array:
    """The share of wrong test points; none counts as half a point, for the logarithm."""
    return np.maximum(1 - one.grid.scores["test_accuracy"], 0.5 / one.grid.test)


def _without_kernel(one: HeatMap) -> Mask:
    return one.grid.tried & np.isnan(one.grid.scores["test_accuracy"])


def _edges(values: Array) -> Array:
    """Borders of the cells: between neighbours, and as far beyond the ends."""
    if len(values) == 1:
        return values[0] + np.array([-0.5, 0.5])
    inner = (values[1:] + values[:-1]) / 2
    return np.array([2 * values[0] - inner[0], *inner, 2 * values[-1] - inner[-1]])
