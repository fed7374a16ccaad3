"""Time of the kernel matrix, as ratios in one run: against X Xᵀ, and against the recursion in JAX.

    python benchmarks/kernel.py [--n 5000] [--d 784] [--out benchmarks/results/kernel.json]

Ratios are medians over interleaved rounds, so that a busy machine slows all parts alike.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nngp

DEPTHS = (3, 10, 50)
NAMES = ("relu", "tanh")


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def jax_recursion(depth: int, weight_var: float, bias_var: float) -> Callable[[Any], Any]:
    """The layer-by-layer ReLU recursion over all pairs, jitted, in float64."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def kernel(X: Any) -> Any:
        K = bias_var + weight_var * X @ X.T / X.shape[1]
        q = bias_var + weight_var
        for _ in range(depth):
            c = jnp.clip(K / q, -1.0, 1.0)
            mixed = jnp.sqrt((1 - c) * (1 + c)) + (np.pi - jnp.arccos(c)) * c
            K = bias_var + weight_var * q / (2 * np.pi) * mixed
            q = bias_var + weight_var * q / 2
        return K

    def run(X: Any) -> Any:
        with jax.enable_x64(True):
            return kernel(X).block_until_ready()

    return run


def compile_times() -> dict[str, float]:
    """Milliseconds to compile a curve nobody has compiled before."""
    out = {}
    for name, depth in (("relu", 50), ("erf", 50), ("tanh", 10), ("silu", 10), ("hard_tanh", 10)):
        times = [
            seconds(partial(nngp.curves.compile_curve, nngp.Architecture(depth, name, w, 0.1)))
            for w in (1.51, 1.53, 1.57, 1.59, 1.61)
        ]
        out[f"{name} depth {depth}"] = round(1e3 * statistics.median(times), 1)
    return out


def medians(parts: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median seconds of each part over interleaved rounds, after one that warms up."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    for i in range(rounds + 1):
        for name, part in parts.items():
            spent = seconds(part)
            if i > 0:
                times[name].append(spent)
    return {name: statistics.median(t) for name, t in times.items()}


def measure(n: int, d: int, rounds: int, with_jax: bool) -> dict[str, Any]:
    X = nngp.normalize(np.random.default_rng(0).standard_normal((n, d)) + 0.8)
    parts: dict[str, Callable[[], Any]] = {"gram": partial(np.matmul, X, X.T)}
    for name in NAMES:
        for depth in DEPTHS:
            net = nngp.Architecture(depth, name, 1.6, 0.1)
            parts[f"{name} {depth}"] = partial(nngp.kernel, net, X)
    ours = medians(parts, rounds)
    gram = ours.pop("gram")
    result = {
        "n": n,
        "d": d,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "gram_seconds": round(gram, 4),
        "ratio_to_gram": {k: round(v / gram, 2) for k, v in ours.items()},
        "compile_ms": compile_times(),
    }
    if with_jax:  # last: its thread pool slows NumPy's products down
        theirs = medians(jax_parts(X), max(1, rounds // 2))
        result["jax_recursion_over_ours"] = {k: round(v / ours[k], 1) for k, v in theirs.items()}
    return result


def jax_parts(X: np.ndarray) -> dict[str, Callable[[], Any]]:
    import jax

    with jax.enable_x64(True):
        on_device = jax.numpy.asarray(X)
    return {f"relu {depth}": partial(jax_recursion(depth, 1.6, 0.1), on_device) for depth in DEPTHS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=5000)
    parser.add_argument("--d", type=int, default=784)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-jax", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.n, arguments.d, arguments.rounds, not arguments.no_jax)
    print(f"X Xᵀ at n = {result['n']}, d = {result['d']}: {result['gram_seconds']} s\n")
    print("kernel matrix           time / time of X Xᵀ")
    for name, ratio in result["ratio_to_gram"].items():
        print(f"{name:<23} {ratio:>6.2f}")
    print("\nrecursion in jitted JAX / ours")
    for name, ratio in result.get("jax_recursion_over_ours", {}).items():
        print(f"{name:<23} {ratio:>6.1f}")
    print("\ncompiling a curve               ms")
    for name, ms in result["compile_ms"].items():
        print(f"{name:<27} {ms:>6.1f}")
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
