"""Table 2 (app. E): test accuracy of finite and infinite networks, for every training size."""

from nngp_paper.grids.study import GRID_RUNS
from nngp_paper.part import Claim, Part, Results
from nngp_paper.shared.settings import SETTING_RUNS
from nngp_paper.shared.tables import AccuracyTable, finding, read_table
from nngp_paper.shared.wins import verdict

CLAIM = Claim(
    title="all training sizes",
    paper="The completion of Table 1: every training size.",
    look="In the paper's rows, as printed, the infinite network has the higher accuracy in 31 of "
    "36; the five others are MNIST, four of them with 100 to 500 images. Activations that the "
    "paper does not have follow in a table of their own, up to 10,000 points, which says how many "
    "networks were tried. Silu deeper than 5 layers has only weight variances up to 2.",
)


def read(results: Results) -> AccuracyTable:
    """The rows of all sizes of the scope."""
    return read_table(results, results.scope.sizes)


PART = Part("table2", CLAIM, (SETTING_RUNS, GRID_RUNS), read, finding, verdict)
