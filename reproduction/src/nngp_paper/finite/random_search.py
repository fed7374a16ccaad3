"""The paper's random search (app. D): every trial is a run in the store.

A cell is one shape of network on one training set. Its trials are declared, claimed one by one by
the processes that share the store, trained, and stored with their scores on validation and test.
The best trial of a cell is chosen on validation.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import groupby, islice

from nngp import FiniteNetwork
from nngp_paper.datasets import Split
from nngp_paper.finite.cells import EXPERIMENT, Cell, Found, best_of, config_of
from nngp_paper.finite.device import compiled_ahead, device_name, most_lanes
from nngp_paper.finite.recipe import Plan, Recipe, random_recipes
from nngp_paper.finite.training import Trainer, Trial
from nngp_paper.finite.training_data import TrainingData
from nngp_paper.numbers import whole_number
from nngp_paper.progress import Advance, progress_bar
from nngp_paper.runs import POLL, Run, RunStore


def search(
    store: RunStore,
    cells: Iterable[Cell],
    data: Split,
    plan: Plan | None = None,
    trials: int | Mapping[Cell, Sequence[int]] = 50,
    seed: int = 0,
    *,
    experiment: str = EXPERIMENT,
    lanes: int | None = None,
    until: float = math.inf,
    wait: bool = True,
    progress: bool | None = None,
) -> list[Found]:
    """Train the cells' unfinished trials, and give the best trial of each cell.

    Cells may have fewer training points than the data, which then are the first of them
    (`Split.first`); networks of one shape are trained side by side on training sets of all sizes.
    `trials` is the number of trials of each cell, or their numbers by cell. Other processes may
    work on the same store: trials that they have claimed are waited for, and done here if they die,
    unless `wait` is False. Nothing new is begun after the time `until`, as `time.monotonic` counts.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> found[0].trials, found[0].result["steps"], store.counts()["done"]
    (2, 20, 2)
    >>> store.close()
    """
    if isinstance(cells, Cell):
        raise TypeError("cells must be a list of them; pass [cell] for one")
    plan, on_device = plan or Plan(), TrainingData.of(data)
    lanes = None if lanes is None else whole_number("lanes", lanes)
    tasks: dict[Cell, list[str]] = {}  # keys of all cells of a shape, under one of these cells
    for cell in cells:
        wanted = trials if isinstance(trials, int) else trials.get(cell, ())
        own = declare(store, cell, data, plan, wanted, seed, experiment=experiment)
        tasks.setdefault(replace(cell, train=len(data.X)), []).extend(own)
    keys = [key for of_shape in tasks.values() for key in of_shape]
    with progress_bar("training", len(keys), progress) as advance:
        left = store.pending(keys)
        advance(len(keys) - left)
        while left and time.monotonic() < until:
            for trainer, group in _compiled(_trainers(store, tasks, on_device, plan, lanes), until):
                _train(store, trainer, group, until, advance)
            before, left = left, store.pending(keys)
            if not wait:
                break
            if left == before:
                time.sleep(POLL)
    return best_of(store.runs(keys=keys))


def declare(
    store: RunStore,
    cell: Cell,
    data: Split,
    plan: Plan,
    trials: int | Sequence[int],
    seed: int = 0,
    *,
    experiment: str = EXPERIMENT,
) -> list[str]:
    """Declare runs of a cell, so many or those with these numbers, and give their keys; more trials
    later add to the first ones."""
    if cell.dataset != data.name or cell.train > len(data.X):
        raise ValueError(f"the cell is {cell}, and the data are {data.name} {len(data.X)}")
    numbers = range(whole_number("trials", trials)) if isinstance(trials, int) else trials
    recipes = list(
        islice(random_recipes(seed, cell.depth, cell.width), max(numbers, default=-1) + 1)
    )
    sizes = {"validation": len(data.X_val), "test": len(data.X_test)}
    shared = {**asdict(cell), **sizes, **plan.as_dict(), "search_seed": seed}
    return store.declare(
        experiment, [{**shared, "trial": i, **recipes[i].as_dict()} for i in numbers]
    )


Work = tuple[Trainer, list[Run]]


def _trainers(
    store: RunStore,
    tasks: Mapping[Cell, list[str]],
    data: TrainingData,
    plan: Plan,
    lanes: int | None,
) -> list[Work]:
    """A trainer for each group of unfinished runs."""
    return [
        (_trainer(cell, data, plan, group, lanes), group)
        for cell, keys in tasks.items()
        for group in _groups(store.runs(keys=keys), lanes)
    ]


def _compiled(work: Sequence[Work], until: float) -> Iterator[Work]:
    """Trainers one after the other. On a GPU the next ones are compiled while one works: that takes
    the host as long as training takes the device."""
    ahead = compiled_ahead()
    if not ahead:
        yield from work
        return
    with ThreadPoolExecutor(ahead) as pool:
        begun = [pool.submit(trainer.compile) for trainer, _ in work[:ahead]]
        for i, one in enumerate(work):
            if time.monotonic() >= until:
                break
            begun[i].result()
            begun += [pool.submit(later.compile) for later, _ in work[len(begun) : i + 1 + ahead]]
            yield one
        for future in begun:
            future.cancel()


def _train(
    store: RunStore, trainer: Trainer, group: list[Run], until: float, advance: Advance
) -> None:
    """Claim, train and finish the runs of a group; after an error, release those in training."""
    held: set[str] = set()

    def trials() -> Iterator[Trial]:
        for run in _claimed(store, [run.key for run in group], until):
            held.add(run.key)
            yield Trial(run.key, Recipe(**config_of(Recipe, run)), run.config["train"])

    try:
        for key, trained in trainer.run(trials(), advance):
            store.finish(key, trained.result(), seconds=trained.seconds, device=device_name())
            held.discard(key)
    except BaseException:
        store.release(held)
        raise


def _claimed(store: RunStore, keys: list[str], until: float) -> Iterator[Run]:
    """Claim runs that nobody has, one by one, until the time is over."""
    while time.monotonic() < until and (run := store.claim(keys=keys)):
        yield run


def _trainer(
    cell: Cell, data: TrainingData, plan: Plan, group: list[Run], lanes: int | None
) -> Trainer:
    network = FiniteNetwork(cell.architecture, cell.width, data.data.n_classes)
    return Trainer(network, data, plan, max(map(_batch_size, group)), lanes, len(group))


def _groups(runs: Sequence[Run], lanes: int | None) -> Iterator[list[Run]]:
    """Unfinished runs, grouped by the lanes that train them: all together, or for a single lane by
    batch size, since batches are padded to the largest of a group."""
    left = [run for run in runs if run.status in ("pending", "running")]
    if (lanes or most_lanes()) > 1:
        yield from [left] if left else []
        return
    for _, group in groupby(sorted(left, key=_batch_size), key=_batch_size):
        yield list(group)


def _batch_size(run: Run) -> int:
    return int(run.config["batch_size"])
