"""The generalisation gap against width (figure 2). Needs no JAX.

Networks of five hidden layers, cross entropy, random recipes, trained until every training label
is learned; those that do not get there are left out, as in the paper. The gap is training accuracy
minus test accuracy.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from nngp.finite.cells import shared_values
from nngp.finite.recipe import Plan
from nngp.runs import Run

EXPERIMENT = "gap"
DEPTH = 5
PLAN = Plan("cross_entropy", steps=6000, interval=300, patience=6, monitor="train")


@dataclass(frozen=True)
class Gap:
    """The gap of one network that has learned its training set."""

    activation: str
    width: int
    gap: float


@dataclass(frozen=True)
class Gaps:
    """The gaps on one training set, and the number of networks that did not learn it.

    Examples
    --------
    >>> import os, tempfile, nngp
    >>> from nngp import finite
    >>> store = nngp.RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
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

    def by_width(self) -> dict[tuple[str, int], list[float]]:
        """The gaps of each activation and width."""
        groups = defaultdict(list)
        for one in self.learned:
            groups[one.activation, one.width].append(one.gap)
        return dict(sorted(groups.items()))


def gaps(runs: Sequence[Run]) -> Gaps:
    """Compute the gaps from finished runs of one training set, depth and plan.

    Examples
    --------
    >>> import os, tempfile, nngp
    >>> from nngp import finite
    >>> store = nngp.RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
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
        raise ValueError("the gap needs finished runs, and there are none; run nngp gap first")
    shared = shared_values(done, "dataset", "train", "depth")
    learned = tuple(
        Gap(run.config["activation"], run.config["width"], 1.0 - run.result["test_accuracy"])
        for run in done
        if run.result and run.result["train_accuracy"] == 1.0
    )
    if not learned:
        raise ValueError(
            f"none of {len(done)} networks learned its training set; take wider ones, more trials, "
            "more steps or fewer training points"
        )
    return Gaps(**shared, learned=learned, left_out=len(done) - len(learned))
