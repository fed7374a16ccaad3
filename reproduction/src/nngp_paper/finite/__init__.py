"""Finite networks trained as the paper did (sec. 3.1, app. C, D), beside the infinite one.

import nngp
from nngp_paper import datasets, finite

digits = datasets.split("digits")
network = nngp.FiniteNetwork(nngp.Architecture(2, "relu", 1.6, 0.1), width=512, n_out=10)
trained = finite.train(network, digits, finite.Recipe(learning_rate=1e-3, batch_size=64))
trained.test_accuracy, trained.curve

Takes networks of any shape, data sets and stores of runs; gives trained networks and their scores.
Networks themselves, their prior and their kernels are the library's (`nngp.finite`). JAX and optax
are imported when a name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from nngp_paper.finite.requirements import need_packages

if TYPE_CHECKING:
    from nngp_paper.finite.cells import Cell as Cell, Found as Found, best_of as best_of
    from nngp_paper.finite.ensemble import last_layer_ensemble as last_layer_ensemble
    from nngp_paper.finite.gap import Gaps as Gaps, gaps as gaps
    from nngp_paper.finite.random_search import search as search
    from nngp_paper.finite.recipe import (
        Plan as Plan,
        Recipe as Recipe,
        random_recipes as random_recipes,
    )
    from nngp_paper.finite.screening import finalists as finalists
    from nngp_paper.finite.training import train as train
    from nngp_paper.finite.training_state import Training as Training
    from nngp_paper.finite.width_comparison import (
        Widths as Widths,
        infinite as infinite,
        widths as widths,
    )

_HOMES = {
    **dict.fromkeys(("Cell", "Found", "best_of"), "cells"),
    **dict.fromkeys(("Gaps", "gaps"), "gap"),
    **dict.fromkeys(("Plan", "Recipe", "random_recipes"), "recipe"),
    **dict.fromkeys(("Widths", "infinite", "widths"), "width_comparison"),
    "finalists": "screening",
    "last_layer_ensemble": "ensemble",
    "search": "random_search",
    "Training": "training_state",
    "train": "training",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    need_packages()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
