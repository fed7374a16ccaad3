"""Figure 2: the generalisation gap against the width of networks that learned all labels."""

from collections import Counter
from pathlib import Path

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.finite.gap import EXPERIMENT, Gaps, gaps, has_learned
from nngp_paper.part import Claim, Figure, Part, Results
from nngp_paper.shared.searches import GAP_RUNS, SHARED, finished_trials
from nngp_paper.shared.words import sentence
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="generalisation gap against width",
    paper="Among networks that have learned all training labels, the widest generalise best.",
    look="Each dot is a network; the line joins the smallest gap of each width, and should fall.",
)

OPTIMISERS = {"adam": "Adam", "sgd": "plain gradient descent"}


def read(results: Results) -> Gaps:
    """The networks that learned their training set, on the one that most of them learned; of equal
    ones the largest."""
    runs = finished_trials(results.store, results.scope, EXPERIMENT, ("depth", *SHARED))
    learned = Counter(run.config["train"] for run in runs if has_learned(run))
    if learned:
        train = max(learned, key=lambda train: (learned[train], train))
        return gaps([run for run in runs if run.config["train"] == train])
    tried = f"none of {len(runs)} networks learned its training set" if runs else "there are none"
    raise NothingMeasuredError(
        f"the gap on {results.scope.dataset} needs networks that learned their training set, and "
        f"{tried}; run nngp-paper gap"
    )


def finding(data: Gaps) -> str:
    """The smallest gaps of the narrowest and the widest networks."""
    best = {shape: min(found) for shape, found in data.by_width().items()}
    parts = []
    for name in dict.fromkeys(activation for activation, _ in best):
        widths = [width for activation, width in best if activation == name]
        ends = sorted({min(widths), max(widths)})
        smallest = [f"{best[name, width]:.3f} at width {width:,}" for width in ends]
        parts.append(f"{name}: smallest gap {' and '.join(smallest)}")
    return sentence([*parts, _learned(data)])


def _learned(data: Gaps) -> str:
    """How many networks learned all labels, of how many, and by which optimiser."""
    tried = len(data.learned) + data.left_out
    own = Counter(one.optimiser for one in data.learned)
    by = [f"{own[name]} of {count} by {OPTIMISERS[name]}" for name, count in data.tried.items()]
    shares = f" ({', '.join(by)})" if by else ""
    return (
        f"{len(data.learned)} of {tried} networks learned all labels of {data.train:,} training "
        f"points{shares}"
    )


def verdict(data: Gaps) -> ClaimVerdict:
    """Whether the smallest gap is that of the widest networks."""
    best = {shape: min(found) for shape, found in data.by_width().items()}
    names = dict.fromkeys(name for name, _ in best)
    own = {name: {w: gap for (n, w), gap in best.items() if n == name} for name in names}
    at = {name: min(gaps, key=gaps.__getitem__) for name, gaps in own.items() if len(gaps) > 1}
    held = [at[name] == max(own[name]) for name in at]
    parts = [
        f"{name} at width {at[name]:,} of {min(own[name]):,} to {max(own[name]):,} (chance: one in "
        f"{len(own[name])})"
        for name in at
    ]
    return ClaimVerdict(share_word(held), f"The smallest gap: {'; '.join(parts) or 'one width'}.")


def draw(data: Gaps, path: str | Path | None = None, /, *, narrow: bool = False) -> Figure:
    """A dot for each network, hollow for plain descent; a panel for each activation."""
    from nngp_paper.plots.finite_networks import draw_gaps

    return draw_gaps(data, path, narrow=narrow)


PART = Part("fig2", CLAIM, (GAP_RUNS,), read, finding, verdict, draw, datasets=("cifar10",))
