"""Table 1: test accuracy of finite and infinite networks, for three training sizes."""

from nngp.paper.grids.study import GRID_RUNS
from nngp.paper.part import Claim, Part, Results
from nngp.paper.scope import default_sizes
from nngp.paper.settings import SETTING_RUNS
from nngp.paper.tables import AccuracyTable, finding, read_table

CLAIM = Claim(
    title="test accuracy of finite and infinite networks",
    paper="Chosen on a validation set, the infinitely wide network does as well as trained "
    "networks of finite width on MNIST and better on CIFAR-10.",
    look="Beside the paper's networks stand ours: finite ones, the infinite one with the authors' "
    "look-up table and with the exact kernel at the paper's setting, and those that validation "
    "and the evidence choose from all networks tried. Accuracies are per cent; ▲ and ▼ are "
    "points above and below the paper's infinite network; ± is the standard error that the "
    "size of the test set leaves. A setting is depth-weight variance-bias variance, with "
    "the width after the depth for finite networks. With more than 10,000 training points only "
    "those networks are tried that did best with fewer; the last column counts them.",
)
SIZES = (1000, 10_000)  # training points, beside all that the data set has


def read(results: Results) -> AccuracyTable:
    """The rows of 1,000, 10,000 and all training points; of all sizes if the scope has none of
    these."""
    sizes = results.scope.sizes
    main = {*SIZES, default_sizes(results.scope.dataset)[-1]} & {*sizes}
    return read_table(results, sorted(main) or sizes)


PART = Part("table1", CLAIM, (SETTING_RUNS, GRID_RUNS), read, finding)
