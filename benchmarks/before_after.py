"""Times of two checkouts, in turns on one machine: what a change of the code has cost.

    python benchmarks/before_after.py OLD NEW [--rounds 9] [--only kernel] [--out FILE]

Runs small versions of the workloads of `kernel.py`, `shapes.py`, `inference.py` and `estimator.py`.
A round is one fresh process for each checkout, in alternating order, with one BLAS thread. In a
process each workload runs once to warm up and then some times more, and its least CPU time and wall
time count. What is recorded is the median over rounds of new / old. CPU time is the figure to read
when other programs run on the machine.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != HERE]

import numpy as np  # noqa: E402

Parts = dict[str, Callable[[], Any]]
REPEATS = 5


def inputs(n: int, d: int, normed: bool = True) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((n, d)) + 0.8
    return X * np.sqrt(d / np.sum(X * X, axis=1, keepdims=True)) if normed else X


def kernel_parts() -> Parts:
    """Kernels of chains: look-ups for one norm, the walk over pairs for several; compilation."""
    import nngp

    X, unequal = inputs(1500, 100), inputs(800, 50, normed=False)
    nets = {
        f"{a} {d}": nngp.Architecture(d, a, 1.6, 0.1) for a in ("relu", "tanh") for d in (3, 50)
    }
    parts: Parts = {f"kernel {name}": partial(nngp.kernel, net, X) for name, net in nets.items()}
    for name in ("relu", "erf", "tanh"):
        net = nngp.Architecture(3, name, 1.6, 0.1)
        parts[f"kernel {name} 3, unequal norms"] = partial(nngp.kernel, net, unequal)
    variances = iter(1.5 + 1e-3 * np.arange(100))
    for name, depth in (("relu", 50), ("tanh", 10)):
        parts[f"compile {name} {depth}"] = partial(_compile, name, depth, variances)
    return parts


def _compile(name: str, depth: int, variances: Any) -> None:
    import nngp

    nngp.curves.compile_curve(nngp.Architecture(depth, name, float(next(variances)), 0.1))


def shapes_parts() -> Parts:
    """K and Θ of a residual network of 50 blocks."""
    import nngp

    block = nngp.Residual(nngp.Act("relu"), nngp.Dense(0.1, 0.01))
    net = nngp.Chain(nngp.Dense(1.6, 0.1), nngp.Repeat(block, 50), nngp.Dense(1.0, 0.0))
    X, unequal = inputs(1500, 100), inputs(200, 50, normed=False)
    return {
        "residual K": partial(nngp.kernel, net, X),
        "residual theta": partial(nngp.kernel, nngp.NTK(net), X),
        "residual K, theta": partial(nngp.kernels, [net, nngp.NTK(net)], X),
        "residual theta, unequal norms": partial(nngp.kernel, nngp.NTK(net), unequal),
    }


def inference_parts() -> Parts:
    """Condition, predict, and the gradient of the evidence."""
    import nngp

    net = nngp.Architecture(3, "relu", 1.6, 0.1)
    X, Xs = inputs(1200, 100), inputs(1300, 100)[1200:]
    Y = np.random.default_rng(1).standard_normal((1200, 10))
    unequal = inputs(600, 20, normed=False)

    def infer() -> None:
        posterior = nngp.condition(net, X, Y, noise_var=1e-2, engine="cpu")
        posterior.mean(Xs)
        posterior.variance(Xs)

    def gradient(X: np.ndarray) -> None:
        n = len(X)
        nngp.condition(net, X, Y[:n], noise_var=1e-2, engine="cpu").evidence_gradient()

    few = partial(nngp.condition, net, X[:60], Y[:60, 0], noise_var=1e-2, engine="cpu")
    return {
        "condition, mean, variance": infer,
        "condition 60 points": few,
        "evidence gradient": partial(gradient, X[:600]),
        "evidence gradient, unequal norms": partial(gradient, unequal),
    }


def estimator_parts() -> Parts:
    """Fits at the defaults."""
    import nngp

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 10))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=500)
    labels = (y > 0).astype(int)
    return {
        "regressor 50 x 10": lambda: nngp.NNGPRegressor().fit(X[:50], y[:50]),
        "regressor 200 x 10": lambda: nngp.NNGPRegressor().fit(X[:200], y[:200]),
        "regressor 500 x 10": lambda: nngp.NNGPRegressor().fit(X, y),
        "classifier 200 x 10": lambda: nngp.NNGPClassifier().fit(X[:200], labels[:200]),
    }


GROUPS: dict[str, Callable[[], Parts]] = {
    "kernel": kernel_parts,
    "shapes": shapes_parts,
    "inference": inference_parts,
    "estimator": estimator_parts,
}


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """CPU seconds and wall seconds of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def child(groups: list[str]) -> None:
    """Print the least times of every workload, as JSON."""
    warnings.simplefilter("ignore")
    found = {}
    for group in groups:
        repeats = 1 if group == "estimator" else REPEATS
        for name, work in GROUPS[group]().items():
            work()
            times = [spent(work) for _ in range(repeats)]
            found[name] = [min(t) for t in zip(*times, strict=True)]
    print(json.dumps(found))


def times_of(checkout: Path, groups: list[str]) -> dict[str, list[float]]:
    """The workloads in a fresh process which imports the package from a checkout."""
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    environment = {**os.environ, **one_thread, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--child", *groups]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout))


def commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def summary(rounds: list[dict[str, dict[str, list[float]]]]) -> dict[str, Any]:
    """Medians of every workload over the rounds so far."""
    out = {}
    for name in rounds[0]["new"]:
        ratio = [
            statistics.median(r["new"][name][i] / r["old"][name][i] for r in rounds) for i in (0, 1)
        ]
        seconds = [statistics.median(r[which][name][0] for r in rounds) for which in ("old", "new")]
        out[name] = {
            "cpu_ratio": round(ratio[0], 3),
            "wall_ratio": round(ratio[1], 3),
            "cpu_seconds": [round(s, 4) for s in seconds],
        }
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path, nargs="?")
    parser.add_argument("new", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", choices=GROUPS, default=list(GROUPS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    if not args.old or not args.new:
        parser.error("name two checkouts: OLD NEW")
    rounds: list[dict[str, dict[str, list[float]]]] = []
    before = json.loads(args.out.read_text())["runs"] if args.out and args.out.exists() else []
    for i in range(args.rounds):
        order = ("old", "new") if i % 2 == 0 else ("new", "old")
        rounds.append({which: times_of(getattr(args, which), args.only) for which in order})
        print(f"round {i + 1} of {args.rounds}", file=sys.stderr, flush=True)
        result: dict[str, Any] = {
            "old": commit(args.old),
            "new": commit(args.new),
            "rounds": i + 1,
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "load": round(os.getloadavg()[0], 1),
            "workloads": summary(rounds),
        }
        if args.out:
            runs = {"runs": [*before, result]}  # a run replaces no other
            args.out.write_text(json.dumps(runs, indent=1, ensure_ascii=False) + "\n")
    for name, found in result["workloads"].items():
        print(f"{name:<36} {found['cpu_ratio']:>6.3f} cpu {found['wall_ratio']:>6.3f} wall")


if __name__ == "__main__":
    main()
