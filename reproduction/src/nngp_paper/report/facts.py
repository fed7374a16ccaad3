"""Facts about the runs of a store: data sets, times, devices, versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.grids.arrays import EXPERIMENT, RELATIVE
from nngp_paper.ranges import GRID_SIZE
from nngp_paper.runs import Run, RunStore
from nngp_paper.scope import ACTIVATIONS, MORE_ACTIVATIONS, Scope

GRIDS = EXPERIMENT, RELATIVE
ORDER = ("mnist", "cifar10", "fashion_mnist", "digits")  # the paper's first


@dataclass(frozen=True)
class Effort:
    """Runs of one experiment: how many, for how long, where, between which days."""

    experiment: str
    dataset: str | None
    done: int
    failed: int
    left: int
    seconds: float
    devices: tuple[str, ...]
    first: str
    last: str


def scopes_of(store: RunStore) -> list[Scope]:
    """The sizes, depths and activations of finished runs, for each data set that has any."""
    groups: dict[str, list[Run]] = {name: [] for name in ORDER}
    for run in store.runs(status="done"):
        if run.config.get("dataset") in groups:
            groups[run.config["dataset"]].append(run)
    return [_scope(name, runs) for name, runs in groups.items() if runs]


def short_title(dataset: str) -> str:
    """A data set's usual name."""
    return IMAGE_SETS[dataset].title.split(",")[0]


def full_title(dataset: str) -> str:
    """A data set's name and description, as the beginning of a sentence."""
    title = IMAGE_SETS[dataset].title
    return title[0].upper() + title[1:]


def efforts(store: RunStore) -> list[Effort]:
    """The efforts of all experiments and data sets, in the order in which they were begun."""
    groups: dict[tuple[str, str | None], list[Run]] = {}
    for run in store.runs():
        groups.setdefault((run.experiment, run.config.get("dataset")), []).append(run)
    return [_effort(*name, runs) for name, runs in groups.items()]


def versions(store: RunStore) -> dict[str, list[str]]:
    """All versions of Python and of packages that runs were done with."""
    found: dict[str, set[str]] = {}
    for run in store.runs(status="done"):
        for package, version in run.versions.items():
            found.setdefault(package, set()).add(version)
    return {package: sorted(known) for package, known in sorted(found.items())}


def _effort(experiment: str, dataset: str | None, runs: Sequence[Run]) -> Effort:
    done = [run for run in runs if run.status == "done"]
    days = sorted(run.finished[:10] for run in done if run.finished)
    failed = sum(run.status == "failed" for run in runs)
    return Effort(
        experiment,
        dataset,
        len(done),
        failed,
        len(runs) - len(done) - failed,
        sum(run.seconds or 0.0 for run in done),
        tuple(sorted({run.device for run in done if run.device})),
        days[0] if days else "",
        days[-1] if days else "",
    )


def _scope(name: str, runs: Sequence[Run]) -> Scope:
    """Sizes and activations of all runs of a data set; depths and grid from its grids, if any.
    Training sets with validation images among them are not the paper's."""
    every = sorted(_values(runs, "train"))
    sizes = [n for n in every if n <= IMAGE_SETS[name].most_training] or every
    grids, relative = ([run for run in runs if run.experiment == kind] for kind in GRIDS)
    known = _values(runs, "activation")
    usual = [name for name in ACTIVATIONS + MORE_ACTIVATIONS if name in known]
    return Scope(
        name,
        tuple(sizes),
        tuple(sorted(_values(grids or runs, "depth"))),
        tuple(usual + sorted(known - set(usual))),
        _finest(grids) or GRID_SIZE,
        relative_grid=_finest(relative),
    )


def _finest(strips: Sequence[Run]) -> int | None:
    """The most bias variances in a strip, as grids are square; None without strips."""
    return max((len(run.config["bias_vars"]) for run in strips), default=None)


def _values(runs: Sequence[Run], name: str) -> set[Any]:
    return {run.config[name] for run in runs if name in run.config}
