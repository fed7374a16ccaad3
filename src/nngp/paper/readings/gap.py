"""Figure 2 of a scope: the generalisation gap on the largest training set that has been tried."""

from nngp.errors import NothingMeasuredError
from nngp.finite.gap import EXPERIMENT, Gaps, gaps
from nngp.paper.readings.searched import SHARED, finite_runs
from nngp.paper.scope import Scope
from nngp.runs import RunStore


def gap(store: RunStore, scope: Scope) -> Gaps:
    """Networks that learned their training set: the largest one that any network learned."""
    runs = finite_runs(store, scope, EXPERIMENT, ("depth", *SHARED))
    for train in sorted({run.config["train"] for run in runs}, reverse=True):
        own = [run for run in runs if run.config["train"] == train]
        if any(run.result and run.result["train_accuracy"] == 1.0 for run in own):
            return gaps(own)
    tried = f"none of {len(runs)} networks learned its training set" if runs else "there are none"
    raise NothingMeasuredError(
        f"the gap on {scope.dataset} needs networks that learned their training set, and {tried}; "
        "run nngp gap"
    )
