"""Finite networks of a scope: the trials of its random searches, and the best of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nngp.finite.cells import EXPERIMENT, Found, best_of, rank
from nngp.finite.recipe import Plan
from nngp.paper.scope import Scope
from nngp.runs import Run, RunStore

SHARED = ("validation", "test", *Plan.__dataclass_fields__)


def finite_runs(
    store: RunStore, scope: Scope, experiment: str = EXPERIMENT, shared: Sequence[str] = SHARED
) -> list[Run]:
    """Finished trials on the scope's training sets with its activations. Networks of different
    plans are not to be compared: of each training set those are given that have in common, in
    what is `shared`, what most have."""
    where = {"dataset": scope.dataset}
    runs = store.runs(experiment=experiment, status="done", where=where, lists=False)
    inside = [
        run
        for run in runs
        if run.config["train"] in scope.sizes and run.config["activation"] in scope.activations
    ]
    return [run for train in scope.sizes for run in _most(inside, train, shared)]


def best_trial(runs: Sequence[Run], train: int, activation: str) -> Found | None:
    """The best by validation of all shapes on one training set, and how many trials it was chosen
    from; None without trials."""
    own = [run for run in runs if is_of(run, train, activation)]
    return best_shape(best_of(own)) if own else None


def best_shape(found: Sequence[Found]) -> Found:
    """The best of several shapes, with the trials of all."""
    best = max(found, key=lambda one: rank(one.best))
    return replace(best, trials=sum(one.trials for one in found))


def is_of(run: Run, train: int, activation: str) -> bool:
    """Whether a run is on this training set and of this activation."""
    return (run.config["train"], run.config["activation"]) == (train, activation)


def _most(runs: Sequence[Run], train: int, shared: Sequence[str]) -> list[Run]:
    own = [run for run in runs if run.config["train"] == train]
    kinds = [tuple(run.config[name] for name in shared) for run in own]
    common = Counter(kinds).most_common(1)
    return [run for run, kind in zip(own, kinds, strict=True) if kind == common[0][0]]
