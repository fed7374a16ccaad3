"""Accuracy on tables: nngp's estimators beside other methods, all at their defaults.

    python benchmarks/tabular.py run --store tabular.db --data DIR --processes 2
    python benchmarks/tabular.py merge tabular.db part.db...    # runs of other machines
    python benchmarks/tabular.py export tabular.db              # benchmarks/results/tabular_*.csv
    python benchmarks/tabular.py summary                        # tables of all measures
    python benchmarks/tabular.py page                           # docs/benchmarks/tables.md

DIR holds `uci_regression`, `uci_regression_more` and `uci_classification`. In the folder `tables`,
`tabular_sets.py` says which splits and rows are used, `tabular_peers.py` and `tabular_nngp.py`
which methods, `tabular_scores.py` what is measured, `tabular_panel.py` what is compared. Nothing is
tuned by hand, and test rows are used for the scores only. A run that is in the store is not
repeated, so `run` can be interrupted and started again, by any number of processes. Each run names
the machine that it was done on; times of different machines are not to be compared. Every process
uses one thread, unless OMP_NUM_THREADS and OPENBLAS_NUM_THREADS say otherwise.
"""

import argparse
import math
import os
import sys
from pathlib import Path

PARTS = str(Path(__file__).parent / "tables")
sys.path.append(PARTS)
# Processes that it starts find the parts, too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), PARTS)))

import tabular_export  # noqa: E402
import tabular_page  # noqa: E402
import tabular_runs  # noqa: E402
import tabular_sets  # noqa: E402
import tabular_summary  # noqa: E402

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks" / "tables.md"


def main() -> None:
    args = _arguments()
    if args.command == "run":
        tabular_runs.run(args)
    elif args.command == "merge":
        tabular_export.merge(args.store, args.parts)
    elif args.command == "export":
        tabular_export.export(args.store, args.results)
    elif args.command == "summary":
        print(tabular_summary.summary(tabular_export.read(args.results)))
    else:
        tabular_page.rewrite(args.page, tabular_export.read(args.results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    _run_arguments(commands.add_parser("run", help="do the runs that are not in the store"))
    merge = commands.add_parser("merge", help="copy finished runs; of two results the first stays")
    merge.add_argument("store", type=Path)
    merge.add_argument("parts", type=Path, nargs="+")
    export = commands.add_parser("export", help="write the finished runs as CSV files")
    export.add_argument("store", type=Path)
    for name in ("summary", "page"):
        commands.add_parser(name, help=f"{name} of the CSV files").add_argument(
            "--results", type=Path, default=RESULTS
        )
    export.add_argument("--results", type=Path, default=RESULTS)
    commands.choices["page"].add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args()


def _run_arguments(run: argparse.ArgumentParser) -> None:
    run.add_argument("--store", type=Path, required=True, help="a file of runs, made if missing")
    run.add_argument("--data", type=Path, help="folder of the data sets")
    run.add_argument(
        "--collections",
        nargs="+",
        choices=tabular_sets.MOST_ROWS,
        default=[*tabular_sets.MOST_ROWS],
    )
    run.add_argument("--sets", nargs="+", default=[], help="names such as boston or uci/boston")
    run.add_argument("--methods", nargs="+", default=[], help="all methods unless named")
    run.add_argument("--splits", type=int, help="at most so many splits of each set")
    run.add_argument(
        "--from-rows", type=int, default=0, help="only sets with so many training rows"
    )
    run.add_argument("--below-rows", type=float, default=math.inf, help="only sets with fewer")
    run.add_argument("--all", action="store_true", help="train on all rows of large sets")
    run.add_argument("--processes", type=int, default=1)
    run.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    run.add_argument("--longest", type=float, default=math.inf, help="seconds, estimated, of a run")
    run.add_argument("--short-first", action="store_true", help="instead of long runs first")
    run.add_argument("--retry", action="store_true", help="try failed runs again")


if __name__ == "__main__":
    main()
