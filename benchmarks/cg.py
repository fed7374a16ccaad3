"""Conjugate gradients on one GPU: iterations, seconds by phase, memory, and the error of the means.

    python benchmarks/cg.py --data DIR --n 100000 [--noise 1e-2] [--depth 3] [--rank 10000]
        [--preconditioner nystrom] [--tolerance 1e-8] [--direct] [--iterations K] [--repeat K]
        [--out FILE.jsonl]
    python benchmarks/cg.py --largest BYTES

DIR holds mnist.npz. The first 70,000 inputs are MNIST's images, training and test; those beyond are
the same images again, each moved by one or two pixels in a random direction, with faint pixel noise
(deviation 4 of 255). All are normalised. The network is relu with (1.6, 0.1), the targets are ten
one-hot columns. The means are compared at 1,000 further such perturbed images.

`--repeat 2` solves twice and records the second time, as the first compiles. `--direct` also solves
by Cholesky in float64, twice as well, and compares; `--answers FILE.npz` keeps those means, or
reads them. `--iterations K` times K iterations and solves nothing. `--largest BYTES` prints for
how many points a device of that memory has room, from the plan alone.
XLA_PYTHON_CLIENT_MEM_FRACTION=0.95 lets JAX have all of the GPU.

In `results/cg.jsonl` 100k, one iteration at 1M, and 100k again came from one process, 200k, 300k
and 200k from a second, 1M from a third; the last, without autotuning, from one more. Where a larger
job came before, there is no peak_bytes, as JAX tells that of the process. Their factors were timed
the second time as well, by way of `--answers`. The five records with "repeat": 2 compare the two
preconditioners, compiled, at 60,000 points and two noises, and at 200,000 points and noise 1e-6,
where two solves with nystrom took longer than the 280 s that they were given.
"""

import argparse
import json
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import nngp
from nngp.linsolve import choose_engine, forecast_cg, forecast_factor
from nngp.posterior.by_cg import CGProblem
from nngp.posterior.noise import Noise
from nngp.posterior.setup import Resources
from nngp_paper import datasets

TEST, PIECE = 1000, 10_000
SIDE = 28


def data(folder: Path, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, one-hot targets, and test inputs."""
    found = datasets.load("mnist", folder)
    assert isinstance(found, datasets.Images)
    images = np.concatenate([found.train_images, found.test_images]).reshape(-1, SIDE, SIDE)
    labels = np.concatenate([found.train_labels, found.test_labels])
    X, which = np.empty((n, SIDE * SIDE)), np.arange(n) % len(images)

    def fill(start: int) -> None:
        some = images[which[start : start + PIECE]]
        moved = perturbed(some, start) if start >= len(images) else some.reshape(len(some), -1)
        X[start : start + PIECE] = nngp.normalize(moved)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n, PIECE)))
    return X, np.eye(10)[labels[which]], nngp.normalize(perturbed(images[-TEST:], 1))


def perturbed(images: np.ndarray, seed: int) -> np.ndarray:
    """Each image moved by one or two pixels along each axis or not at all, plus faint noise."""
    rng = np.random.default_rng(seed)
    moved = np.zeros(images.shape)
    shifts = rng.integers(-2, 3, (len(images), 2))
    for down in range(-2, 3):
        for across in range(-2, 3):
            some = (shifts == (down, across)).all(axis=1)
            moved[some] = np.roll(images[some], (down, across), axis=(1, 2))
    return (moved + rng.normal(0.0, 4.0, moved.shape)).reshape(len(images), -1)


def device_facts(engine: Any) -> dict[str, Any]:
    device = getattr(engine, "device", None)
    if device is None:
        return {"device": platform.machine()}
    stats = device.memory_stats() or {}
    return {
        "device": device.device_kind,
        "device_bytes": stats.get("bytes_limit"),
        "peak_bytes": stats.get("peak_bytes_in_use"),
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


def solve(net: Any, X: Any, Y: Any, X_test: Any, engine: Any, asked: Any) -> dict[str, Any]:
    options = nngp.CG(
        tolerance=asked.tolerance, preconditioner=asked.preconditioner, rank=asked.rank
    )
    for _ in range(asked.repeat):
        found = None  # there is room for one
        start = time.perf_counter()
        found = nngp.condition(
            net, X, Y, noise_var=asked.noise, engine=engine, solver=options, progress=teller(asked)
        )
        seconds = time.perf_counter() - start
    assert found is not None
    report = found.report
    out = {
        "iterations": report.iterations,
        "residual": report.residual,
        "preconditioner": report.preconditioner,
        "rank": report.rank,
        "kept": report.kept,
        "noise_var": report.noise_var,
        "repeat": asked.repeat,
        "seconds": {name: round(value, 3) for name, value in report.seconds.items()},
        "seconds_total": round(seconds, 3),
        "seconds_per_iteration": round(report.seconds["cg"] / (report.iterations + 1), 4),
        "forecast_bytes": report.forecast_bytes,
        **device_facts(engine),
    }
    start = time.perf_counter()
    mean = found.mean(X_test)
    out["seconds_mean_1000"] = round(time.perf_counter() - start, 3)
    del found
    if asked.direct or asked.answers:
        out |= compared(net, X, Y, X_test, engine, asked, mean)
    return out


def compared(
    net: Any, X: Any, Y: Any, X_test: Any, engine: Any, asked: Any, mean: np.ndarray
) -> dict[str, Any]:
    """The largest difference to the means of a float64 Cholesky factor, relative to max |Y|."""
    if asked.answers and asked.answers.exists():
        with np.load(asked.answers) as file:
            exact, seconds = file["mean"], float(file["seconds"])
    else:
        for _ in range(2):  # the first one compiles
            exact, seconds = factored(net, X, Y, X_test, engine, asked)
        if asked.answers:
            np.savez(asked.answers, mean=exact, seconds=seconds)
    worst = float(np.abs(mean - exact).max() / np.abs(Y).max())
    return {"difference_of_means": worst, "seconds_cholesky": round(seconds, 3)}


def factored(
    net: Any, X: Any, Y: Any, X_test: Any, engine: Any, asked: Any
) -> tuple[np.ndarray, float]:
    """Means by Cholesky, and the seconds of conditioning."""
    start = time.perf_counter()
    found = nngp.condition(net, X, Y, noise_var=asked.noise, engine=engine, solver="cholesky")
    seconds = time.perf_counter() - start
    return found.mean(X_test), seconds


def timed(net: Any, X: Any, Y: Any, engine: Any, asked: Any) -> dict[str, Any]:
    """Some iterations, each a product and a preconditioning; of several the first, which compiles,
    does not count."""
    options = nngp.CG(
        tolerance=asked.tolerance, preconditioner=asked.preconditioner, rank=asked.rank
    )
    inputs = nngp.gram.Inputs.kept(X)
    problem = CGProblem(net, inputs, Resources(engine), options)
    matrix = problem.matrix()
    plan = problem.plan(matrix, Y.shape[1], Noise(asked.noise))
    iteration = problem.begin(matrix, plan)
    shift = asked.noise / matrix.split.scale
    V, took = np.random.default_rng(0).standard_normal((Y.shape[1] + 1, len(X))), []
    with engine.run() as run:
        iteration.prepare(run, shift, partial(problem.landmarks, matrix.split))
        for _ in range(asked.iterations):
            start = time.perf_counter()
            product = iteration._times(run, V)
            middle = time.perf_counter()
            V = iteration._preconditioner(run, product / np.abs(product).max())
            took.append((middle - start, time.perf_counter() - middle))
            print("product, preconditioner:", [round(t, 3) for t in took[-1]], flush=True)
    products, others = np.array(took[1:] or took).T
    return {
        "preconditioner": plan.preconditioner,
        "rank": plan.rank,
        "kept": iteration.product.kept,
        "seconds": {name: round(value, 3) for name, value in iteration.seconds.items()},
        "seconds_first": round(sum(took[0]), 3),
        "seconds_product": round(float(products.mean()), 4),
        "seconds_precondition": round(float(others.mean()), 4),
        "seconds_per_iteration": round(float((products + others).mean()), 4),
        **device_facts(engine),
    }


def largest(memory: int) -> dict[str, int | None]:
    """The most points that each method has room for, with d = 784 and ten outputs."""
    import jax

    from nngp.linsolve.engines.gpu import GpuEngine

    sizes = GpuEngine(jax.devices()[0]), 1000, SIDE * SIDE, 10
    found = {"factor": forecast_factor(*sizes, memory).largest}
    for kind in ("single", "nystrom"):
        found[kind] = forecast_cg(*sizes, nngp.CG(preconditioner=kind), memory).largest
    return found


def teller(asked: Any) -> Any:
    """A line for every tenth iteration."""
    seen = [0]

    def tell(step: Any) -> None:
        if step.phase == "cg" and step.message:
            seen[0] += 1
            if seen[0] % 10 == 0:
                print(seen[0], step.message, flush=True)

    return tell if asked.verbose else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--largest", type=int, metavar="BYTES")
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--noise", type=float, default=1e-2)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--preconditioner", default="auto")
    parser.add_argument("--tolerance", type=float, default=1e-8)
    parser.add_argument("--engine", default="gpu")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--iterations", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.largest:
        print(json.dumps(largest(asked.largest)))
        return
    net = nngp.Architecture(asked.depth, "relu", 1.6, 0.1)
    start = time.perf_counter()
    X, Y, X_test = data(asked.data, asked.n)
    print(f"data in {time.perf_counter() - start:.1f} s", flush=True)
    engine = choose_engine(asked.engine, asked.n)
    head = {
        "n": asked.n,
        "d": X.shape[1],
        "noise": asked.noise,
        "depth": asked.depth,
        "tolerance": asked.tolerance,
    }
    if asked.iterations:
        record = head | timed(net, X, Y, engine, asked)
    else:
        record = head | solve(net, X, Y, X_test, engine, asked)
    line = json.dumps(record)
    print(line, flush=True)
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        with asked.out.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
