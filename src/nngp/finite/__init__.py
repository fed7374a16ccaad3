"""Finite networks beside the infinite one (extra `finite`): draw, train, search, compare.

from nngp import datasets, finite

digits = datasets.split("digits")
network = finite.FiniteNetwork(nngp.Architecture(2, "relu", 1.6, 0.1), width=512, n_out=10)
trained = finite.train(network, digits, finite.Recipe(learning_rate=1e-3, batch_size=64))
trained.test_accuracy, trained.curve

Takes networks of any shape, data sets and stores of runs; gives trained networks and their scores.
JAX and optax are imported when a name is first used.
"""

from typing import TYPE_CHECKING

from nngp._lazy import lazy_attributes
from nngp.finite.requirements import need_packages

if TYPE_CHECKING:
    from nngp.finite.cells import Cell as Cell, Found as Found, best_of as best_of
    from nngp.finite.ensemble import last_layer_ensemble as last_layer_ensemble
    from nngp.finite.gap import Gaps as Gaps, gaps as gaps
    from nngp.finite.network import FiniteNetwork as FiniteNetwork
    from nngp.finite.random_search import search as search
    from nngp.finite.recipe import Plan as Plan, Recipe as Recipe, random_recipes as random_recipes
    from nngp.finite.screening import finalists as finalists
    from nngp.finite.training import train as train
    from nngp.finite.training_state import Training as Training
    from nngp.finite.width_comparison import (
        Widths as Widths,
        infinite as infinite,
        widths as widths,
    )
    from nngp.finite.width_convergence import Convergence as Convergence, convergence as convergence

_HOMES = {
    **dict.fromkeys(("Cell", "Found", "best_of"), "nngp.finite.cells"),
    **dict.fromkeys(("Gaps", "gaps"), "nngp.finite.gap"),
    **dict.fromkeys(("Plan", "Recipe", "random_recipes"), "nngp.finite.recipe"),
    **dict.fromkeys(("Widths", "infinite", "widths"), "nngp.finite.width_comparison"),
    **dict.fromkeys(("Convergence", "convergence"), "nngp.finite.width_convergence"),
    "FiniteNetwork": "nngp.finite.network",
    "finalists": "nngp.finite.screening",
    "last_layer_ensemble": "nngp.finite.ensemble",
    "search": "nngp.finite.random_search",
    "Training": "nngp.finite.training_state",
    "train": "nngp.finite.training",
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_attributes("nngp.finite", _HOMES, check=need_packages)
