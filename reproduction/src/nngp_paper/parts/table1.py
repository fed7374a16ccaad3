"""Table 1: test accuracy of finite and infinite networks, for three training sizes."""

from nngp_paper.grids.study import GRID_RUNS
from nngp_paper.part import Claim, Part, Results
from nngp_paper.scope import default_sizes
from nngp_paper.shared.settings import SETTING_RUNS
from nngp_paper.shared.tables import AccuracyTable, finding, read_table
from nngp_paper.shared.wins import verdict

CLAIM = Claim(
    title="test accuracy of finite and infinite networks",
    paper="Chosen on a validation set, the infinitely wide network often outperforms trained "
    "networks of finite width.",
    look="Infinite networks are chosen by validation, and by the evidence, from all that were "
    "tried. Accuracies are per cent; ± is the standard error that the size of the test set leaves. "
    "A setting is depth-weight variance-bias variance, with the width after the depth for finite "
    "networks. With more than 10,000 training points not all networks are tried. Candidates are "
    "those that with fewer points were as near to the best as the best of the next size has been. "
    "They are tried the best first, as many as there was time for. The last column counts networks "
    "tried, candidates, and all.",
    beside="Beside the paper's networks stand ours: finite ones, the infinite one with the "
    "authors' look-up table and with the exact kernel at the paper's setting, and those chosen "
    "here. ▲ and ▼ are points above and below the paper's infinite network.",
)
SIZES = (1000, 10_000)  # training points, beside all that the data set has


def read(results: Results) -> AccuracyTable:
    """The rows of 1,000, 10,000 and all training points; of all sizes if the scope has none of
    these."""
    sizes = results.scope.sizes
    main = {*SIZES, default_sizes(results.scope.dataset)[-1]} & {*sizes}
    return read_table(results, sorted(main) or sizes)


PART = Part("table1", CLAIM, (SETTING_RUNS, GRID_RUNS), read, finding, verdict)
