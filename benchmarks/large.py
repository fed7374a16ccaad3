"""Inference on real images at full size, on the CPU or on a GPU, with a record of every phase.

    python benchmarks/large.py --data DIR [--n 50000] [--engine cpu] [--out FILE]

DIR holds MNIST (and, for n beyond 50,000, Fashion-MNIST) in any of the forms that
nngp_paper.datasets reads. Up to 50,000 points it is the paper's experiment: the first 10,000
training images are left out for validation, the rest are trained on. Beyond, both sets together,
and then copies with pixel noise. On a GPU the first pass compiles; the second is the one to read.
"""

import argparse
import json
import os
import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import nngp
from nngp_paper import datasets

NETS = {  # the paper's best for MNIST 50k
    "relu": nngp.Architecture(1, "relu", 0.10, 0.48),
    "tanh": nngp.Architecture(1, "tanh", 1.28, 0.0),
}
TEST = 10_000


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of pixels and labels, to train on and to test on."""
    found = datasets.load(name, folder)
    assert isinstance(found, datasets.Images)
    x, x_test = (part.reshape(len(part), -1) for part in (found.train_images, found.test_images))
    return x, found.train_labels, x_test, found.test_labels


def data(folder: Path, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, centred one-hot targets, test inputs and test labels."""
    x, y, x_test, labels = load(folder, "mnist")
    x, y = x[10_000:], y[10_000:]
    if n > len(x):
        more, more_y, *_ = load(folder, "fashion_mnist")
        x, y = np.concatenate([x, more]), np.concatenate([y, more_y])
    pixels, y = x[:n].astype(np.float64), y[:n]
    if n > len(x):
        rng = np.random.default_rng(0)
        extra = n - len(x)
        copies = x[:extra] + rng.normal(0.0, 16.0, (extra, x.shape[1]))
        pixels, y = np.concatenate([pixels, copies]), np.concatenate([y, y[:extra]])
    mean = pixels.mean(axis=0)
    X, X_test = (nngp.normalize(a - mean, center=True) for a in (pixels, x_test))
    return X, np.eye(10)[y] - 0.1, X_test, labels


def once(name: str, sets: Any, engine: str, progress: Any) -> dict[str, Any]:
    X, Y, X_test, labels = sets
    start = time.perf_counter()
    posterior = nngp.condition(NETS[name], X, Y, engine=engine, progress=progress)
    conditioned = time.perf_counter()
    mean, variance = posterior.predict(X_test)
    done = time.perf_counter()
    report = posterior.report.as_dict()
    report["seconds"] = {k: round(v, 3) for k, v in report["seconds"].items()}
    return {
        "network": repr(NETS[name]),
        "test_accuracy": float(np.mean(mean.argmax(axis=1) == labels)),
        "mean_variance": float(variance.mean()),
        "seconds_condition": round(conditioned - start, 3),
        "seconds_predict_10000": round(done - conditioned, 3),
        "seconds_total": round(done - start, 3),
        "log_evidence": posterior.log_evidence,
        **{f"device_{k}": v for k, v in device_memory(engine).items()},
        "report": report,
    }


def device_memory(engine: str) -> dict[str, float]:
    if engine != "gpu":
        return {}
    import jax

    stats = jax.devices("gpu")[0].memory_stats()
    return {"peak_gib": round(stats["peak_bytes_in_use"] / 2**30, 2)}


def machine(engine: str) -> dict[str, Any]:
    out = {"cores": os.cpu_count(), "machine": platform.machine(), "numpy": np.__version__}
    if engine == "gpu":
        import jax

        out |= {"device": jax.devices("gpu")[0].device_kind, "jax": jax.__version__}
    return out


def peak_gb() -> float:
    """The most memory this process has held so far."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9, 2)


def command() -> str:
    """How this was called, without the folders of this machine."""
    words = [Path(word).name if "/" in word else word for word in sys.argv[1:]]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *words])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--network", choices=tuple(NETS), nargs="+", default=["relu"])
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    sets = data(arguments.data, arguments.n)
    before = peak_gb()
    record: dict[str, Any] = {
        "command": command(),
        "n": arguments.n,
        **machine(arguments.engine),
        "runs": [],
    }
    for name in arguments.network:
        for number in range(arguments.passes):
            run = {"pass": number + 1, **once(name, sets, arguments.engine, None)}
            record["runs"].append(run)
            print({k: v for k, v in run.items() if k != "report"}, run["report"]["seconds"])
    record |= {"host_peak_gb": peak_gb(), "host_data_gb": before}
    print({k: v for k, v in record.items() if k != "runs"})
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
