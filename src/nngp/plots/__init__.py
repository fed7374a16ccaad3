"""Pictures in one line each (extra `plots`).

nngp.plots.angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), "angular.png")
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from nngp.architecture import ActivationLike, Architecture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nngp.finite.recipe import Plan
    from nngp.finite.training_state import Training
    from nngp.runs import RunStore

PathLike = str | Path | None


def angular_structure(architecture: Architecture, path: PathLike = None) -> "Figure":
    """The kernel against the angle for depths 0 .. depth, look-up table beside exact curve."""
    need_matplotlib()
    from nngp.plots import angular
    from nngp.plots.angular_figure import draw_angular_structure

    return draw_angular_structure(angular.angular_structure(architecture), path)


def accuracy_by_depth(
    activation: str = "relu",
    path: PathLike = None,
    *,
    weight_var: float = 1.0,
    bias_var: float = 0.1,
) -> "Figure":
    """Test accuracy on digits against depth: plain float64, our arithmetic, the infinitely deep
    network. The network must be in the ordered phase."""
    need_matplotlib()
    from nngp.plots import depth
    from nngp.plots.depth_figure import draw_depth

    study = depth.depth_study(depth.digits(), "digits", activation, weight_var, bias_var)
    return draw_depth(study, path)


def intervals(
    model: Any, X: ArrayLike, y: ArrayLike, path: PathLike = None, *, coverage: float = 0.95
) -> "Figure":
    """A fitted `NNGPRegressor` on data it has not seen: means, intervals, observations."""
    need_matplotlib()
    from nngp.plots import uncertainty as doubt
    from nngp.plots.uncertainty_figure import draw_intervals

    return draw_intervals(doubt.intervals(model, X, y, coverage), path)


def reliability(model: Any, X: ArrayLike, y: ArrayLike, path: PathLike = None) -> "Figure":
    """A fitted `NNGPClassifier` on data it has not seen: how often it is right when it says so,
    beside a softmax of its means."""
    need_matplotlib()
    from nngp.plots import uncertainty as doubt
    from nngp.plots.uncertainty_figure import draw_reliability

    return draw_reliability(doubt.calibrations(model, X, y), path)


def phase_diagram(
    activation: ActivationLike,
    path: PathLike = None,
    *,
    weight_var: float | None = None,
    bias_var: float | None = None,
) -> "Figure":
    """Signal propagation (sec. 3.2): phases, depth scales, correlation maps, flow with depth.

    The maps and flows are those of the network with the given variances; without a weight_var,
    of three networks: one on the critical line and one on either side. Without a bias_var it is
    0.1. The figure is returned, and written to `path` if there is one.
    """
    need_matplotlib()
    from nngp.plots import phases
    from nngp.plots.phases_figure import draw_phases

    return draw_phases(phases.phases(activation, weight_var, bias_var), path)


def convergence(
    architecture: Architecture,
    path: PathLike = None,
    X: ArrayLike | None = None,
    *,
    widths: Sequence[int] | None = None,
    networks: int | None = None,
    seed: int = 0,
    progress: Any = None,
) -> "Figure":
    """Networks drawn from the prior beside the infinitely wide one: an entry of the kernel (of the
    first two inputs) and the error of all against width, and how normal outputs are (of the first).

    Inputs are by default three of norm x·x/d = 1 at angles of 45 and 90 degrees. Under a minute on
    two cores at depth 3 and with the default widths (4 to 512) and networks (2000 of each); needs
    the extra `finite` too. The figure is returned, and written to `path` if there is one.
    """
    need_matplotlib()
    from nngp.finite import width_convergence as study
    from nngp.plots.convergence_figure import draw_convergence

    inputs = study.three_inputs() if X is None else X
    sizes = study.WIDTHS if widths is None else widths
    count = study.NETWORKS if networks is None else networks
    found = study.convergence(architecture, inputs, sizes, count, seed, progress=progress)
    return draw_convergence(found, path)


def accuracy_by_width(
    store: "RunStore",
    dataset: str,
    train: int,
    activation: str = "relu",
    path: PathLike = None,
    *,
    depths: Sequence[int] | None = None,
    plan: "Plan | None" = None,
) -> "Figure":
    """Figure 1: test accuracy and error against width, the infinite network as a line; read from
    a store that `nngp finite` or `nngp.finite.search` has filled. Networks of different plans are
    not shown together: if the store has several, say which."""
    need_matplotlib()
    from nngp.finite.width_comparison import widths
    from nngp.plots.widths_figure import draw_widths

    return draw_widths(widths(store, dataset, train, activation, depths, plan), path)


def generalisation_gap(
    store: "RunStore",
    dataset: str,
    train: int,
    path: PathLike = None,
    *,
    depth: int = 5,
    plan: "Plan | None" = None,
) -> "Figure":
    """Figure 2: training minus test accuracy against width, of networks that have learned all
    training labels; read from a store that `nngp gap` has filled."""
    need_matplotlib()
    from nngp.finite.gap import EXPERIMENT, gaps
    from nngp.plots.gap_figure import draw_gaps

    where = {"dataset": dataset, "train": train, "depth": depth, **(plan.as_dict() if plan else {})}
    return draw_gaps(gaps(store.runs(experiment=EXPERIMENT, status="done", where=where)), path)


def learning_curve(training: "Training", path: PathLike = None) -> "Figure":
    """Loss and accuracy by step of what `nngp.finite.train` gives."""
    need_matplotlib()
    from nngp.plots.learning_figure import draw_learning

    return draw_learning(training.curve, training.best_step, path)


def need_matplotlib() -> None:
    """Say what to install, before any work."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'nngp[plots]'"
        ) from None
