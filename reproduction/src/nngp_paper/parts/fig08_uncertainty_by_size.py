"""Figure 8: predicted and realised error with fewer training points than in figure 3."""

from nngp_paper.errors import NothingMeasuredError
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
    title="predicted and realised error with fewer points",
    paper="Predicted and realised error stay correlated with fewer training points.",
    look="As Figure 3, one panel for each training size.",
)


def read(results: Results) -> Uncertainty:
    """All training sets that are finished but the largest, which is figure 3's."""
    found = read_all_sizes(results)
    if len(found.sizes) == 1:
        raise NothingMeasuredError(
            f"{results.store.path} has the error of one training size on {results.scope.dataset} "
            "only, which is figure 3's; measure smaller ones with nngp-paper reproduce fig8 first"
        )
    return found.only(found.sizes[:-1])


PART = Part("fig8", CLAIM, (UNCERTAINTY_RUNS, SCALE_RUNS), read, finding, verdict, draw)
