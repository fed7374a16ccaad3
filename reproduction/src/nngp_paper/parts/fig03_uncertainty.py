"""Figure 3: predicted and realised error with the largest training set."""

from nngp_paper.part import Claim, Part, Results
from nngp_paper.shared.left_out_scale import SCALE_RUNS
from nngp_paper.shared.uncertainty import (
    UNCERTAINTY_RUNS,
    Uncertainty,
    draw,
    finding,
    read_all_sizes,
    verdict,
)

CLAIM = Claim(
    title="predicted and realised error",
    paper="The uncertainty that the process gives with every prediction is highly correlated with "
    "the error it makes.",
    look="Each mark is the mean of a bin of test points, sorted by predicted error. Along the line "
    "the prediction is right; a rising cloud knows which points are hard. Hollow marks: predicted "
    "errors times one number, the mean of squared residual over variance of training points left "
    "out, so that no test point has a say in it.",
)


def read(results: Results) -> Uncertainty:
    """The largest training set that is finished."""
    found = read_all_sizes(results)
    return found.only(found.sizes[-1:])


PART = Part("fig3", CLAIM, (UNCERTAINTY_RUNS, SCALE_RUNS), read, finding, verdict, draw)
