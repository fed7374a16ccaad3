"""The paper's grids, published settings and uncertainties on a GPU, as runs in a store.

    python benchmarks/reproduce.py --data DIR --store FILE --dataset mnist cifar10 \
        --sizes 100,200,500,1000,2000,5000 --minutes 9

It does what `nngp reproduce` does for these experiments, without the packages that commands need,
and goes on where the store ends. With --publish FILE.db.gz the finished runs are packed to be kept,
together with those that the file has.
"""

import argparse
import time
from pathlib import Path

from nngp.reproduce.scope import ACTIVATIONS, DEPTHS, GRID, Scope
from nngp.reproduce.store import RunStore, pack
from nngp.reproduce.studies.doubt import doubt_study
from nngp.reproduce.studies.grid import grid_studies
from nngp.reproduce.studies.setting import setting_study
from nngp.reproduce.study import carry_out


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--dataset", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--sizes", type=numbers, required=True)
    parser.add_argument("--depths", type=numbers, default=DEPTHS)
    parser.add_argument("--activations", nargs="+", default=list(ACTIVATIONS))
    parser.add_argument("--grid", type=int, default=GRID)
    parser.add_argument("--experiments", nargs="+", default=["grid"])
    parser.add_argument("--engine", default="gpu")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--publish", type=Path)
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    start = time.monotonic()
    until = start + 60 * asked.minutes
    with RunStore(asked.store) as store:
        for dataset in asked.dataset:
            scope = Scope(
                dataset,
                asked.sizes,
                asked.depths,
                tuple(asked.activations),
                asked.grid,
                asked.data,
                asked.engine,
            )
            for experiment in asked.experiments:
                if experiment == "grid":
                    studies = grid_studies(store, scope)
                else:
                    known = {"setting": setting_study, "doubt": doubt_study}
                    studies = iter([known[experiment](scope)])
                for study in studies:
                    keys = carry_out(store, study, until=until, wait=False, progress=False)
                    spent, left = time.monotonic() - start, store.pending(keys)
                    name = f"{dataset} {experiment}: {len(keys)} runs"
                    print(f"[{spent:6.1f} s] {name}, {left} left", flush=True)
                    if left:  # what is tried next depends on all of these
                        break
    if asked.publish:
        stores = [path for path in (asked.publish, asked.store) if path.exists()]
        print(pack(stores, asked.publish), "runs published")


if __name__ == "__main__":
    main()
