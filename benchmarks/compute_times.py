"""Seconds for what the paper's app. D has seconds for: its table, K_DD, the solve, predictions.

    python benchmarks/compute_times.py --data DIR --engine gpu --train 50000

The network is the paper's best on all of MNIST with relu. Each part is timed after one small run
that compiles what is compiled once. One entry for each machine and number of points is kept in
results/compute_times.json; an entry of the same machine, engine and size is replaced.

    python benchmarks/compute_times.py --publish reproduction/measured/grid.db.gz

puts the entries into a packed store, as runs that `nngp report` shows beside the paper's times.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nngp
from nngp.curve import compile_curve
from nngp.linsolve import Engine, choose_engine
from nngp.linsolve.tiling import cut, spans
from nngp_paper import datasets
from nngp_paper.report.times import EXPERIMENT
from nngp_paper.runs import RunStore, pack

RESULTS = Path(__file__).parent / "results" / "compute_times.json"
NETWORK = nngp.Architecture(1, "relu", 0.10, 0.48)
DEPTHS = (1, 10)  # the kernel costs the same whatever the depth; that is seen, not assumed
TEST = 1000  # points, as in the paper
NAMES = ("engine", "device", "cores", "train")  # what an entry is told apart by


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def kernel_seconds(engine: Engine, X: Any, depth: int) -> float:
    """All tiles of the lower triangle of K_DD, computed and thrown away; no factor is made."""
    network = replace(NETWORK, depth=depth)
    inputs = engine.kernels.inputs(X)
    columns = spans(cut(len(inputs), engine.tile_size(len(inputs))))

    def work() -> None:
        with engine.run() as run:
            matrix = engine.kernels.matrix(network, inputs)
            for i, rows in enumerate(columns):
                for handle in [run.apply(matrix.block, rows, own) for own in columns[: i + 1]]:
                    run.wait(handle)

    return seconds(work)[0]


def measured(engine_name: str, train: int, data_folder: Path | None) -> dict[str, Any]:
    engine = choose_engine(engine_name, train)
    data = datasets.split("mnist", train, data=data_folder)
    Y, test = data.targets(data.labels), data.X_test[:TEST]
    small = min(train, 2 * engine.tile_size(train))
    nngp.condition(NETWORK, data.X[:small], Y[:small], engine=engine).predict(test)  # compiles
    table, _ = seconds(lambda: nngp.curves.LookupTable.authors("relu"))
    kernels = {str(depth): kernel_seconds(engine, data.X, depth) for depth in DEPTHS}
    solve, posterior = seconds(lambda: nngp.condition(NETWORK, data.X, Y, engine=engine))
    predict, _ = seconds(lambda: posterior.predict(test))
    curve, _ = seconds(lambda: compile_curve(nngp.Architecture(10, "relu", 1.6, 0.1)))
    return {
        "train": train,
        "test": TEST,
        "table_seconds": table,
        "curve_seconds": curve,
        "kernel_seconds_by_depth": kernels,
        "condition_seconds": solve,
        "predict_seconds": predict,
        "noise_var": posterior.report.noise_var,
    }


def machine(engine_name: str) -> dict[str, Any]:
    engine = choose_engine(engine_name, 50_000)
    kind = getattr(getattr(engine, "device", None), "device_kind", platform.machine())
    cores = len(os.sched_getaffinity(0))
    return {"engine": engine.name, "device": str(kind), "cores": cores, "nngp": nngp.__version__}


def publish(entries: list[dict[str, Any]], target: Path) -> int:
    """Add the entries to a packed store as finished runs."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        with RunStore(path) as store:
            for entry in entries:
                config = {name: entry[name] for name in (*NAMES, "test", "nngp")}
                (key,) = store.declare(EXPERIMENT, [config])
                result = {name: value for name, value in entry.items() if name not in config}
                seconds = [value for name, value in result.items() if name.endswith("_seconds")]
                store.finish(key, result, seconds=sum(seconds), device=entry["device"])
        return pack([*([target] if target.exists() else []), path], target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--train", type=int, default=50_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--publish", type=Path, metavar="FILE.db.gz")
    asked = parser.parse_args()
    known = json.loads(asked.out.read_text("utf-8")) if asked.out.exists() else []
    if asked.publish:
        print(publish(known, asked.publish), "runs published")
        return
    entry = {**machine(asked.engine), **measured(asked.engine, asked.train, asked.data)}
    others = [one for one in known if any(one[name] != entry[name] for name in NAMES)]
    asked.out.write_text(json.dumps([*others, entry], indent=1) + "\n", "utf-8")
    print(json.dumps(entry, indent=1))


if __name__ == "__main__":
    main()
