"""Figure 9: test accuracy over the two variances at several depths.

By the authors' table, and by the exact kernel with two kinds of noise."""

from pathlib import Path

from nngp_paper.grids.arrays import no_grids
from nngp_paper.grids.study import MAP_RUNS, shown_depths
from nngp_paper.part import Claim, Figure, Part, Results
from nngp_paper.shared import heat_maps
from nngp_paper.shared.critical import CRITICAL_RUNS
from nngp_paper.shared.heat_maps import POINTS, HeatMaps, Maps, map_panels, read_heat_maps
from nngp_paper.shared.propagation import (
    chances,
    combined,
    correlations,
    following,
    no_line,
    sources_sentence,
    strength,
)
from nngp_paper.shared.words import percent
from nngp_paper.verdict import ClaimVerdict, Word

CLAIM = Claim(
    title="accuracy over the two variances at many depths",
    paper="Accuracy appears to drop more quickly away from the phase boundary with increasing "
    "depth.",
    look="From left to right networks become deeper; the thin line is critical. For each "
    "activation the first row has the authors' look-up table, as in the paper, the second the "
    "exact kernel with their noise of 1e-10, and the third noise relative to the kernel's scale.",
)


def read(results: Results) -> HeatMaps:
    """The paper's activations at depths 1, 3, 10 and 50, or at those that there are."""
    names = results.scope.paper_activations
    known = {depth for _, name, depth in results.grids.by_name if name in names}
    if not known:
        raise no_grids(results.scope)
    return read_heat_maps(results, names, shown_depths(known))


def finding(data: HeatMaps) -> str:
    """The test accuracy of the best network of each map."""
    parts = []
    for name in data.activations:
        known = [data.maps[name, depth].best for depth in data.depths if (name, depth) in data.maps]
        parts.append(f"{name} {', '.join(percent(best.test_accuracy) for best in known if best)}")
    return heat_maps.best_sentence(data, " and ", parts)


def verdict(data: HeatMaps) -> ClaimVerdict:
    """Whether accuracy follows the line the more the deeper, with both kinds of noise."""
    if not data.theories:
        return no_line()
    rows = [(name, kind, maps) for name in data.activations for kind, maps in data.kinds]
    words = [_word(data, name, maps) for name, _, maps in rows]
    parts = [
        f"{name}, {kind} {correlations(data.followings(name, maps))}" for name, kind, maps in rows
    ]
    lost = {kind: found for kind, maps in data.kinds if (found := deepest(data, maps))}
    depths = ", ".join(map(str, data.depths))
    return ClaimVerdict(
        combined(words),
        f"With {data.depths[-1]} layers: {sources_sentence(lost)}. Rank correlation of accuracy "
        f"and distance from the critical line at {depths} layers: {'; '.join(parts)} (chance: "
        f"{chances(lost.values())}).",
    )


def _word(data: HeatMaps, name: str, maps: Maps) -> Word:
    """Supported if the deepest networks follow the line, and more than the shallowest."""
    known = [one for one in data.followings(name, maps) if one.correlation is not None]
    if len(known) < 2:
        return "not measured"
    first, last = (one.correlation or 0.0 for one in (known[0], known[-1]))
    return strength(known[-1]) if last < first else "not supported"


def deepest(data: HeatMaps, maps: Maps) -> list[heat_maps.Following]:
    """How the deepest networks of each activation do."""
    keys = [(name, data.depths[-1]) for name in data.activations]
    return [following(maps[key].grid, data.theories.get(key[0])) for key in keys if key in maps]


def draw(data: HeatMaps, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """Rows are activations and kinds of noise, columns depths; one scale of colours for all."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import save

    rows = [(name, kind, maps) for name in data.activations for kind, maps in data.kinds]
    labels = [f"{name}\n{kind}".replace(", ", "\n") for name, kind, _ in rows]
    with plt.rc_context({"font.size": POINTS}):
        titles = [f"depth {depth}" for depth in data.depths]
        figure, axes = map_panels(labels, titles, 1.6, narrow)
        norm = heat_maps.error_scale(data)
        for panels, (name, _, maps) in zip(axes, rows, strict=True):
            for panel, depth in zip(panels, data.depths, strict=False):
                heat_maps.draw_map(panel, data, maps, name, depth, norm)
        heat_maps.draw_colour_bar(figure, [panel for row in axes for panel in row], norm)
        heat_maps.name_figure(figure, f"test accuracy: {heat_maps.data_words(data)}")
        heat_maps.draw_legend(figure, data)
        save(figure, path)
    return figure


RUNS = (CRITICAL_RUNS, *MAP_RUNS)
PART = Part("fig9", CLAIM, RUNS, read, finding, verdict, draw)
