"""Variance and correlation against the number of repetitions, for parts of networks.

Takes parts by name; gives `nngp.regimes.BlockPropagation`s, and a figure of them. Straight lines
are powers of the depth; exponential laws bend down or up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nngp._arrays import Array
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Network
from nngp.plots import style
from nngp.plots.style import OutputPath, new_figure, plain
from nngp.regimes import BlockPropagation, propagate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Blocks = Network | Mapping[str, Network]
WIDTH, HEIGHT, ROW = 7.2, 3.2, 0.19  # inches; each part has a row in the legend
LOWEST, HIGHEST = 1e-6, 1e6  # what the axes show at most
MARKERS = "os^Dv*P"


@dataclass(frozen=True)
class BlockStudy:
    """Parts by name, each followed over the same number of repetitions."""

    correlation: float
    found: dict[str, BlockPropagation]


def blocks(
    blocks: Blocks,
    path: OutputPath = None,
    *,
    depth: int = 1000,
    correlation: float = 0.5,
    progress: Callback | bool | None = None,
) -> "Figure":
    """Draw variance and 1 - correlation against the number of repetitions of parts.

    Parameters
    ----------
    blocks : Network or mapping of names to networks
        What is repeated; see `nngp.regimes.propagate`.
    path : path, optional
    depth : int
        The number of repetitions.
    correlation : float
        Of two inputs before the first repetition.
    progress : callable or bool, optional
        As in `nngp.condition`.

    Examples
    --------
    The same in two steps:

    >>> import nngp
    >>> from nngp.plots.block_depth import block_study, draw_blocks
    >>> layer = [nngp.Act("relu"), nngp.Dense(2.0)]
    >>> study = block_study({"chain": nngp.Chain(*layer), "skip": nngp.Residual(*layer)}, 100)
    >>> figure = draw_blocks(study, "blocks.svg")
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['variance', '1 - correlation']
    """
    return draw_blocks(block_study(blocks, depth, correlation, progress), path)


def block_study(
    blocks: Blocks,
    depth: int = 1000,
    correlation: float = 0.5,
    progress: Callback | bool | None = None,
) -> BlockStudy:
    """Follow each part over `depth` repetitions."""
    named = {"block": blocks} if isinstance(blocks, Network) else dict(blocks)
    if not named:
        raise ValueError("give at least one part to draw")
    found = {}
    with Progress("propagation", len(named), progress_for(progress)) as job:
        for name, block in named.items():
            found[name] = propagate(block, depth, correlations=[correlation])
            job.advance(1, name)
    return BlockStudy(correlation, found)


def draw_blocks(study: BlockStudy, path: OutputPath = None) -> "Figure":
    """Draw a panel for the variance and one for 1 - correlation."""
    size = WIDTH, HEIGHT + ROW * len(study.found)
    with new_figure(size, path) as figure:
        left, right = figure.subplots(1, 2)
        for place, (name, one) in enumerate(study.found.items()):
            look = style.COLOURS[place % len(style.COLOURS)], MARKERS[place % len(MARKERS)]
            _draw(left, one.variance, *look)
            _draw(right, one.one_minus[:, 0], *look, name=f"{name}: {one.one_minus_laws[0]}")
        left.set(ylabel="variance")
        right.set(ylabel="1 - correlation")
        _set_axes(left, [one.variance for one in study.found.values()])
        _set_axes(right, [one.one_minus[:, 0] for one in study.found.values()])
        words = f"1 - correlation, from a correlation of {study.correlation:g}"
        figure.legend(loc="outside lower center", frameon=False, title=words)
    return figure


def _set_axes(axes: "Axes", values: Sequence[Array]) -> None:
    shown = np.clip(np.concatenate(values), LOWEST, HIGHEST)
    axes.set(xscale="log", yscale="log", xlabel="repetitions l")
    axes.set_ylim(shown.min() / 2, shown.max() * 2)
    plain(axes)


def _draw(axes: "Axes", values: Array, colour: str, marker: str, name: str | None = None) -> None:
    depths = np.arange(1, len(values))
    marked = np.unique(np.geomspace(1, len(values) - 1, 9).astype(int)) - 1
    look: style.Options = {"color": colour, "lw": 1.2, "ms": 4, "markevery": marked.tolist()}
    axes.plot(depths, values[1:], marker=marker, label=name, **look)
