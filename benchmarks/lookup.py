"""Time to fill the paper's look-up table, 501 x 501 x 500, by its sum and exactly.

python benchmarks/lookup.py [--out benchmarks/results/lookup.json]
"""

import argparse
import json
import os
import time
from pathlib import Path
from typing import Literal

import nngp


def seconds(name: str, fill: Literal["sum", "exact"]) -> float:
    start = time.perf_counter()
    nngp.curves.LookupTable(name, fill=fill)
    return round(time.perf_counter() - start, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    result: dict[str, object] = {"cores": os.cpu_count()}
    for name in ("relu", "tanh"):
        result[name] = {"sum": seconds(name, "sum"), "exact": seconds(name, "exact")}
        print(f"{name}, seconds: {result[name]}")
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
