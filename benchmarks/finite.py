"""Random search over finite networks on MNIST and CIFAR-10, and the generalisation gap (GPU-sized).

    python benchmarks/finite.py --data DIR --store runs.db --dataset mnist cifar10 --minutes 9
    python benchmarks/finite.py --data DIR --store runs.db --stage gap --dataset cifar10
    python benchmarks/finite.py --store runs.db --publish reproduction/measured
    python benchmarks/finite.py --pictures docs/pictures

Every training size of the paper's table, both of its activations. `screen` trains all trials for
few steps, `train` the best of them for as long as they improve, chosen among the runs of the store.
The first two work until the time is over, and resume when called again; several may share one.
--publish packs the finished runs without their learning curves into FOLDER/finite.db.gz, and writes
the best network of every cell, by validation, beside the paper's rows into FOLDER/finite.csv.
--pictures draws figures 1 and 2 from the committed runs.
"""

import argparse
import csv
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from nngp_paper import datasets
from nngp_paper.finite import gap
from nngp_paper.finite.cells import EXPERIMENT, Cell, Found, best_of, cell_of
from nngp_paper.finite.random_search import search
from nngp_paper.finite.recipe import Plan, Recipe, random_recipes
from nngp_paper.finite.screening import finalists, longest
from nngp_paper.finite.width_comparison import INFINITE_EXPERIMENT
from nngp_paper.part import read_parts
from nngp_paper.parts import parts_named
from nngp_paper.published import published_row
from nngp_paper.report import scopes_of
from nngp_paper.runs import Run, RunStore, merged, pack, unpacked
from nngp_paper.scope import ACTIVATIONS, default_sizes

# Depth and width, the cheap ones first as time may run out; trials that are screened of each shape
# (252 a row), and finalists of each width by accuracy and by error.
SHAPES = [*product((1, 2, 3, 5), (100, 500, 2000)), *product((1, 2), (5000,))]
TRIALS = {100: 24, 500: 24, 2000: 12, 5000: 6}
FINALISTS = {100: 2, 500: 2, 2000: 1, 5000: 1}
SCREEN, LONG = Plan(steps=400, patience=4), Plan(steps=20_000, interval=200, patience=10)

MEASURED = Path(__file__).parents[1] / "reproduction" / "measured"
GAP_SIZE = 10_000
GAP_TRIALS = {100: 30, 200: 30, 500: 30, 1000: 30, 2000: 20, 5000: 8}
GAP_FINALISTS: dict[Literal["adam", "sgd"], dict[int, int]] = {
    "adam": {100: 12, 200: 12, 500: 12, 1000: 12, 2000: 5, 5000: 3},
    "sgd": {100: 20, 200: 20, 500: 20, 1000: 20, 2000: 8},  # wider ones need too many steps
}
GAP_STEPS = 600, 24_000
# Trials that come after these, by SGD, of small networks that a CPU trains in minutes: only recipes
# that may learn every label within some thousand steps.
QUICK_TRIALS = range(30, 150)
QUICK_FINALISTS = {200: 8, 100: 8}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--store", type=Path, default=Path("runs.db"))
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--stage", choices=STAGES, nargs="+", default=["screen", "train"])
    parser.add_argument("--dataset", choices=("mnist", "cifar10"), nargs="+", default=["mnist"])
    parser.add_argument("--publish", type=Path, metavar="FOLDER")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.publish:
        publish(options.store, options.publish)
    elif options.pictures:
        draw(options.pictures)
    else:
        until = time.monotonic() + 60 * options.minutes
        with RunStore(options.store) as store:
            for stage, name in product(options.stage, options.dataset):
                STAGES[stage](store, name, options.data, until)


def screen(store: RunStore, name: str, folder: Path | None, until: float) -> None:
    """All trials of cells that no trials were made of."""
    known = {cell_of(run) for run in store.runs(EXPERIMENT, "done") if not is_screening(run)}
    shapes = product(SHAPES, ACTIVATIONS, default_sizes(name))
    cells = [Cell(name, n, phi, *shape) for shape, phi, n in shapes]
    trials = {cell: range(TRIALS[cell.width]) for cell in cells if cell not in known}
    data = datasets.split(name, data=folder)
    search(store, trials, data, SCREEN, trials, until=until, wait=False)


def train(store: RunStore, name: str, folder: Path | None, until: float) -> None:
    """The finalists of every training set, activation and width."""
    runs = store.runs(EXPERIMENT, "done", where={"dataset": name})
    screened = [run for run in runs if run.config["steps"] < LONG.steps]
    trials: dict[Cell, list[int]] = {}
    for width, count in FINALISTS.items():
        own = [run for run in screened if run.config["width"] == width]
        trials |= finalists(own, count)
    data = datasets.split(name, data=folder)
    search(store, trials, data, LONG, trials, until=until, wait=False)


def measure_gap(store: RunStore, name: str, folder: Path | None, until: float) -> None:
    """Networks that learn every label, by Adam and by plain descent."""
    data = datasets.split(name, GAP_SIZE, data=folder)
    for optimiser, count in GAP_FINALISTS.items():
        plan = replace(gap.PLAN, optimiser=optimiser)
        cells = [gap_cell(name, phi, width) for width, phi in product(count, ACTIVATIONS)]
        trials = {cell: range(GAP_TRIALS[cell.width]) for cell in cells}
        screen_and_train_gap(store, data, plan, trials, count, until)


def measure_quick_gap(store: RunStore, name: str, folder: Path | None, until: float) -> None:
    """More relu networks of small width that learn every label, by quick recipes."""
    data = datasets.split(name, GAP_SIZE, data=folder)
    cells = [gap_cell(name, "relu", width) for width in QUICK_FINALISTS]
    trials = {cell: quick_trials(cell) for cell in cells}
    plan = replace(gap.PLAN, optimiser="sgd")
    screen_and_train_gap(store, data, plan, trials, QUICK_FINALISTS, until)


def gap_cell(name: str, activation: str, width: int) -> Cell:
    return Cell(name, GAP_SIZE, activation, gap.DEPTH, width)


def quick_trials(cell: Cell) -> list[int]:
    """Trials with large steps, little weight decay and large batches."""
    recipes = list(islice(random_recipes(0, cell.depth, cell.width), QUICK_TRIALS.stop))
    return [i for i in QUICK_TRIALS if is_quick(recipes[i])]


def is_quick(recipe: Recipe) -> bool:
    rate, decay = recipe.learning_rate, recipe.weight_decay
    return 0.003 < rate < 0.1 and decay < 1e-3 and recipe.batch_size >= 64


def screen_and_train_gap(
    store: RunStore,
    data: datasets.Split,
    plan: Plan,
    trials: Mapping[Cell, Sequence[int]],
    count: Mapping[int, int],
    until: float,
) -> None:
    """All trials for few steps, then the best `count` of each width, by training accuracy."""
    short, long = (replace(plan, steps=steps) for steps in GAP_STEPS)
    search_gap(store, data, short, trials, until)
    runs = [
        run
        for run in store.runs(gap.EXPERIMENT, "done")
        if Plan.of(run.config) == short and run.config["trial"] in trials.get(cell_of(run), ())
    ]
    best: dict[Cell, list[int]] = {}
    for width, most in count.items():
        own = [run for run in runs if run.config["width"] == width]
        best |= finalists(own, most, ["training"])
    search_gap(store, data, long, best, until)


STAGES = {"screen": screen, "train": train, "gap": measure_gap, "quick-gap": measure_quick_gap}


def search_gap(
    store: RunStore,
    data: datasets.Split,
    plan: Plan,
    trials: Mapping[Cell, Sequence[int]],
    until: float,
) -> None:
    begin = time.monotonic()
    search(store, trials, data, plan, trials, experiment=gap.EXPERIMENT, until=until, wait=False)
    print(f"gap {plan}: {time.monotonic() - begin:.1f} s", flush=True)


def is_screening(run: Run) -> bool:
    return Plan.of(run.config) == SCREEN


def without_curve(result: str) -> str:
    return json.dumps({name: v for name, v in json.loads(result).items() if name != "curve"})


def publish(path: Path, folder: Path) -> None:
    """Finished runs, without their learning curves, beside those that are there; and the table."""
    target = folder / "finite.db.gz"
    with TemporaryDirectory() as temporary:
        short = Path(temporary) / "finite.db"
        with RunStore(short) as store:
            store.merge(path)
        with closing(sqlite3.connect(short)) as database:
            database.create_function("without_curve", 1, without_curve)
            with database:
                database.execute("UPDATE runs SET result = without_curve(result)")
        known = [target] if target.exists() else []
        print(pack([*known, short], target), "runs")
    with unpacked(target) as file:
        write_table(file, folder / "finite.csv")


def draw(folder: Path) -> None:
    """Figures 1 and 2 from the committed stores, as the report has them."""
    with merged([MEASURED / name for name in ("grid.db.gz", "finite.db.gz")]) as store:
        for scope in scopes_of(store):
            for shown in read_parts(parts_named(["fig1", "fig2"]), store, scope):
                if not shown.problem and shown.part.draw:
                    name = {"fig1": "performance", "fig2": "gap"}[shown.part.name]
                    shown.part.draw(shown.data, folder / f"{name}-{scope.dataset}.png")
                    print(shown.finding)


def write_table(path: Path, output: Path) -> None:
    """The best of every cell beside the paper's rows."""
    with RunStore(path) as store, output.open("w", newline="") as file:
        runs = store.runs(experiment=EXPERIMENT, status="done")
        trials = Counter(map(cell_of, longest(runs)))
        found = [replace(one, trials=trials[one.cell]) for one in best_of(runs)]
        levels = {
            (*[run.config[k] for k in ("dataset", "train", "activation", "depth")],): run
            for run in store.runs(experiment=INFINITE_EXPERIMENT, status="done")
        }
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for one in found:
            cell = one.cell
            level = levels.get((cell.dataset, cell.train, cell.activation, cell.depth))
            paper = published_row(cell.dataset, cell.train, cell.activation, finite=True)
            writer.writerow(_row(one, level, paper.test_accuracy if paper else ""))


COLUMNS = (
    *("dataset", "train", "activation", "depth", "width", "trials"),
    *("val_accuracy", "test_accuracy", "test_mse", "paper_best", "infinite_test_accuracy"),
    *(
        "learning_rate",
        "weight_decay",
        "weight_var",
        "bias_var",
        "batch_size",
        "best_step",
        "steps",
    ),
)


def _row(found: Found, level: Run | None, paper: float | str) -> list[object]:
    cell, result, config = found.cell, found.result, found.best.config
    recipe = ("learning_rate", "weight_decay", "weight_var", "bias_var")
    return [
        *(cell.dataset, cell.train, cell.activation, cell.depth, cell.width, found.trials),
        *(round(result[k], 5) for k in ("val_accuracy", "test_accuracy", "test_mse")),
        *(paper, level.result["test_accuracy"] if level and level.result else ""),
        *(float(f"{config[k]:.4g}") for k in recipe),
        *(config["batch_size"], result["best_step"], config["steps"]),
    ]


if __name__ == "__main__":
    main()
