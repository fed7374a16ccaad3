"""Pictures in one line each (extra `plots`).

nngp.plots.angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), "angular.png")
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from nngp.architecture import Architecture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PathLike = str | Path | None


def angular_structure(architecture: Architecture, path: PathLike = None) -> "Figure":
    """The kernel against the angle for depths 0 .. depth, look-up table beside exact curve."""
    _need_matplotlib()
    from nngp.reproduce import angular
    from nngp.reproduce.figures.angular import draw_angular_structure

    return draw_angular_structure(angular.angular_structure(architecture), path)


def intervals(
    model: Any, X: ArrayLike, y: ArrayLike, path: PathLike = None, *, coverage: float = 0.95
) -> "Figure":
    """A fitted `NNGPRegressor` on data it has not seen: means, intervals, observations."""
    _need_matplotlib()
    from nngp.reproduce import doubt
    from nngp.reproduce.figures.doubt import draw_intervals

    return draw_intervals(doubt.intervals(model, X, y, coverage), path)


def reliability(model: Any, X: ArrayLike, y: ArrayLike, path: PathLike = None) -> "Figure":
    """A fitted `NNGPClassifier` on data it has not seen: how often it is right when it says so,
    beside a softmax of its means."""
    _need_matplotlib()
    from nngp.reproduce import doubt
    from nngp.reproduce.figures.doubt import draw_reliability

    return draw_reliability(doubt.calibrations(model, X, y), path)


def _need_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'nngp[plots]'"
        ) from None
