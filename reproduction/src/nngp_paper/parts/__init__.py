"""The paper's tables and figures in its order, and what goes beyond them."""

from collections.abc import Sequence

from nngp_paper.part import AnyPart
from nngp_paper.parts import (
    fig01_performance,
    fig02_gap,
    fig03_uncertainty,
    fig04_phase_maps,
    fig05_prior,
    fig06_angular,
    fig07_graphical_model,
    fig08_uncertainty_by_size,
    fig09_depth_maps,
    fig10_best,
    invariance,
    table1,
    table2,
    width_limit,
)

PARTS: tuple[AnyPart, ...] = (
    table1.PART,
    table2.PART,
    fig01_performance.PART,
    fig02_gap.PART,
    fig03_uncertainty.PART,
    fig04_phase_maps.PART,
    fig05_prior.PART,
    fig06_angular.PART,
    fig07_graphical_model.PART,
    fig08_uncertainty_by_size.PART,
    fig09_depth_maps.PART,
    fig10_best.PART,
    width_limit.PART,
    invariance.PART,
)


def parts_named(names: Sequence[str]) -> list[AnyPart]:
    """Parts by name, in the paper's order; "all" is all of them.

    Examples
    --------
    >>> from nngp_paper.parts import parts_named
    >>> [part.heading for part in parts_named(["fig6"])]
    ['Figure 6: the kernel against the angle']
    """
    known = {part.name: part for part in PARTS}
    for name in names:
        if name != "all" and name not in known:
            raise ValueError(f"there is no part '{name}' of the paper; use all, {', '.join(known)}")
    return [part for part in PARTS if part.name in names or "all" in names]
