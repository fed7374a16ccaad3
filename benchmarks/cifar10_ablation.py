"""Why are the paper's CIFAR-10 rows below ours? Its settings repeated with one thing changed.

    python benchmarks/cifar10_ablation.py --data DIR --sizes 100,200,500,1000,2000
    python benchmarks/cifar10_ablation.py --data DIR --sizes 20000,45000 --engine gpu \
        --variants "reference;middle 24" --out part.json
    python benchmarks/cifar10_ablation.py --merge part.json     # into the record, without runs

DIR holds CIFAR-10 in any of the forms that nngp_paper.datasets reads; without it NNGP_DATA names
it. In the folder `ablation`, `ablation_variants.py` lists the variants. Every (variant, size,
activation) is done once and kept in the record, so an interrupted run goes on where it was. The
network of a row is the one that the paper prints for it, so nothing is chosen here. The committed
record has all variants to 2,000 images and some of them to 45,000.
"""

import argparse
import gc
import os
import sys
import time
from pathlib import Path

from nngp_paper import datasets

sys.path.append(str(Path(__file__).parent / "ablation"))

import ablation_summary
from ablation_runs import Record, Task, do
from ablation_variants import VARIANTS
from large import command

OUT = Path(__file__).parent / "results" / "cifar10_ablation.json"


def main() -> None:
    options = _arguments()
    record = Record(options.out)
    if options.merge:
        for path in options.merge:
            part = Record(path)
            record.add(part.runs, part.commands)
    else:
        _run(options, record)
    print(ablation_summary.text(record.runs))


def _run(options: argparse.Namespace, record: Record) -> None:
    wanted = [Task(VARIANTS[name], size) for size in options.sizes for name in options.variants]
    tasks = [task for task in wanted if any(task.key(row) not in record for row in task.rows())]
    seconds = sum(_forecast(task, options.engine) for task in tasks)
    print(f"{len(tasks)} tasks, about {seconds / 60:.1f} minutes.", flush=True)
    images = datasets.load("cifar10", options.data or os.environ.get("NNGP_DATA"))
    assert isinstance(images, datasets.Images)
    for i, task in enumerate(tasks, start=1):
        start = time.perf_counter()
        record.add(do(task, images, options.engine), [command()])
        gc.collect()  # one problem at a time in a device's memory
        found = time.perf_counter() - start
        print(f"{i}/{len(tasks)} {task.variant.name}, {task.size}: {found:.1f} s", flush=True)


def _forecast(task: Task, engine: str) -> float:
    """Seconds, from what two slow cores and an H200 took."""
    thousands = task.size / 1000
    if engine == "gpu":
        return 3 + 0.25 * thousands
    return len(task.rows()) * (1 + 0.9 * thousands + 0.04 * thousands**3)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the data")
    parser.add_argument("--out", type=Path, default=OUT, help="the record")
    parser.add_argument("--engine", choices=("cpu", "gpu", "auto"), default="cpu")
    parser.add_argument("--sizes", type=_sizes, default=_sizes("100,200,500,1000,2000"))
    parser.add_argument("--variants", type=_names, default=[*VARIANTS], help="separated by ;")
    parser.add_argument("--merge", type=Path, nargs="+", help="records to add to the record")
    return parser.parse_args()


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(";")]
    unknown = [name for name in names if name not in VARIANTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no variant {unknown[0]!r}; there are {[*VARIANTS]}")
    return names


if __name__ == "__main__":
    main()
