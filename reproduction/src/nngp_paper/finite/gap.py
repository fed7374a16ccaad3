"""The generalisation gap against width (figure 2). Needs no JAX.

Networks of five hidden layers, cross entropy, random recipes, trained until every training label
is learned; those that do not get there are left out, as in the paper. The gap is training accuracy
minus test accuracy.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nngp_paper.finite.cells import shared_values
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.screening import longest
from nngp_paper.runs import Run

EXPERIMENT = "gap"
DEPTH = 5
PLAN = Plan("cross_entropy", steps=6000, interval=300, patience=6, monitor="train")


@dataclass(frozen=True)
class Gap:
    """The gap of one network that has learned its training set."""

    activation: str
    width: int
    gap: float
    optimiser: str = "adam"


@dataclass(frozen=True)
class Gaps:
    """The gaps on one training set, the number of networks that did not learn it, and how many were
    tried by each optimiser.

    Examples
    --------
    >>> from nngp_paper import finite
    >>> from nngp_paper.runs import RunStore
    >>> store = RunStore("runs.db")
    >>> data, network = {"dataset": "digits", "train": 100}, {"activation": "relu", "depth": 5}
    >>> config = {**data, **network, "width": 64, **finite.Plan("cross_entropy").as_dict()}
    >>> (key,) = store.declare("gap", [config])
    >>> done = store.finish(key, {"train_accuracy": 1.0, "test_accuracy": 0.85}, seconds=1.0)
    >>> found = finite.gaps(store.runs("gap"))
    >>> {cell: len(all_of_it) for cell, all_of_it in found.by_width().items()}
    {('relu', 64): 1}
    >>> store.close()
    """

    dataset: str
    train: int
    depth: int
    learned: tuple[Gap, ...]
    left_out: int
    tried: Mapping[str, int] = field(default_factory=dict)

    def by_width(self) -> dict[tuple[str, int], list[float]]:
        """The gaps of each activation and width."""
        groups = defaultdict(list)
        for one in self.learned:
            groups[one.activation, one.width].append(one.gap)
        return dict(sorted(groups.items()))


def gaps(runs: Sequence[Run]) -> Gaps:
    """Compute the gaps from finished runs of one training set, depth and loss. Plans may differ in
    the rest: of a trial that was trained by several, the one with the most steps counts.

    Examples
    --------
    >>> from nngp_paper import finite
    >>> from nngp_paper.runs import RunStore
    >>> store = RunStore("runs.db")
    >>> data, network = {"dataset": "digits", "train": 100}, {"activation": "relu", "depth": 5}
    >>> config = {**data, **network, "width": 64, **finite.Plan("cross_entropy").as_dict()}
    >>> (key,) = store.declare("gap", [config])
    >>> done = store.finish(key, {"train_accuracy": 1.0, "test_accuracy": 0.85}, seconds=1.0)
    >>> found = finite.gaps(store.runs("gap"))
    >>> [(one.width, round(one.gap, 2)) for one in found.learned], found.left_out
    ([(64, 0.15)], 0)
    >>> store.close()
    """
    done = [run for run in runs if run.status == "done" and run.result]
    if not done:
        raise ValueError(
            "the gap needs finished runs, and there are none; run nngp-paper gap first"
        )
    shared = shared_values(done, "dataset", "train", "depth", "loss", "monitor")
    trained = longest(done)
    learned = tuple(_gap(run) for run in trained if has_learned(run))
    if not learned:
        raise ValueError(
            f"none of {len(trained)} networks learned its training set; take wider ones, more "
            "trials, more steps or fewer training points"
        )
    where = {name: shared[name] for name in ("dataset", "train", "depth")}
    tried = Counter(str(Plan.of(run.config).optimiser) for run in trained)
    return Gaps(**where, learned=learned, left_out=len(trained) - len(learned), tried=tried)


def has_learned(run: Run) -> bool:
    """Whether a network has learned all labels of its training set."""
    return run.result is not None and run.result["train_accuracy"] == 1.0


def _gap(run: Run) -> Gap:
    assert run.result is not None
    gap = 1.0 - run.result["test_accuracy"]
    config = run.config
    return Gap(config["activation"], config["width"], gap, Plan.of(config).optimiser)
