"""Random search over finite networks on MNIST and CIFAR-10, and the generalisation gap (GPU-sized).

    python benchmarks/finite.py --data DIR --store runs.db --minutes 9 --processes 5
    python benchmarks/finite.py --data DIR --store runs.db --minutes 4 --gap
    python benchmarks/finite.py --data DIR --store runs.db --minutes 4 --infinite
    python benchmarks/finite.py --store runs.db --publish paper/measured
    python benchmarks/finite.py --store paper/measured/finite.db.gz --pictures docs

The first three work until the time is over, and resume when called again; several processes share
the store, so that some compile while others train. --publish packs the finished runs without their
learning curves into FOLDER/finite.db.gz, and writes the best network of every cell, by validation,
beside the paper's rows into FOLDER/finite.csv. --pictures draws figures 1 and 2.
"""

import argparse
import csv
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from nngp import datasets, plots
from nngp.finite import gap
from nngp.finite.cells import EXPERIMENT, Cell, Found, best_of
from nngp.finite.random_search import search
from nngp.finite.recipe import Plan
from nngp.finite.width_comparison import INFINITE_EXPERIMENT, infinite
from nngp.paper.published import published_row
from nngp.runs import Run, RunStore, pack, unpacked

ROWS = ("mnist", "cifar10"), (1000, 10_000), ("relu", "tanh")
# depths and widths, those that matter most first: time may run out
SHAPES = (
    ((1, 2, 3, 5), (100, 500, 2000)),
    ((1,), (5000,)),
    ((2,), (5000,)),
    ((1, 2, 3, 5), (200, 1000)),
)
# on CIFAR-10 networks overfit early
PLANS = {"mnist": Plan(), "cifar10": Plan(steps=2000, patience=5)}
GAP_SHAPES = ((gap.DEPTH,), (50, 100, 200, 500, 1000, 2000))
GAP_SIZE = 10_000
COMPLETE = 50  # trials that a cell needs to be in the table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--memory", type=float, default=0.94, help="of the GPU, for all processes")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--gap", action="store_true")
    parser.add_argument("--infinite", action="store_true", help="the infinite networks' rows")
    parser.add_argument("--depths", type=int, nargs="+", help="instead of all, with --widths")
    parser.add_argument("--widths", type=int, nargs="+")
    parser.add_argument("--publish", type=Path, metavar="FOLDER")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    if options.publish:
        publish(options.store, options.publish)
    elif options.pictures:
        draw(options.store, options.pictures)
    elif options.processes > 1:
        start_processes(options.processes, options.memory)
    else:
        work(options)


def start_processes(count: int, memory: float) -> None:
    """This command `count` times at once, each with its share of the GPU's memory."""
    words = [sys.executable, *sys.argv, "--processes", "1"]  # the last one counts
    share = {**os.environ, "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{memory / count:.3f}"}
    running = [subprocess.Popen(words, env=share) for _ in range(count)]
    codes = [process.wait() for process in running]
    if any(codes):
        sys.exit("a process failed; what is finished is in the store")


def work(options: argparse.Namespace) -> None:
    until = time.monotonic() + 60 * options.minutes

    @cache
    def split(name: str, train: int) -> datasets.Split:
        return datasets.split(name, train, data=options.data)

    with RunStore(options.store) as store:
        if options.infinite:
            for name, train, activation, depth in product(*ROWS, (1, 2, 3, 5)):
                if time.monotonic() < until:
                    infinite(store, split(name, train), activation, depth)
            return
        shapes = (GAP_SHAPES,) if options.gap else SHAPES
        if options.depths and options.widths:
            shapes = ((options.depths, options.widths),)
        rows = [("cifar10", GAP_SIZE)] if options.gap else list(product(*ROWS[:2]))
        for (depths, widths), (name, train) in product(shapes, rows):
            if time.monotonic() >= until:
                return
            cells = [Cell(name, train, *rest) for rest in product(ROWS[2], depths, widths)]
            search(
                store,
                cells,
                split(name, train),
                gap.PLAN if options.gap else PLANS[name],
                options.trials,
                experiment=gap.EXPERIMENT if options.gap else EXPERIMENT,
                until=until,
                wait=False,
            )


def publish(path: Path, folder: Path) -> None:
    """Finished runs of the plans above, and the table."""
    with RunStore(path) as store:
        done = store.runs(status="done", lists=False)
    keys = [run.key for run in done if run.experiment != EXPERIMENT or _planned(run.config)]
    target = folder / "finite.db.gz"
    with TemporaryDirectory() as temporary:
        short = Path(temporary) / "finite.db"
        with RunStore(short) as store:
            store.merge(path, keys, lists=False)
        known = [target] if target.exists() else []
        print(pack([*known, short], target), "runs")
    with unpacked(target) as file:
        write_table(file, folder / "finite.csv")


def _planned(config: Mapping[str, object]) -> bool:
    return PLANS[str(config["dataset"])].as_dict().items() <= config.items()


def draw(path: Path, folder: Path) -> None:
    """Figure 1 for two training sets, and Figure 2."""
    with unpacked(path) as file, RunStore(file) as store:
        for name, activation in (("mnist", "relu"), ("cifar10", "relu")):
            output = folder / f"width-{name}.png"
            plots.accuracy_by_width(store, name, 1000, activation, output)
        plots.generalisation_gap(store, "cifar10", 1000, folder / "gap.png")


def write_table(path: Path, output: Path) -> None:
    """The best of every complete cell beside the paper's rows."""
    with RunStore(path) as store, output.open("w", newline="") as file:
        found = best_of(store.runs(experiment=EXPERIMENT, status="done"))
        levels = {
            (*[run.config[k] for k in ("dataset", "train", "activation", "depth")],): run
            for run in store.runs(experiment=INFINITE_EXPERIMENT, status="done")
        }
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for one in found:
            if one.trials < COMPLETE:
                continue
            cell = one.cell
            level = levels.get((cell.dataset, cell.train, cell.activation, cell.depth))
            paper = published_row(cell.dataset, cell.train, cell.activation, finite=True)
            writer.writerow(_row(one, level, paper.test_accuracy if paper else ""))


COLUMNS = (
    *("dataset", "train", "activation", "depth", "width", "trials"),
    *("val_accuracy", "test_accuracy", "test_mse", "paper_best", "infinite_test_accuracy"),
    *("learning_rate", "weight_decay", "weight_var", "bias_var", "batch_size", "best_step"),
)


def _row(found: Found, level: Run | None, paper: float | str) -> list[object]:
    cell, result, config = found.cell, found.result, found.best.config
    recipe = ("learning_rate", "weight_decay", "weight_var", "bias_var")
    return [
        *(cell.dataset, cell.train, cell.activation, cell.depth, cell.width, found.trials),
        *(round(result[k], 5) for k in ("val_accuracy", "test_accuracy", "test_mse")),
        *(paper, level.result["test_accuracy"] if level and level.result else ""),
        *(float(f"{config[k]:.4g}") for k in recipe),
        *(config["batch_size"], result["best_step"]),
    ]


if __name__ == "__main__":
    main()
