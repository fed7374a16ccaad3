"""Time of `fit` on a busy machine: next to other programs, and with one BLAS thread for comparison.

    python benchmarks/busy.py [--n 500 2000] [--passes 3] [--loads idle loops3 loops6 numeric5]
        [--old DIR] [--out FILE]

Each fit of `NNGPRegressor()` runs in a process of its own, on
`make_friedman1(n, 10, noise=1.0, random_state=0)`, and imports are not timed. Three ways take
turns under each load:

    default     as a user calls it
    one_blas    the same with OPENBLAS_NUM_THREADS=1
    one_core    with OPENBLAS_NUM_THREADS=1, confined to one core (idle machine only)

`--old DIR` times the sources of another version, too, as old_default and old_one_blas. Loads are
busy loops in Python, or programs that multiply matrices with all the threads that BLAS takes by
default; they run while the fits are timed. Reported are medians, and the ratios
that the goals are about: default / one_blas under each load (at most 1.2) and one_core / default on
an idle machine (1.4 at n = 2,000 on two cores).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from large import command, machine

FIT = """
import sys, time, warnings
warnings.simplefilter("ignore")
from sklearn.datasets import make_friedman1
import nngp
model, data = nngp.NNGPRegressor(), make_friedman1(int(sys.argv[1]), 10, noise=1.0, random_state=0)
nngp.NNGPRegressor(effort="fast").fit(data[0][:60], data[1][:60])  # what is imported on the way
start = time.perf_counter()
model.fit(*data)
print(time.perf_counter() - start)
"""
LOOP = "while True: pass"
NUMERIC = "import numpy as np\nA = np.ones((800, 800))\nwhile True: A @ A"
LOADS = {
    "idle": [],
    "loops3": [LOOP] * 3,
    "loops6": [LOOP] * 6,
    "numeric5": [NUMERIC] * 5,
}
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
SECONDS = 900  # after which a fit is given up


def environment(**changes: str) -> dict[str, str]:
    """That of this process, without settings of BLAS."""
    return {k: v for k, v in os.environ.items() if k not in THREADS} | changes


@contextmanager
def load(programs: list[str]) -> Iterator[None]:
    """Run programs until the block ends."""
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=environment()) for code in programs
    ]
    try:
        yield
    finally:
        for program in running:
            program.kill()
            program.wait()


def fit_seconds(n: int, sources: Path | None, one_blas: bool, one_core: bool) -> float:
    changes = {"OPENBLAS_NUM_THREADS": "1"} if one_blas else {}
    if sources is not None:
        changes["PYTHONPATH"] = str(sources)
    start = [sys.executable, "-c", FIT, str(n)]
    if one_core:
        start = ["taskset", "-c", "0", *start]
    done = subprocess.run(
        start, env=environment(**changes), capture_output=True, text=True, timeout=SECONDS
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return float(done.stdout)


def measure(name: str, n: int, passes: int, old: Path | None) -> dict[str, Any]:
    ways: dict[str, tuple[Path | None, bool, bool]] = {
        "default": (None, False, False),
        "one_blas": (None, True, False),
    }
    if name == "idle":
        ways["one_core"] = (None, True, True)
    if old is not None:
        ways |= {"old_default": (old, False, False), "old_one_blas": (old, True, False)}
    found: dict[str, list[float]] = {way: [] for way in ways}
    with load(LOADS[name]):
        for _ in range(passes):
            for way, how in ways.items():
                found[way].append(fit_seconds(n, *how))
    out: dict[str, Any] = {way: round(statistics.median(times), 2) for way, times in found.items()}
    out["default / one_blas"] = round(out["default"] / out["one_blas"], 2)
    if "one_core" in out:
        out["one_core / default"] = round(out["one_core"] / out["default"], 2)
    if old is not None:
        out["old_default / default"] = round(out["old_default"] / out["default"], 2)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--loads", nargs="+", choices=tuple(LOADS), default=list(LOADS))
    parser.add_argument("--old", type=Path, help="the src folder of another version")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for n in args.n:
        for name in args.loads:
            results.setdefault(str(n), {})[name] = measure(name, n, args.passes, args.old)
            print(n, name, results[str(n)][name], flush=True)
    if args.out:
        record = {"command": command(), "machine": machine("cpu"), "seconds": results}
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
