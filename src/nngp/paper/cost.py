"""What work on a store will take, before it is begun: runs, seconds, memory.

Seconds are guessed from the size of a run, and the guess is corrected by the runs of its experiment
that are finished, on the same kind of device: those of the same size if there are any.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from nngp.datasets.catalogue import IMAGE_SETS
from nngp.linsolve import Forecast, choose_engine, forecast_factor
from nngp.paper.scope import Scope
from nngp.paper.studies.sweeps import FEW
from nngp.paper.tasks import Task
from nngp.runs import Run, RunStore


@dataclass(frozen=True)
class Outlook:
    """One task: its runs as far as they are known, those that are left, about how long these and
    later ones take, and whether that is measured or a guess; `points` is the largest training set
    whose kernel they factor, 0 if there is none."""

    experiment: str
    runs: int
    left: int
    seconds: float
    measured: bool
    points: int = 0


def outlook(store: RunStore, task: Task) -> Outlook:
    """Declare a task's runs and look at what is left of them."""
    keys = task.declare(store)
    runs = store.runs(keys=keys, lists=False)
    left = [run for run in runs if run.status in ("pending", "running")]
    done = [run for run in runs if run.status == "done" and _done_here(run, task)]
    known = {run.config.get("train") for run in runs}
    later = [config for config in task.later() if runs and config["train"] not in known]
    rates, ahead = _Rates(task, done), [*(run.config for run in left), *later]
    return Outlook(
        task.experiment,
        len(runs),
        len(left),
        _together([rates.seconds(config) for config in ahead], task.threads),
        bool(done) or not left,
        max(map(_points, ahead), default=0),
    )


def _together(seconds: Sequence[float], threads: int) -> float:
    """Of runs done side by side: an even share of all, and no less than the longest."""
    return max(sum(seconds) / threads, max(seconds, default=0.0))


def memory(scope: Scope, points: int) -> Forecast:
    """Of training sets up to so many points: the factor of the largest kernel, and what is held of
    every pair of all sizes, which take turns. Small sets are done in one piece (`Sweeps`)."""
    entry = IMAGE_SETS[scope.dataset]
    others = entry.validation + entry.test

    def held(n: int) -> int:
        return 8 * n * (5 * n + 3 * others) if n <= FEW else 4 * n * (n + 2 * others)

    smaller = sum(held(size) for size in scope.sizes if size < points)
    return forecast_factor(
        choose_engine(scope.engine, points),
        points,
        prod(entry.shape),
        len(entry.class_names),
        beside=lambda n: held(n) + smaller,
    )


def shares(outlooks: Sequence[Outlook], budget: float) -> list[float]:
    """Seconds for each task. If all fit into the budget, it is theirs; otherwise the short ones get
    what they need and the long ones the same each, so that every part has something to show."""
    if sum(one.seconds for one in outlooks) <= budget:
        return [budget] * len(outlooks)
    found = [0.0] * len(outlooks)
    order = sorted(range(len(outlooks)), key=lambda i: outlooks[i].seconds)
    for behind, i in enumerate(order):
        found[i] = min(outlooks[i].seconds, budget / (len(order) - behind))
        budget -= found[i]
    return found


class _Rates:
    """How much longer runs took than was guessed, by training size."""

    def __init__(self, task: Task, done: Sequence[Run]) -> None:
        self._task = task
        self._sums: dict[Any, list[float]] = {}
        for run in done:
            for size in (run.config.get("train"), "any"):
                sums = self._sums.setdefault(size, [0.0, 0.0])
                sums[0] += run.seconds or 0.0
                sums[1] += task.guess(run.config)

    def seconds(self, config: Mapping[str, Any]) -> float:
        """Of a run that is to be done."""
        size = config.get("train")
        taken, guessed = self._sums.get(size) or self._sums.get("any") or (1.0, 1.0)
        return self._task.guess(config) * taken / guessed


def _points(config: Mapping[str, Any]) -> int:
    """In the kernel of a run; networks of finite width have none."""
    return 0 if "width" in config else config.get("train", 0)


def _done_here(run: Run, task: Task) -> bool:
    """On the kind of device that the task would use: others say nothing about it."""
    return ("cpu" if run.device.startswith("cpu") else "gpu") == task.device(run.config)
