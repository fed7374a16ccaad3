"""Figure 7 (app. C): the graphical model of a network, and how kernels gather round their limit.

The inputs x give the second moments K⁰. Given the moments of a layer its units z are independent
and Gaussian: a plate stands for all of them. Means over the units are the moments of the next
layer. So nothing reaches the output but through the chain of moments, and these gather round their
limits as width^(-1/2).
"""

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np

from nngp import Architecture
from nngp.finite import Decay
from nngp_paper.arrays import Array
from nngp_paper.experiment import Config, Experiment, network_of, rounded
from nngp_paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="a network as a chain of kernels",
    paper="Given the kernel of the layer below, a layer's kernel is a mean over its units: it "
    "spreads less the wider the layer, with a variance that falls as 1/width.",
    look="Left, what depends on what. Right, the spread of kernels of networks drawn at random: in "
    "logarithms it should fall with slope -1/2.",
)
CONFIG = {
    **{"activation": "relu", "depth": 3, "weight_var": 1.6, "bias_var": 0.1},
    **{"widths": [4, 8, 16, 32, 64, 128, 256], "networks": 2000, "seed": 0, "inputs": 3},
}
CLOSE = 0.03  # narrow networks are not yet in the limit
MEASURED = ("error", "error_of_error", "slope", "slope_error")


def study(scope: Scope) -> Study:
    """One run, the same for every scope."""
    return Study("spread", [CONFIG], _work)


SPREAD_RUNS = Experiment("spread", study, extra=True)


def _work(config: Config) -> Outcome:
    from nngp.finite import convergence  # needs JAX

    found = convergence(
        network_of(config),
        _three_inputs()[: config["inputs"]],
        config["widths"],
        config["networks"],
        config["seed"],
        progress=False,
    )
    result = {name: rounded(getattr(found, name)) for name in MEASURED}
    from nngp_paper.finite.device import device_name  # needs JAX, which `convergence` has checked

    return Outcome({"widths": list(found.widths), **result}, device_name())


def _three_inputs() -> Array:
    """Inputs at 0, 45 and 135 degrees, with x·x/d = 1."""
    angles = np.radians([0.0, 45.0, 135.0])
    return np.sqrt(2.0) * np.column_stack([np.cos(angles), np.sin(angles)])


@dataclass(frozen=True)
class Spread:
    """The error of kernels against width, of so many networks of each."""

    architecture: Architecture
    networks: int
    decay: Decay


def read(results: Results) -> Spread:
    """The networks that the study drew."""
    ((config, result),) = results.finished(study(results.scope))
    errors = np.array(result["error"]), np.array(result["error_of_error"])
    decay = Decay(tuple(result["widths"]), *errors)
    return Spread(network_of(config), config["networks"], decay)


def finding(data: Spread) -> str:
    """The slopes of all layers."""
    slopes = zip(data.decay.slope, data.decay.slope_error, strict=True)
    parts = [f"{slope:.3f} ± {error:.3f}" for slope, error in slopes]
    return f"Slopes by layer: {', '.join(parts)}; theory says -0.5.".replace("-", "−")


def verdict(data: Spread) -> ClaimVerdict:
    """Whether the spread of every layer falls as width^(-1/2)."""
    slopes = list(zip(data.decay.slope, data.decay.slope_error, strict=True))
    held = [abs(slope + 0.5) <= max(2 * error, CLOSE) for slope, error in slopes]
    worst = max(slopes, key=lambda pair: abs(pair[0] + 0.5))
    return ClaimVerdict(
        share_word(held),
        f"In {sum(held)} of {len(held)} layers the slope is −0.5 within two standard errors or "
        f"{CLOSE:g}; the farthest is {worst[0]:.3f} ± {worst[1]:.3f}.".replace(" -", " −"),
    )


SIZE, NARROW, POINTS = (7.2, 3.6), (3.9, 6.6), 9


def draw(data: Spread, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """Left the graphical model, right the measured error of G(K) against width."""
    import matplotlib.pyplot as plt

    from nngp.plots.width_convergence import draw_decay
    from nngp_paper.plots.style import save

    with plt.rc_context(
        {"font.size": POINTS, "axes.titlesize": POINTS, "mathtext.fontset": "dejavuserif"}
    ):
        figure = plt.figure(figsize=NARROW if narrow else SIZE, layout="constrained")
        left, right = (
            figure.subplots(2, 1) if narrow else figure.subplots(1, 2, width_ratios=(1.3, 1))
        )
        _draw_graph(left)
        left.set_title("graphical model of a network", loc="left")
        draw_decay(right, data.decay)
        right.set_title("measured: relative error of $G(K^l)$", loc="left")
        words = _network_words(data.architecture, data.networks)
        figure.suptitle(fill(words, 45 if narrow else 120), fontsize=POINTS)
        save(figure, path)
    return figure


def _network_words(net: Architecture, networks: int) -> str:
    """The network, and the number of networks drawn."""
    shape = f"{net.activation.name}, depth {net.depth}"
    variances = f"weight_var {net.weight_var:g}, bias_var {net.bias_var:g}"
    return f"{shape}, {variances}; {networks} networks of each width"


Point = tuple[float, float]
RADIUS = 0.49
LOW, HIGH = 0.0, 2.0  # heights of moments and of units
START = -1.5  # where x is
COLUMNS = (0.0, 1.6, 3.8, 5.4)  # layers 0, 1, L - 1 and L
MOMENTS = ("$K^0$", "$K^1$", "$K^{L{-}1}$", "$K^L$")
UNITS = ("$z^0$", "$z^1$", "$z^{L{-}1}$", "$z^L$")
COUNTS = ("$N_1$", "$N_2$", "$N_L$", r"$d_{\rm out}$")
NODE = 10  # points: exponents are smaller
GIVEN, DRAWN, FOLLOWS = "0.85", "#D9E8F3", "#FAE3D3"  # data, random, a function of what is above
EQUATIONS = (
    r"$K^0 = x^{\top}x\,/\,d_{\rm in}$",
    r"$z^l\,|\,K^l \,\sim\, \mathcal{N}(0,\, G(K^l))$,  $G(K) = \sigma_w^2 K + \sigma_b^2$",
    r"$K^{l} = \phi(z^{l{-}1})^{\top}\phi(z^{l{-}1})\,/\,N_l$",
)


def _draw_graph(axes: Axes) -> None:
    """From x to the output, moments below and units above, and their equations."""
    for column, moment, unit, count in zip(COLUMNS, MOMENTS, UNITS, COUNTS, strict=True):
        _draw_layer(axes, column, moment, unit, count)
    _node(axes, (START, LOW), "$x$", GIVEN)
    _arrow(axes, (START, LOW), (COLUMNS[0], LOW))
    for before in (0, 2):
        _arrow(axes, (COLUMNS[before], HIGH), (COLUMNS[before + 1], LOW))
    middle = (COLUMNS[1] + COLUMNS[2]) / 2, (LOW + HIGH) / 2
    _arrow(axes, (COLUMNS[1], HIGH), middle)
    _arrow(axes, middle, (COLUMNS[2], LOW))
    axes.text(*middle, r"$\cdots$", ha="center", va="center", size=NODE + 3)
    for line, words in enumerate(EQUATIONS):
        axes.text(START - RADIUS, LOW - 1.25 - 0.85 * line, words, va="center", size=NODE)
    axes.set(xlim=(START - 0.56, COLUMNS[-1] + 0.65), ylim=(-3.4, HIGH + 1.0), aspect="equal")
    axes.set_axis_off()


def _draw_layer(axes: Axes, column: float, moment: str, unit: str, count: str) -> None:
    """The moments of a layer, and its units in their plate, with their number."""
    from matplotlib.patches import Circle, FancyBboxPatch

    half = RADIUS + 0.12
    corner, sides = (column - half, HIGH - half), (2 * half, 2 * half + 0.34)
    style = "round,pad=0,rounding_size=0.12"
    axes.add_patch(FancyBboxPatch(corner, *sides, style, fc="none", ec="0.45"))
    axes.text(column, HIGH + half + 0.08, count, ha="center", va="center")
    _node(axes, (column, HIGH), unit, DRAWN)
    _node(axes, (column, LOW), moment, FOLLOWS)
    axes.add_patch(Circle((column, LOW), 0.92 * RADIUS, fc="none", ec="black", lw=0.7, zorder=3))
    _arrow(axes, (column, LOW), (column, HIGH))


def _node(axes: Axes, at: Point, name: str, filling: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle(at, RADIUS, fc=filling, ec="black", lw=0.9, zorder=3))
    axes.text(*at, name, ha="center", va="center", size=NODE, zorder=4)


def _arrow(axes: Axes, start: Point, end: Point) -> None:
    """An arrow between the rims of two nodes."""
    from matplotlib.patches import FancyArrowPatch

    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    part = RADIUS / length
    first, last = (
        (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        for share in (part, 1 - part)
    )
    look: Style = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(first, last, lw=0.9, color="black", zorder=2, **look))


PART = Part("fig7", CLAIM, (SPREAD_RUNS,), read, finding, verdict, draw, about_data=False)
