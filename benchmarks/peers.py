"""nngp beside other libraries: times, memory, errors, and behaviour where it gets difficult.

    python benchmarks/peers.py run [--quick] [--fresh]   # environments, then what is missing
    python benchmarks/peers.py environments              # only create .peers/NAME
    python benchmarks/peers.py numbers                   # only the snippets of the documentation
    python benchmarks/peers.py table                     # tables from the record, as Markdown
    python benchmarks/peers.py readme                    # the times that the README names
    python benchmarks/peers.py draw                      # docs/pictures/peers.png

Each library has an environment of its own with the versions of `peers/requirements`. Each
measurement has a process of its own. In the folder `peers`, `peers_plan.py` says what is measured,
`peers_inputs.py` on what, `workers` how each library does it, `peers_exact.py` what is right.
A measurement that is in `results/peers.json` is not repeated, unless with --fresh. `--quick` tries
everything with small inputs, in a file of its own. The machine should have nothing else to do.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "peers"))

import peers_exact
import peers_inputs
import peers_plan
import peers_report
import peers_run

RESULTS = Path(__file__).parent / "results"
RECORD, NUMBERS = RESULTS / "peers.json", RESULTS / "peers_numbers.json"
EXACT = RESULTS / "peers_exact.json"
PICTURE = peers_run.ROOT / "docs" / "pictures" / "peers.png"


def main() -> None:
    args = _arguments()
    if args.command == "run":
        run(args.quick, args.fresh)
    elif args.command == "environments":
        peers_run.prepare()
    elif args.command == "numbers":
        numbers(peers_run.prepare(("neural-tangents", "gpytorch")))
    elif args.command == "table":
        print(peers_report.tables(json.loads(args.record.read_text()), exact()))
    elif args.command == "readme":
        print(*peers_report.readme_times(json.loads(args.record.read_text())), sep="\n")
    else:
        peers_report.draw(json.loads(args.record.read_text()), args.out)


def run(quick: bool, fresh: bool) -> None:
    skipped = peers_run.prepare()
    inputs = peers_run.ENVIRONMENTS / "inputs.npz"
    if fresh or not inputs.exists():
        peers_inputs.write(inputs)
    if not quick:
        numbers(skipped)
    sizes = peers_plan.QUICK if quick else peers_plan.FULL
    path = peers_run.ENVIRONMENTS / "quick.json" if quick else RECORD
    record = peers_run.Record(path, fresh or quick)
    do = partial(peers_run.measure, inputs=inputs)
    peers_run.run(peers_plan.measurements(sizes), record, sizes, do, skipped)
    print(f"the record is {path.relative_to(peers_run.ROOT)}")


def numbers(skipped: dict[str, str]) -> None:
    found = peers_run.run_snippets(skipped)
    NUMBERS.write_text(json.dumps(found, indent=1) + "\n")


def exact() -> dict[str, dict[str, object]]:
    """Exact kernels, computed where the file lacks them."""
    nets = [m.task["net"] for m in peers_plan.accuracies()]
    peers_exact.write(EXACT, nets, peers_inputs.circle()["circle"])
    found: dict[str, dict[str, object]] = json.loads(EXACT.read_text())
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("run", help="measure what the record lacks")
    measure.add_argument("--quick", action="store_true", help="small inputs, a trial of everything")
    measure.add_argument("--fresh", action="store_true", help="measure everything again")
    commands.add_parser("environments", help="create the environments only")
    commands.add_parser("numbers", help="run the snippets of the documentation only")
    uses = {"table": "print the tables", "readme": "print the README's", "draw": "draw the picture"}
    for name, words in uses.items():
        command = commands.add_parser(name, help=words)
        command.add_argument("--record", type=Path, default=RECORD)
        if name == "draw":
            command.add_argument("--out", type=Path, default=PICTURE)
    return parser.parse_args()


if __name__ == "__main__":
    main()
