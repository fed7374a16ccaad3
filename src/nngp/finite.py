"""Finite networks beside the infinite one (extra `finite`): draw, train, search, compare.

from nngp import datasets, finite

digits = datasets.split("digits")
network = finite.FiniteNetwork(nngp.Architecture(2, "relu", 1.6, 0.1), width=512, n_out=10)
trained = finite.train(network, digits, finite.Recipe(learning_rate=1e-3, batch_size=64))
trained.test_accuracy, trained.curve
"""

from nngp.reproduce.finite.checks import need_packages

need_packages()

from nngp.reproduce.finite.convergence import (  # noqa: E402
    Convergence as Convergence,
    convergence as convergence,
)
from nngp.reproduce.finite.ensemble import (  # noqa: E402
    last_layer_ensemble as last_layer_ensemble,
)
from nngp.reproduce.finite.gap import Gaps as Gaps, gaps as gaps  # noqa: E402
from nngp.reproduce.finite.infinite import infinite as infinite  # noqa: E402
from nngp.reproduce.finite.network import FiniteNetwork as FiniteNetwork  # noqa: E402
from nngp.reproduce.finite.recipe import (  # noqa: E402
    Plan as Plan,
    Recipe as Recipe,
    random_recipes as random_recipes,
)
from nngp.reproduce.finite.search import (  # noqa: E402
    Cell as Cell,
    Found as Found,
    best_of as best_of,
    search as search,
)
from nngp.reproduce.finite.training import Training as Training, train as train  # noqa: E402
from nngp.reproduce.finite.widths import Widths as Widths, widths as widths  # noqa: E402
