"""Estimates of work on a store before it is begun: runs, seconds, memory.

Seconds are estimated from the size of a run, and corrected by the finished runs of its experiment
on the same kind of device: those of the same training size if there are any.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from nngp import forecast
from nngp_paper.engines import engine_name
from nngp_paper.experiment import Config
from nngp_paper.runs import Run, RunStore
from nngp_paper.scope import Scope
from nngp_paper.sweep import held_bytes, takes_dense
from nngp_paper.workloads import Workload


@dataclass(frozen=True)
class WorkloadCost:
    """One workload: its runs as far as they are known, those that are left, about how long these
    and later ones take, and whether that is measured or a guess; `points` is the largest training
    set whose kernel they factor, 0 if there is none."""

    experiment: str
    runs: int
    left: int
    seconds: float
    measured: bool
    points: int = 0


def cost_of(store: RunStore, workload: Workload) -> WorkloadCost:
    """Declare a workload's runs, and estimate those that are left."""
    keys = workload.declare(store)
    runs = store.runs(keys=keys, lists=False)
    left = [run for run in runs if run.status in ("pending", "running")]
    done = [run for run in runs if run.status == "done" and _same_device(run, workload)]
    known = {run.config.get("train") for run in runs}
    later = [config for config in workload.later() if runs and config["train"] not in known]
    rates, ahead = _Rates(workload, done), [*(run.config for run in left), *later]
    seconds = [rates.seconds(config) for config in ahead]
    return WorkloadCost(
        workload.experiment,
        len(runs),
        len(left),
        # Side by side: an even share of all, and no less than the longest.
        max(sum(seconds) / workload.threads, max(seconds, default=0.0)),
        bool(done) or not left,
        max(map(_points, ahead), default=0),
    )


@dataclass(frozen=True)
class Memory:
    """Bytes for training sets up to `n` points, those that may be used (None if that is not known),
    and the number of points that would just fit."""

    n: int
    bytes: int
    available: int | None
    largest: int | None

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.available is None or self.bytes <= self.available


def memory(scope: Scope, points: int) -> Memory:
    """Memory for training sets up to so many points: the factor of the largest kernel and, beside
    it, what sweeps over dense matrices keep for all sizes, which take turns."""
    images, engine = scope.images, scope.engine
    others, shape = images.validation + images.test, (prod(images.shape), len(images.class_names))
    # Dense matrices lie in this machine's memory, which is not that of a GPU.
    on_host = engine_name(engine, points) == "cpu"
    held = [held_bytes(n, others) for n in scope.sizes if n < points and takes_dense(n, engine)]
    smaller = sum(held) if on_host else 0

    def needed(n: int) -> int:
        own = held_bytes(n, others) if takes_dense(n, engine) else 0
        return forecast(n, *shape, engine=engine).bytes + own + smaller

    available, largest = forecast(points, *shape, engine=engine).available, None
    if available is not None:
        largest = bisect_right(range(1, points + 1), available, key=needed)
    return Memory(points, needed(points), available, largest)


def shares(costs: Sequence[WorkloadCost], budget: float) -> list[float]:
    """Seconds for each workload. If all fit into the budget, each may use all of it; otherwise the
    short ones get what they need and the long ones the same each, so that every part has something
    to show."""
    if sum(one.seconds for one in costs) <= budget:
        return [budget] * len(costs)
    found = [0.0] * len(costs)
    order = sorted(range(len(costs)), key=lambda i: costs[i].seconds)
    for behind, i in enumerate(order):
        found[i] = min(costs[i].seconds, budget / (len(order) - behind))
        budget -= found[i]
    return found


class _Rates:
    """Ratios of measured to estimated seconds, by training size."""

    def __init__(self, workload: Workload, done: Sequence[Run]) -> None:
        self._workload = workload
        self._sums: dict[int | str | None, list[float]] = {}
        for run in done:
            for size in (run.config.get("train"), "any"):
                sums = self._sums.setdefault(size, [0.0, 0.0])
                sums[0] += run.seconds or 0.0
                sums[1] += workload.seconds(run.config)

    def seconds(self, config: Config) -> float:
        """The corrected estimate of a run."""
        size = config.get("train")
        taken, guessed = self._sums.get(size) or self._sums.get("any") or (1.0, 1.0)
        return self._workload.seconds(config) * taken / guessed


def _points(config: Config) -> int:
    """Training points in the kernel of a run; networks of finite width have none."""
    return 0 if "width" in config else config.get("train", 0)


def _same_device(run: Run, workload: Workload) -> bool:
    """Whether a run was done on the kind of device that the workload would use."""
    return ("cpu" if run.device.startswith("cpu") else "gpu") == workload.device(run.config)
