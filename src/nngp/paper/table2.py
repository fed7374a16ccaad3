"""Table 2 (app. D): test accuracy of finite and infinite networks, for every training size."""

from nngp.paper.grids.study import GRID_RUNS
from nngp.paper.part import Claim, Part, Results
from nngp.paper.settings import SETTING_RUNS
from nngp.paper.tables import AccuracyTable, finding, read_table

CLAIM = Claim(
    title="all training sizes",
    paper="The same for every training size, from 100 images to all of them: infinite width wins "
    "in most rows, and clearly where images are few.",
    look="As Table 1, for every training size and for two more activations.",
)


def read(results: Results) -> AccuracyTable:
    """The rows of all sizes of the scope."""
    return read_table(results, results.scope.sizes)


PART = Part("table2", CLAIM, (SETTING_RUNS, GRID_RUNS), read, finding)
