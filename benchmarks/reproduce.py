"""The paper's grids, published settings and uncertainties on a GPU, as runs in a store.

    python benchmarks/reproduce.py --data DIR --store FILE --dataset mnist cifar10 \
        --sizes 100,200,500,1000,2000,5000 --minutes 9

It does what `nngp reproduce` does for these experiments, without the packages that commands need,
and goes on where the store ends. With --publish FILE.db.gz the finished runs are packed to be kept,
together with those that the file has, and table 2 is written beside it.
"""

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from nngp_paper.experiment import Experiment
from nngp_paper.part import Results
from nngp_paper.parts import table2
from nngp_paper.ranges import GRID_SIZE
from nngp_paper.runs import RunStore, merged, pack
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.scope import ACTIVATIONS, DEPTHS, Scope, default_sizes
from nngp_paper.shared.tables import write_csv
from nngp_paper.workloads import EXPERIMENTS, study_of


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def fitting(dataset: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes above what there is mean all that there is, as 50,000 for CIFAR-10."""
    most = default_sizes(dataset)[-1]
    return tuple(sorted({min(size, most) for size in sizes}))


def together(studies: Sequence[Study]) -> Study:
    """The same study of several data sets as one, taking turns: they share the curves."""
    works = {study.configs[0].get("dataset"): study.work for study in studies if study.configs}
    turns = zip_longest(*(study.configs for study in studies))
    configs = [config for turn in turns for config in turn if config is not None]

    def work(config: Mapping[str, Any]) -> Outcome:
        return works[config.get("dataset")](config)

    def close() -> None:
        for study in studies:
            study.close()

    return Study(studies[0].experiment, configs, work, close)


def stages(kind: Experiment, store: RunStore, scope: Scope) -> Iterable[Study]:
    """The studies of an experiment, one after the other."""
    return [study_of(kind, scope)] if kind.stages is None else kind.stages(store, scope)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--dataset", nargs="+", default=["mnist", "cifar10"])
    parser.add_argument("--sizes", type=numbers, required=True)
    parser.add_argument("--depths", type=numbers, default=DEPTHS)
    parser.add_argument("--activations", nargs="+", default=list(ACTIVATIONS))
    parser.add_argument("--grid", type=int, default=GRID_SIZE)
    parser.add_argument("--experiments", nargs="+", default=["grid"])
    parser.add_argument("--engine", default="gpu")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--publish", type=Path)
    return parser.parse_args()


def write_tables(folder: Path, datasets: Sequence[str]) -> None:
    """Table 2 of every data set, from all packed stores of a folder: finite networks have one of
    their own."""
    with merged(sorted(folder.glob("*.db.gz"))) as runs:
        tables = [table2.read(Results(runs, Scope(name, default_sizes(name)))) for name in datasets]
    write_csv(tables, folder / "table2.csv")


def main() -> None:
    asked = arguments()
    start = time.monotonic()
    until = start + 60 * asked.minutes
    shape = asked.depths, tuple(asked.activations), asked.grid, asked.data, asked.engine
    scopes = [Scope(name, fitting(name, asked.sizes), *shape) for name in asked.dataset]
    with RunStore(asked.store) as store:
        for experiment in asked.experiments:
            kind = {one.name: one for one in EXPERIMENTS}[experiment]  # the largest of a name
            for stage in zip(*(stages(kind, store, scope) for scope in scopes), strict=True):
                study = together(stage)
                keys = carry_out(store, study, until=until, wait=False, progress=False)
                spent, left = time.monotonic() - start, store.pending(keys)
                print(f"[{spent:6.1f} s] {experiment}: {len(keys)} runs, {left} left", flush=True)
                if left:  # what is tried next depends on all of these
                    break
    if asked.publish:
        stores = [path for path in (asked.publish, asked.store) if path.exists()]
        print(pack(stores, asked.publish), "runs published")
        write_tables(asked.publish.parent, asked.dataset)


if __name__ == "__main__":
    main()
