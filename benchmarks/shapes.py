"""Time of K and Θ of a residual network of 50 blocks, beside X Xᵀ and neural-tangents.

    python benchmarks/shapes.py [--n 5000] [--peer 2000] [--out benchmarks/results/shapes.json]

Ratios to X Xᵀ are medians over interleaved rounds, so that a busy machine slows all parts alike. In
a round each part is called twice: the first call also waits for memory that the system hands out
anew (two matrices for K and Θ), the second has it. Both are recorded.
neural-tangents runs in an environment of its own (`benchmarks/peers`), jitted, with `--peer` rows;
0 leaves it out. Its time is the best of its calls after the first, which compiles. K and Θ of 5,000
rows at once take it 29.8 GB, more than a machine of 24 GiB has.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nngp

sys.path.append(str(Path(__file__).parent / "peers"))

BLOCKS = 50


def network(weight_var: float = 0.1) -> nngp.Chain:
    block = nngp.Residual(nngp.Act("relu"), nngp.Dense(weight_var, 0.01))
    return nngp.Chain(nngp.Dense(1.6, 0.1), nngp.Repeat(block, BLOCKS), nngp.Dense(1.0, 0.0))


def inputs(n: int, d: int) -> np.ndarray:
    return nngp.normalize(np.random.default_rng(0).standard_normal((n, d)) + 0.8)


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def parts(X: np.ndarray) -> dict[str, Callable[[], Any]]:
    net = network()
    return {
        "gram": partial(np.matmul, X, X.T),
        "K": partial(nngp.kernel, net, X),
        "theta": partial(nngp.kernel, nngp.NTK(net), X),
        "both": partial(nngp.kernels, [net, nngp.NTK(net)], X),
    }


Medians = dict[str, tuple[float, float]]  # by part: of the first call in a round, of the second


def medians(todo: dict[str, Callable[[], Any]], rounds: int) -> Medians:
    """Median seconds of each part over interleaved rounds, after one that warms up."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in todo}
    for i in range(rounds + 1):
        for name, part in todo.items():
            spent = seconds(part), seconds(part)
            if i > 0:
                times[name].append(spent)
    return {
        name: (statistics.median(first), statistics.median(second))
        for name, (first, second) in ((name, zip(*t, strict=True)) for name, t in times.items())
    }


def ratios(found: Medians, call: int) -> dict[str, float]:
    gram = found["gram"][call]
    return {name: round(found[name][call] / gram, 2) for name in ("K", "theta", "both")}


def compile_times() -> dict[str, float]:
    """Milliseconds to compile a curve nobody has compiled before."""
    nets = [network(w) for w in (0.091, 0.093, 0.097, 0.099, 0.101)]
    found = {
        "K": [seconds(partial(nngp.curves.compile_curve, net)) for net in nets],
        "theta": [seconds(partial(nngp.curves.compile_curve, nngp.NTK(net))) for net in nets],
    }
    return {name: round(1e3 * statistics.median(times), 1) for name, times in found.items()}


def measure(n: int, d: int, rounds: int) -> dict[str, Any]:
    load = round(os.getloadavg()[0], 2)
    ours = medians(parts(inputs(n, d)), rounds)
    return {
        "network": f"{BLOCKS} residual blocks, relu",
        "n": n,
        "d": d,
        "rounds": rounds,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "load_before": load,
        "seconds": {name: round(second, 4) for name, (_, second) in ours.items()},
        "ratio_to_gram": ratios(ours, 1),
        "ratio_to_gram_of_first_calls": ratios(ours, 0),
        "compile_ms": compile_times(),
    }


def peer(n: int, d: int, repeats: int, rounds: int) -> dict[str, Any]:
    """neural-tangents and nngp at the same size."""
    import peers_run
    import peers_shapes

    reason = peers_run.install(peers_shapes.LIBRARY)
    if reason:
        return {"skipped": reason}
    X = inputs(n, d)
    ours = medians(parts(X), rounds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npy"
        np.save(path, X)
        task = {"network": network().as_dict(), "inputs": str(path), "n": n, "repeats": repeats}
        theirs = peers_shapes.ask({"what": "times", **task})
    found = theirs["result"]
    names = (("K", "nngp"), ("both", "both"))
    return {
        "n": n,
        "versions": theirs["versions"],
        "neural_tangents_seconds": found,
        "nngp_seconds": {name: round(ours[name][1], 4) for name, _ in names},
        "times_faster": {o: round(found[t]["steady"] / ours[o][1], 1) for o, t in names},
    }


def report(result: dict[str, Any]) -> None:
    print(f"X Xᵀ at n = {result['n']}, d = {result['d']}: {result['seconds']['gram']} s\n")
    for name, ratio in result["ratio_to_gram"].items():
        print(f"{name:<8} {ratio:>6.2f} times X Xᵀ")
    for name, ms in result["compile_ms"].items():
        print(f"{name:<8} {ms:>6.1f} ms to compile its curve")
    other = result.get("peer")
    if other and "times_faster" in other:
        for name, ratio in other["times_faster"].items():
            print(f"{name:<8} {ratio:>6.1f} times faster than neural-tangents, n = {other['n']}")


def record(path: Path, result: dict[str, Any]) -> None:
    """Add a run to the record: none replaces another, as they differ with the machine's load."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    path.write_text(json.dumps({"runs": [*runs, result]}, indent=1, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--d", type=int, default=784)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--peer", type=int, default=2000, help="rows for neural-tangents")
    parser.add_argument("--repeats", type=int, default=2, help="calls of neural-tangents")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    command = f"python benchmarks/shapes.py --n {args.n} --d {args.d} --peer {args.peer}"
    result = {"command": command, **measure(args.n, args.d, args.rounds)}
    if args.peer:
        result["peer"] = peer(args.peer, args.d, args.repeats, args.rounds)
    report(result)
    if args.out:
        record(args.out, result)


if __name__ == "__main__":
    main()
