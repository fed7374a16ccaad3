"""The first call in a fresh process: with no compiled programs, with those that JAX kept of an
earlier process, and once more in the same process.

    python benchmarks/first_call.py --data DIR [--engine gpu] [--cases n50000 classifier ...]
        [--profile CASE ...] [--quick] [--seconds S] [--out FILE]

DIR holds mnist.npz. Each case runs in processes of its own: the first with an empty folder for
JAX's cache of programs ("empty"), the second with what the first left there ("filled"). In each the
call is made twice, and the second is "warm". Seconds of a first call include the import of JAX and
the start of the device ("start"), which is timed on its own before it; reading the data is not
included. A case that fails leaves its error in the record, and the next one runs; after `--seconds`
(470) no other is begun.

    n2000, n50000, n100000   condition on so many images, ten outputs; predict 10,000 test images
    n2000_auto               the same, and the package chooses where it is done
    classifier               NNGPClassifier().fit of MNIST's 60,000; probabilities of 10,000
    growing                  n50000 with XLA_PYTHON_CLIENT_PREALLOCATE=false: JAX takes memory as it
                             needs it, and not three quarters of the GPU at once
    autotuned                n50000 with XLA's own options, which time many ways to multiply

n50000 is the paper's split: the first 10,000 training images are left out. n100000 has MNIST's
60,000 training images, and 40,000 of them again with pixel noise (deviation 16 of 255). The network
is relu of depth 1 with (0.10, 0.48), the noise 1e-10. `--profile` adds what Python spent the time
of some cases with, in one more process. `--quick` has small sizes; with --engine jax it runs on
whatever device JAX has.
"""

import argparse
import cProfile
import io
import json
import os
import platform
import pstats
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from nngp_paper import datasets

SIZES = {"n50000": 50_000, "n2000": 2000, "n2000_auto": 2000, "classifier": 60_000}
SIZES |= {"n100000": 100_000, "growing": 50_000, "autotuned": 50_000}  # important ones first
CASES = tuple(SIZES)
QUICK = 20  # sizes are divided by this
TEST = 10_000
LIMIT = 150.0  # seconds of one process


def images(folder: Path, n: int, test: int) -> tuple[np.ndarray, ...]:
    """Inputs, labels, test inputs and test labels."""

    found = datasets.load("mnist", folder)
    assert isinstance(found, datasets.Images)
    x, x_test = (a.reshape(len(a), -1) for a in (found.train_images, found.test_images))
    y = found.train_labels
    if n <= 50_000:
        x, y = x[10_000:], y[10_000:]
    pixels, labels = x[:n].astype(np.float64), y[:n]
    if n > len(x):
        extra, rng = n - len(x), np.random.default_rng(0)
        again = x[:extra] + rng.normal(0.0, 16.0, (extra, x.shape[1]))
        pixels, labels = np.concatenate([pixels, again]), np.concatenate([labels, y[:extra]])
    return pixels, labels, x_test[:test].astype(np.float64), found.test_labels[:test]


def regression(folder: Path, n: int, test: int, engine: Any) -> Any:
    """A function that makes one call, and gives seconds by phase and facts about the result."""
    import nngp

    pixels, labels, x_test, answers = images(folder, n, test)
    mean = pixels.mean(axis=0)
    X, X_test = (nngp.normalize(a - mean, center=True) for a in (pixels, x_test))
    Y = np.eye(10)[labels] - 0.1
    net = nngp.Architecture(1, "relu", 0.10, 0.48)

    def call() -> tuple[dict[str, float], dict[str, Any]]:
        start = time.perf_counter()
        posterior = nngp.condition(net, X, Y, engine=engine, noise_var=1e-10, solver="cholesky")
        middle = time.perf_counter()
        found = posterior.predict(X_test)[0]
        seconds = {"condition": middle - start, "predict": time.perf_counter() - middle}
        report = posterior.report
        facts = {
            "engine": report.engine,
            "accuracy": float(np.mean(found.argmax(axis=1) == answers)),
            "residual": report.residual,
            "log_evidence": posterior.log_evidence,
            "phases": {k: round(v, 3) for k, v in report.seconds.items()},
        }
        return seconds, facts

    return call


def classification(folder: Path, n: int, test: int, engine: Any) -> Any:
    import nngp

    X, labels, X_test, answers = images(folder, n, test)

    def call() -> tuple[dict[str, float], dict[str, Any]]:
        start = time.perf_counter()
        model = nngp.NNGPClassifier(engine=engine).fit(X, labels)
        middle = time.perf_counter()
        table = model.predict_proba(X_test)
        seconds = {"condition": middle - start, "predict": time.perf_counter() - middle}
        truth = table[np.arange(len(answers)), answers]
        facts = {
            "engine": model.report_.engine,
            "network": repr(model.network_),
            "accuracy": float(np.mean(table.argmax(axis=1) == answers)),
            "log_loss": float(-np.log(truth).mean()),
            "phases": {k: round(v, 3) for k, v in model.report_.seconds.items()},
            "search": [
                [str(stage), int(size), round(float(seconds), 3)]
                for stage, size, seconds in zip(
                    *(model.selection_[name] for name in ("stage", "n", "seconds")), strict=True
                )
            ],
        }
        return seconds, facts

    return call


def child(arguments: argparse.Namespace) -> dict[str, Any]:
    """One process: start the device, then two calls."""
    case, n, test = arguments.child, SIZES[arguments.child], TEST
    if arguments.quick:
        n, test = n // QUICK, TEST // QUICK
    engine, before = arguments.engine, time.perf_counter()
    listened: list[float] = []
    if engine != "cpu" and not case.endswith("auto"):
        engine = start_device(case, arguments, listened)
    elif case.endswith("auto"):
        engine = "auto"
    start = time.perf_counter() - before
    if case == "classifier":
        call = classification(arguments.data, n, test, engine)
    else:
        call = regression(arguments.data, n, test, engine)
    record: dict[str, Any] = {"start": start, "calls": []}
    profile = cProfile.Profile()
    for number in range(1 if arguments.profile else arguments.calls):
        known, heard = len(programs_made()), len(listened)
        if arguments.profile:
            profile.enable()
        seconds, facts = call()
        profile.disable()
        heard_now = listened[heard:]
        counts: dict[str, float] = {
            "programs": len(programs_made()) - known,
            "compiled": len(heard_now),
            "compile_seconds": round(sum(heard_now), 3),  # or the seconds to read them
        }
        record["calls"].append({**seconds, **counts, **facts})
        if number == 0:
            record["programs"] = programs_made()
    if arguments.profile:
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(70)
        record["profile"] = [line for line in text.getvalue().splitlines() if line.strip()]
    return {**record, **machine()}


def start_device(case: str, arguments: argparse.Namespace, listened: list[float]) -> Any:
    """Import JAX, start the device, and listen to all that is compiled; gives the engine."""
    import jax

    from nngp.gram.device import arrays as programs
    from nngp.linsolve.engines import gpu

    device = jax.devices()[0] if arguments.engine == "jax" else jax.devices("gpu")[0]
    device.memory_stats()

    def listen(event: str, duration_secs: float, **facts: str | int) -> None:
        if event.endswith("backend_compile_duration"):
            listened.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(listen)
    if case == "autotuned":
        programs.OPTIONS.clear()
    tile = 512 if arguments.quick else None
    return "gpu" if arguments.engine == "gpu" else gpu.GpuEngine(device, tile=tile)


def programs_made() -> list[str]:
    module = sys.modules.get("nngp.gram.device.arrays")
    return [] if module is None else list(module.made)


def machine() -> dict[str, Any]:
    import nngp

    out = {"cores": os.cpu_count(), "numpy": np.__version__, "nngp": nngp.__version__}
    out["python"] = platform.python_version()
    if "jax" in sys.modules:
        import jax

        out |= {"jax": jax.__version__, "device": jax.devices()[0].device_kind}
    return out


def run_child(case: str, folder: Path, arguments: argparse.Namespace, **more: Any) -> Any:
    """The record of one process, or the end of what it said if it failed."""
    limit = min(LIMIT, arguments.until - time.monotonic())
    if limit <= 0:
        return {"error": "not run: there was no time left"}
    words = [sys.executable, __file__, "--child", case, "--data", str(arguments.data)]
    words += ["--engine", arguments.engine, "--calls", str(more.get("calls", 2))]
    words += ["--quick"] * arguments.quick + ["--profile", case] * more.get("profile", False)
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(folder)}
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    if case == "growing":
        environment["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    start = time.perf_counter()
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"more than {limit:.0f} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-30:]}
    record = json.loads(done.stdout.strip().splitlines()[-1])
    return {**record, "process": round(time.perf_counter() - start, 2)}


def show(case: str, state: str, record: dict[str, Any]) -> None:
    """A line for the first call, and one for the second."""
    if "error" in record:
        print(f"{case:12s} {state:7s} {record['error']}", flush=True)
        return
    for number, call in enumerate(record["calls"]):
        start = record["start"] if number == 0 else 0.0
        total = start + call["condition"] + call["predict"]
        print(
            f"{case:12s} {state if number == 0 else 'warm':7s} {call['engine']:4s} "
            f"{start:6.2f} {call['condition']:8.2f} {call['predict']:8.2f} {total:8.2f}   "
            f"{call['compiled']:3d} in {call['compile_seconds']:6.2f} s  "
            f"{call['accuracy']:.4f}",
            flush=True,
        )


def command() -> str:
    """How this was called, without the folders of this machine."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    return " ".join(["python", "benchmarks/first_call.py", *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--engine", choices=("gpu", "jax", "cpu"), default="gpu")
    parser.add_argument("--cases", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--profile", choices=CASES, nargs="+", default=[])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=470.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--calls", type=int, default=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(child(arguments)))
        return
    arguments.until = time.monotonic() + arguments.seconds
    print("case         state   on    start condition  predict    total   compiled")
    record: dict[str, Any] = {"command": command(), "cases": {}}
    for case in arguments.cases:
        with tempfile.TemporaryDirectory() as folder:
            # A second fit of all of MNIST says nothing new.
            calls = 1 if case == "classifier" else 2
            found = {"empty": run_child(case, Path(folder), arguments, calls=1)}
            show(case, "empty", found["empty"])
            found["filled"] = run_child(case, Path(folder), arguments, calls=calls)
            show(case, "filled", found["filled"])
            if case in arguments.profile:
                found["profiled"] = run_child(case, Path(folder), arguments, profile=True)
        record["cases"][case] = found
        if arguments.out:  # what is known so far, should a later case not end
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
