"""What all workers share: a task as JSON on standard input, a result as JSON on standard output.

A worker runs in the environment of its library and does one measurement, so that every measurement
has a fresh process. It imports NumPy and its library only. The last line that it prints is the
result.
"""

import json
import resource
import statistics
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Kernel = Callable[[np.ndarray], np.ndarray]
Prediction = tuple[np.ndarray, np.ndarray, dict[str, Any]]  # means, variances, facts
Predict = Callable[[np.ndarray, np.ndarray, np.ndarray], Prediction]
SHOWN = 20  # test points whose predictions are recorded, to compare the libraries


@dataclass(frozen=True)
class Net:
    """A network; `depth` counts hidden layers."""

    activation: str
    depth: int
    weight_var: float
    bias_var: float


class Library(ABC):
    """One library. What it cannot do raises NotImplementedError with the reason."""

    modules: tuple[str, ...]
    compiles = True  # where a library can either compile or not; not worth it for one small call

    def make_kernel(self, net: Net) -> Kernel:
        """A function from inputs (n, d) to the kernel matrix, compiled once where that applies."""
        raise NotImplementedError("no kernel of a network")

    @abstractmethod
    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> Predict:
        """A function from training inputs, targets and test inputs to the posterior."""

    def deficits(self, net: Net, X: np.ndarray, K: np.ndarray) -> np.ndarray:
        """K(x, x) - K(x, x') of the first row with all others, over K(x, x)."""
        return np.asarray(1 - K[0] / K[0, 0])


def memory(name: str) -> int:
    """Bytes: VmRSS, resident now; VmHWM, resident at the peak."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) * 1024
    except OSError:  # no Linux: the peak since the start
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Let the peak start from what is resident now: imports may have needed more for a moment."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def timed(call: Callable[[], Any], seconds: float) -> tuple[dict[str, Any], Any]:
    """Time the first call, then repeat it: at most five times, and for about `seconds`."""
    forget_peak()
    before = memory("VmRSS")
    times: list[float] = []
    while len(times) < 2 or (len(times) < 6 and sum(times[1:]) < seconds):
        result = None  # what the last call returned is not held while the next one runs
        start = time.perf_counter()
        result = call()
        times.append(time.perf_counter() - start)
    return {
        "first": times[0],
        "steady": statistics.median(times[1:]),
        "calls": len(times),
        "peak_bytes": memory("VmHWM") - before,
    }, result


def kernel_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    X = data["X"][: task["n"]]
    if task.get("norms") == "different":
        X = X * data["norms"][: task["n"], None]
    kernel = library.make_kernel(Net(**task["net"]))
    result, K = timed(lambda: kernel(X), task["seconds"])
    return {**result, "row": K[0, :SHOWN].tolist()}


def accuracy_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    """Entries of the kernel on points of a circle, to be compared with mpmath."""
    net, X = Net(**task["net"]), data["circle"]
    K = library.make_kernel(net)(X)
    return {"row": K[0].tolist(), "deficits": library.deficits(net, X, K).tolist()}


def inference_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    n, m, outputs = task["n"], task["test"], task["outputs"]
    X, Xs = data["X"][:n], data["X"][-m:]
    Y = data["Y"][:n, :outputs]
    predict = library.make_predict(Net(**task["net"]), task["noise_var"])
    result, (mean, variance, _) = timed(lambda: predict(X, Y, Xs), task["seconds"])
    right = mean.argmax(axis=1) == data["labels"][-m:]
    shown = {"mean": mean[:SHOWN].tolist(), "variance": variance[:SHOWN].tolist()}
    return {**result, **shown, "accuracy": float(right.mean()) if outputs == 10 else None}


def depth_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    """Test accuracy of a deep network."""
    n, m = task["n"], task["test"]
    predict = library.make_predict(
        Net(**task["net"]), task["noise_var"], task.get("relative", False)
    )
    found = outcome(lambda: predict(data["X"][:n], data["Y"][:n], data["X"][-m:]))
    mean = found.pop("mean")
    if mean is not None:
        found["accuracy"] = float((mean.argmax(axis=1) == data["labels"][-m:]).mean())
    return found


def duplicates_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    """Rows that occur twice; the right answer is that without the copies."""
    n, copies, net = task["n"], task["copies"], Net(**task["net"])
    X, Y, Xs = data["X"][:n], data["Y"][:n], data["X"][-200:]
    right, _, _ = library.make_predict(net, 1e-10)(X, Y, Xs)
    X2, Y2 = np.concatenate([X, X[:copies]]), np.concatenate([Y, Y[:copies]])
    found = outcome(lambda: library.make_predict(net, task["noise_var"])(X2, Y2, Xs))
    return compared(found, right)


def singular_task(library: Library, task: dict[str, Any], data: Any) -> dict[str, Any]:
    """A linear model with more rows than inputs, without noise: K has rank d + 1."""
    X, Xs, slopes = data["few"], data["few_test"], data["slopes"]
    predict = library.make_predict(Net(**task["net"]), task["noise_var"])
    return compared(outcome(lambda: predict(X, X @ slopes, Xs)), Xs @ slopes)


def outcome(call: Callable[[], Prediction]) -> dict[str, Any]:
    """What a user sees: an error, NaN or numbers; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mean, variance, facts = call()
        except Exception as error:
            first = str(error).strip().split("\n")[0]
            found = {"outcome": "error", "message": f"{type(error).__name__}: {first}"[:300]}
            return {**found, "mean": None, "warnings": said(caught)}
    finite = bool(np.isfinite(mean).all() and np.isfinite(variance).all())
    return {
        "outcome": "numbers" if finite else "NaN",
        "mean": mean,
        "negative_variances": int((variance < 0).sum()),
        "warnings": said(caught),
        **facts,
    }


def said(caught: list[warnings.WarningMessage]) -> list[str]:
    lines = (f"{w.category.__name__}: {str(w.message).strip().splitlines()[0]}" for w in caught)
    mere = ("DeprecationWarning", "FutureWarning", "PendingDeprecationWarning", "ResourceWarning")
    return sorted({line[:300] for line in lines if not line.startswith(mere)})


def compared(found: dict[str, Any], right: np.ndarray) -> dict[str, Any]:
    mean = found.pop("mean")
    if mean is not None and found["outcome"] == "numbers":
        found["error"] = float(np.abs(mean - right).max() / np.abs(right).max())
    return found


TASKS = {
    "kernel": kernel_task,
    "accuracy": accuracy_task,
    "inference": inference_task,
    "depth": depth_task,
    "duplicates": duplicates_task,
    "singular": singular_task,
}


def main(load: Callable[[], Library]) -> None:
    """Import the library, do the task from standard input, print the result as one line."""
    task = json.load(sys.stdin)
    data = dict(np.load(task["inputs"]))
    start = time.perf_counter()
    library = load()
    result: dict[str, Any] = {"import": time.perf_counter() - start}
    library.compiles = task["what"] in ("kernel", "inference")
    try:
        result |= TASKS[task["what"]](library, task, data)
    except NotImplementedError as reason:
        result["cannot"] = str(reason)
    result["versions"] = {
        name: str(getattr(sys.modules[name], "__version__", "?")) for name in library.modules
    }
    print(json.dumps(result))
