"""Pictures in one line each (extra `plots`).

nngp.plots.angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), "angular.png")
"""

from pathlib import Path
from typing import TYPE_CHECKING

from nngp.architecture import Architecture

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def angular_structure(architecture: Architecture, path: str | Path | None = None) -> "Figure":
    """The kernel against the angle for depths 0 .. depth, look-up table beside exact curve."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'nngp[plots]'"
        ) from None
    from nngp.reproduce import angular
    from nngp.reproduce.figures.angular import draw_angular_structure

    return draw_angular_structure(angular.angular_structure(architecture), path)
