"""Do runs of the benchmark: any number of processes share one store."""

import argparse
import math
import multiprocessing
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import tabular_nngp
import tabular_peers
import tabular_scores
import tabular_sets
from tabular_sets import Config

from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study, carry_out

EXPERIMENT = "tabular"
GRACE = 5.0  # seconds


def run(args: argparse.Namespace) -> None:
    """Do the runs that the arguments name and that are not in the store."""
    listed = tabular_sets.configs(
        args.collections,
        _methods(args.methods),
        args.data,
        sets=args.sets,
        splits=args.splits,
        sizes=(args.from_rows, args.below_rows),
        bounded=not args.all,
        longest=args.longest,
        short_first=args.short_first,
    )
    if not listed:
        raise SystemExit("these arguments name no run; check --sets, --methods and the row bounds")
    until = time.monotonic() + 60 * args.minutes
    with RunStore(args.store) as store:
        keys = store.declare(EXPERIMENT, listed)
        if args.retry:
            store.retry(keys)
        print(f"{store.pending(keys)} of {len(keys)} runs to do", flush=True)
    share = partial(_share, args.store, args.data, listed, until)
    _in_processes(share, args.processes, until)
    with RunStore(args.store) as store:
        counts = store.counts(keys=keys)
        print(", ".join(f"{count} {status}" for status, count in counts.items() if count))
        for failed in store.runs(status="failed", keys=keys):
            print(f"  {failed.config}: {failed.error}")


def _methods(named: list[str]) -> dict[str, list[str]]:
    """The methods for each task; those that are not installed are left out, with a sentence."""
    known = {
        "regression": ["nngp", *tabular_peers.REGRESSORS],
        "classification": ["nngp", *tabular_peers.CLASSIFIERS],
    }
    for method in [m for m in named if not m.startswith("nngp")]:
        if not any(method in methods for methods in known.values()):
            raise SystemExit(f"there is no method {method!r}; there are {known}")
    ours = [m for m in named if m.startswith("nngp")]
    absent = tabular_peers.missing(named or [*tabular_peers.OPTIONAL])
    for method in absent:
        print(f"{method} is not installed and left out (pip install {method})")
    return {
        task: [
            *(ours if named else ["nngp"]),
            *(m for m in methods[1:] if (not named or m in named) and m not in absent),
        ]
        for task, methods in known.items()
    }


def _in_processes(share: Callable[[], None], processes: int, until: float) -> None:
    """Call `share` in so many new processes, of one thread each, and end them at `until`."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # a new process reads them when it loads NumPy
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=share) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        left = max(0.0, until + GRACE - time.monotonic())
        worker.join(None if math.isinf(left) else left)
        if worker.is_alive():
            worker.kill()  # its run is given to the next process that asks
            worker.join()


def _share(path: Path, data: Path | None, listed: list[Config], until: float) -> None:
    study = Study(EXPERIMENT, listed, Work(data))
    with RunStore(path) as store:
        carry_out(store, study, until=until, wait=False, progress=False)


@dataclass(frozen=True)
class Work:
    """How to do one run."""

    data: Path | None

    def __call__(self, config: Config) -> Outcome:
        try:
            result = tabular_peers.quietly(scored, config, self.data)
        except (ArithmeticError, MemoryError, TypeError, ValueError, RuntimeError) as error:
            raise ArithmeticError(f"{type(error).__name__}: {error}") from error
        return Outcome(result, device=machine())


def scored(config: Config, data: Path | None) -> dict[str, Any]:
    """The scores of one run."""
    fold, method = tabular_sets.fold(config, data), config["method"]
    if fold.classes:
        classify = tabular_peers.CLASSIFIERS.get(method) or partial(tabular_nngp.classifier, method)
        votes = classify(fold.X, fold.y, fold.Xs)
        result: dict[str, Any] = dict(
            tabular_scores.classification_scores(votes, fold.ys, fold.classes)
        )
        seconds = votes.fit_seconds
    else:
        regress = tabular_peers.REGRESSORS.get(method) or partial(tabular_nngp.regressor, method)
        forecast = regress(fold.X, fold.y, fold.Xs)
        result, seconds = _regression(forecast, fold), forecast.fit_seconds
    result |= {"fit_seconds": seconds, "version": _version(method)}
    if not all(math.isfinite(v) for v in result.values() if isinstance(v, float)):
        raise ValueError(f"a score is not finite: {result}")
    return result


def _regression(forecast: tabular_peers.Forecast, fold: tabular_sets.Fold) -> dict[str, Any]:
    unit = float(fold.y.std()) or 1.0
    every = np.ones(len(fold.ys), bool)
    result: dict[str, Any] = dict(tabular_scores.regression_scores(forecast, fold.ys, unit, every))
    if fold.twin.any() and not fold.twin.all():
        result["twins"] = int(fold.twin.sum())
        result["without_twins"] = tabular_scores.regression_scores(
            forecast, fold.ys, unit, ~fold.twin
        )
    return result


def _version(method: str) -> str:
    package = method.split()[0]
    package = package if package in ("nngp", *tabular_peers.OPTIONAL) else "scikit-learn"
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:  # a folder on the path, not installed
        return f"{package} {__import__(package).__version__}"


@lru_cache
def machine() -> str:
    """The processor and the number of cores."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    return f"{model}, {os.cpu_count()} cores"
