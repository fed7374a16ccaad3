"""One panel of figure 7: errors of kernels against width, with the slope that theory gives."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from nngp.architecture import Architecture
from nngp.finite.width_convergence import Decay
from nngp.plots.style import plain

LAYERS = ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^")  # Okabe-Ito
GREY = "0.45"
LEGEND: dict[str, Any] = {"frameon": False, "labelcolor": "linecolor", "handletextpad": 0.2}


def draw_decay(axes: plt.Axes, data: Decay) -> None:
    """Errors of the first, the middle and the last layer, each with its fitted line."""
    for (colour, mark), layer in zip(LAYERS, shown_layers(data.error.shape[1]), strict=False):
        slope, doubt = data.slope[layer - 1], data.slope_error[layer - 1]
        label = f"layer {layer}: slope {slope:.3f} ± {doubt:.3f}".replace("-", "−")
        axes.plot(data.widths, data.error[:, layer - 1], mark, color=colour, ms=4, label=label)
        axes.plot(data.widths, data.line(layer), color=colour, lw=1.1)
    _draw_guide(axes, data)
    axes.set(yscale="log", ylim=(None, 5 * data.error.max()))  # room for the words
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper right", **LEGEND)
    name_widths(axes, data.widths)
    plain(axes)


def shown_layers(depth: int) -> list[int]:
    """The layers to show: first, middle, last."""
    return list(dict.fromkeys((1, (depth + 1) // 2, depth)))


def name_widths(axes: plt.Axes, widths: Sequence[int]) -> None:
    """Widths as they are, every other one if there are many."""
    shown = widths[:: max(1, round(len(widths) / 5))]
    axes.set(xscale="log", xlabel="width")
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")


def network_words(net: Architecture, networks: int) -> str:
    """The network, and how many were drawn."""
    parts = [f"{net.activation.name}, depth {net.depth}"]
    for name, value in (("weight_var", net.weight_var), ("bias_var", net.bias_var)):
        parts.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} by layer")
    return f"{', '.join(parts)}; {networks} networks of each width"


def _draw_guide(axes: plt.Axes, data: Decay) -> None:
    """The slope of theory, below the others."""
    ends = np.array([data.widths[0], data.widths[-1]], dtype=float)
    lowest = (data.error.min(axis=1) * np.sqrt(data.widths)).min()
    axes.plot(ends, 0.6 * lowest / np.sqrt(ends), color=GREY, lw=0.9, ls=":")
    middle = np.sqrt(ends.prod())
    axes.annotate(
        "slope −½ ",
        (middle, 0.5 * lowest / np.sqrt(middle)),
        ha="right",
        va="top",
        color=GREY,
    )
