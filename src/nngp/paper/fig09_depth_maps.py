"""Figure 9: test accuracy over the two variances, at several depths."""

from pathlib import Path

from nngp.paper import heat_maps
from nngp.paper.critical import CRITICAL_RUNS
from nngp.paper.grids.arrays import no_grids
from nngp.paper.grids.study import GRID_RUNS, RELATIVE_RUNS, shown_depths
from nngp.paper.heat_maps import POINTS, WIDTH, HeatMaps, read_heat_maps
from nngp.paper.part import Claim, Figure, Part, Results
from nngp.paper.words import percent

CLAIM = Claim(
    title="accuracy over the two variances at many depths",
    paper="The deeper the network, the narrower the region around the critical line in which it "
    "does well.",
    look="From left to right networks become deeper; the thin line is critical. Our kernel keeps "
    "its digits at any depth, so what is lost here is lost by the network, not by rounding.",
)


def read(results: Results) -> HeatMaps:
    """All activations of the scope at depths 1, 3, 10 and 50, or at those that there are."""
    if not results.grids.by_name:
        raise no_grids(results.scope)
    depths = shown_depths({depth for _, _, depth in results.grids.by_name})
    return read_heat_maps(results, results.scope.activations, depths)


def finding(data: HeatMaps) -> str:
    """The test accuracy of the best network of each map."""
    parts = []
    for name in data.activations:
        known = [data.maps[name, depth].best for depth in data.depths if (name, depth) in data.maps]
        parts.append(f"{name} {', '.join(percent(best.test_accuracy) for best in known if best)}")
    return heat_maps.best_sentence(data, " and ", parts)


def draw(data: HeatMaps, path: str | Path | None = None) -> Figure:
    """Rows are activations, columns depths; one scale of colours for all."""
    import matplotlib.pyplot as plt

    from nngp.plots.style import save, variance_panels

    with plt.rc_context({"font.size": POINTS}):
        titles = [f"depth {depth}" for depth in data.depths]
        size = (WIDTH, 1.0 + 1.6 * len(data.activations))
        figure, axes = variance_panels(data.activations, titles, size)
        norm = heat_maps.error_scale(data)
        for row, name in zip(axes, data.activations, strict=True):
            for panel, depth in zip(row, data.depths, strict=True):
                heat_maps.draw_map(panel, data, name, depth, norm)
        heat_maps.draw_colour_bar(figure, axes.ravel().tolist(), norm)
        figure.suptitle(f"test accuracy: {heat_maps.data_words(data)}", fontsize=POINTS + 1)
        heat_maps.draw_legend(figure, data)
        save(figure, path)
    return figure


PART = Part("fig9", CLAIM, (CRITICAL_RUNS, RELATIVE_RUNS, GRID_RUNS), read, finding, draw)
