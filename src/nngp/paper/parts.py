"""The paper in parts: every table and figure, what it claims, what it needs, how it is made.

A part needs experiments, which are the names of runs in a store (`tasks.py` does them). It is read
from the store and drawn; a part that is read and not drawn is a table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from nngp.errors import NothingMeasuredError
from nngp.paper.scope import Scope
from nngp.runs import RunStore


@dataclass(frozen=True)
class Part:
    """One table or figure. `claim` is what the paper says, `look` what to look for in ours."""

    name: str
    title: str
    claim: str
    look: str
    needs: tuple[str, ...]
    read: Callable[..., Any]  # of a store and a scope, and of its grids if it needs them
    draw: Callable[..., Any] | None = None
    about_data: bool = True  # or about networks alone

    @property
    def heading(self) -> str:
        """As the paper numbers it."""
        kind = "Table" if self.name.startswith("table") else "Figure"
        return f"{kind} {self.name.removeprefix('table').removeprefix('fig')}: {self.title}"

    def named(self, scope: Scope) -> str:
        """A name for its files, and its place in a page."""
        return f"{self.name}-{scope.dataset}" if self.about_data else self.name


@dataclass(frozen=True)
class Showing:
    """What a store has for a part: something to show, or a sentence that says why not."""

    part: Part
    scope: Scope
    data: Any = None
    problem: str = ""


def look_up(parts: Sequence[Part], store: RunStore, scope: Scope) -> list[Showing]:
    """Read parts from a store; what takes longest to read, the grids, is read once."""
    grids = None
    if any("grid" in part.needs for part in parts):
        grids = Later("readings.grids", "read_grids")(store, scope)
    return [_showing(part, store, scope, grids) for part in parts]


def _showing(part: Part, store: RunStore, scope: Scope, grids: Any) -> Showing:
    """What is not there, or cannot be read without a package that is not installed, is said."""
    known = (grids,) if "grid" in part.needs else ()
    try:
        return Showing(part, scope, part.read(store, scope, *known))
    except (NothingMeasuredError, ImportError, ValueError) as error:
        return Showing(part, scope, problem=_public(str(error), store))


def _public(sentence: str, store: RunStore) -> str:
    """Without the place of the store, which may be a passing one, and without a full stop."""
    return sentence.replace(str(store.path), "the store").rstrip(".")


def chosen(names: Sequence[str]) -> list[Part]:
    """Parts by name, in the paper's order; "all" is all of them."""
    known = {part.name: part for part in PARTS}
    for name in names:
        if name != "all" and name not in known:
            raise ValueError(f"there is no part '{name}' of the paper; use all, {', '.join(known)}")
    return [part for part in PARTS if part.name in names or "all" in names]


@dataclass(frozen=True)
class Later:
    """A function of a module that is imported when it is called: figures need matplotlib, and
    finite networks JAX."""

    module: str
    name: str

    def found(self) -> Callable[..., Any]:
        """The function itself."""
        return getattr(import_module(f"nngp.paper.{self.module}"), self.name)

    def __call__(self, *arguments: Any) -> Any:
        return self.found()(*arguments)


PARTS: tuple[Part, ...] = (
    Part(
        "table1",
        "test accuracy of finite and infinite networks",
        "Chosen on a validation set, the infinitely wide network does as well as trained networks "
        "of finite width on MNIST and better on CIFAR-10.",
        "Beside the paper's networks stand ours: finite ones, the infinite one with the authors' "
        "look-up table and with the exact kernel at the paper's setting, and those that validation "
        "and the evidence choose from all networks tried. Accuracies are per cent; ▲ and ▼ are "
        "points above and below the paper's infinite network; ± is the standard error that the "
        "size of the test set leaves. A setting is depth-weight variance-bias variance, with "
        "the width after the depth for finite networks. With more than 10,000 training points only "
        "those networks are tried that did best with fewer; the last column counts them.",
        ("setting", "grid"),
        Later("readings.tables", "table1"),
    ),
    Part(
        "table2",
        "all training sizes",
        "The same for every training size, from 100 images to all of them: infinite width wins in "
        "most rows, and clearly where images are few.",
        "As Table 1, for every training size and for two more activations.",
        ("setting", "grid"),
        Later("readings.tables", "table2"),
    ),
    Part(
        "fig1",
        "performance against training size and width",
        "The infinitely wide network often beats trained ones, and these come closer to it the "
        "wider they are.",
        "Above, against training points: filled marks are ours and hollow ones the paper's. Below, "
        "against width: the dashed level is the infinite network above; do the lines come to it? "
        "A width is shown where it was tried at the same depths as the others.",
        ("grid", "finite"),
        Later("readings.sizes", "sizes"),
        Later("figures.sizes", "draw_sizes"),
    ),
    Part(
        "fig2",
        "generalisation gap against width",
        "Among networks that have learned all training labels, the widest generalise best.",
        "Each dot is a network; the line joins the smallest gap of each width, and should fall.",
        ("gap",),
        Later("readings.gap", "gap"),
        Later("figures.gap", "draw_gaps"),
    ),
    Part(
        "fig3",
        "predicted and realised error",
        "The uncertainty that the process gives with every prediction is highly correlated with "
        "the error it makes.",
        "Each mark is the mean of a bin of test points, sorted by predicted error. Along the line "
        "the prediction is right; a rising cloud knows which points are hard.",
        ("doubt",),
        Later("readings.doubt", "doubt"),
        Later("figures.uncertainty", "draw_doubt"),
    ),
    Part(
        "fig4",
        "accuracy over the two variances, and the phase diagram",
        "Accuracy follows signal propagation: deep networks do well near the critical line, and "
        "fall to chance far from it.",
        "Bright cells should lie along the critical line of the phase diagram beside them; the "
        "mark is the best network by validation.",
        ("critical", "grid"),
        Later("readings.heatmaps", "phase_maps"),
        Later("figures.heatmaps", "draw_phase_maps"),
    ),
    Part(
        "fig5",
        "functions drawn from the prior",
        "A deep ReLU network of infinite width is a distribution over functions; draws of it in "
        "one dimension are continuous, with slopes on many scales.",
        "Each line is one draw; all have the same covariance.",
        ("prior",),
        Later("readings.prior", "prior"),
        Later("figures.prior", "draw_prior"),
        about_data=False,
    ),
    Part(
        "fig6",
        "the kernel against the angle",
        "Depth flattens the kernel as a function of the angle between inputs, and the look-up "
        "table agrees with the closed form.",
        "Lines are exact, marks the authors' look-up table: they should lie on each other.",
        ("angular",),
        Later("readings.angular", "angular"),
        Later("figures.angular", "draw_angular_structure"),
        about_data=False,
    ),
    Part(
        "fig7",
        "a network as a chain of kernels",
        "Given the kernel of the layer below, a layer's kernel is a mean over its units: it "
        "spreads less the wider the layer, with a variance that falls as 1/width.",
        "Left, what depends on what. Right, the spread of kernels of networks drawn at random: in "
        "logarithms it should fall with slope -1/2.",
        ("spread",),
        Later("readings.spread", "spread"),
        Later("figures.spread", "draw_spread"),
        about_data=False,
    ),
    Part(
        "fig8",
        "predicted and realised error with fewer points",
        "Predicted and realised error stay correlated with fewer training points.",
        "As Figure 3, one panel for each training size.",
        ("doubt",),
        Later("readings.doubt", "doubt_by_size"),
        Later("figures.uncertainty", "draw_doubt"),
    ),
    Part(
        "fig9",
        "accuracy over the two variances at many depths",
        "The deeper the network, the narrower the region around the critical line in which it "
        "does well.",
        "From left to right networks become deeper; the thin line is critical. Our kernel keeps "
        "its digits at any depth, so what is lost here is lost by the network, not by rounding.",
        ("critical", "grid"),
        Later("readings.heatmaps", "depth_maps"),
        Later("figures.heatmaps", "draw_depth_maps"),
    ),
    Part(
        "fig10",
        "where the best networks are",
        "The settings that do best on validation lie near the critical line.",
        "The 25 best settings of each training size beside the critical line.",
        ("critical", "grid"),
        Later("readings.best", "best_settings"),
        Later("figures.best", "draw_best"),
    ),
)
