"""Figures in one line each (extra `plots`).

nngp.plots.angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), "angular.png")

Each function takes what is to be shown and gives a matplotlib figure, which is also written to
`path` if there is one. Its module has the numbers (dataclasses, which need no matplotlib) and the
function that draws them. Modules are imported when a name is first used.
"""

from typing import TYPE_CHECKING

from nngp._lazy import lazy_attributes

if TYPE_CHECKING:
    from nngp.plots.angular import (
        AngularStructure as AngularStructure,
        angular_structure as angular_structure,
        compute_angular_structure as compute_angular_structure,
        draw_angular_structure as draw_angular_structure,
    )
    from nngp.plots.block_depth import blocks as blocks
    from nngp.plots.depth import accuracy_by_depth as accuracy_by_depth
    from nngp.plots.fit_page import fit_report as fit_report
    from nngp.plots.network_picture import network as network
    from nngp.plots.phases_figure import phase_diagram as phase_diagram
    from nngp.plots.training_loss import training as training
    from nngp.plots.uncertainty import intervals as intervals, reliability as reliability
    from nngp.plots.width_convergence import convergence as convergence, draw_decay as draw_decay

_HOMES = {
    "accuracy_by_depth": "nngp.plots.depth",
    **dict.fromkeys(
        (
            "AngularStructure",
            "angular_structure",
            "compute_angular_structure",
            "draw_angular_structure",
        ),
        "nngp.plots.angular",
    ),
    "blocks": "nngp.plots.block_depth",
    **dict.fromkeys(("convergence", "draw_decay"), "nngp.plots.width_convergence"),
    "fit_report": "nngp.plots.fit_page",
    "intervals": "nngp.plots.uncertainty",
    "network": "nngp.plots.network_picture",
    "phase_diagram": "nngp.plots.phases_figure",
    "reliability": "nngp.plots.uncertainty",
    "training": "nngp.plots.training_loss",
}


def need_matplotlib() -> None:
    """Raise ImportError with the command that installs matplotlib, unless it is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'nngp[plots]'"
        ) from None


__all__ = sorted(_HOMES)
if not TYPE_CHECKING:  # a type checker reports a name that is not imported above
    __getattr__, __dir__ = lazy_attributes("nngp.plots", _HOMES, check=need_matplotlib)
