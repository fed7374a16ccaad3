"""Environments, measurements and snippets: everything that starts another process."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peers_plan import LABELS, LIBRARIES, LIMIT, Measurement, Sizes, forecast

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".peers"
SNIPPETS = {  # file -> library in whose environment it runs
    "neural_tangents_kernels": "neural-tangents",
    "neural_tangents_posterior": "neural-tangents",
    "neural_tangents_layers": "neural-tangents",
    "neural_tangents_examples": "neural-tangents",
    "botorch_kernel": "gpytorch",
    "gpytorch_posterior": "gpytorch",
}
PROGRAMS = ("neural_tangents_training",)  # run with arguments, by `benchmarks/training_peers.py`


def python_of(library: str) -> Path:
    return ENVIRONMENTS / library / "bin" / "python"


def prepare(libraries: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Create the environments that are missing or out of date; the reasons of those that fail."""
    failed = {}
    for library in libraries:
        reason = install(library)
        if reason:
            failed[library] = reason
            print(f"{library} is skipped: it could not be installed ({reason}).", flush=True)
    return failed


def install(library: str) -> str | None:
    """Install what the requirement file pins, unless that was done; the reason if it fails."""
    wanted = HERE / "requirements" / f"{library}.txt"
    folder = ENVIRONMENTS / library
    stamp, digest = folder / ".installed", hashlib.sha256(wanted.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return None
    print(f"installing {library} into {folder.relative_to(ROOT)}", flush=True)
    pip = [str(python_of(library)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    commands = [[sys.executable, "-m", "venv", str(folder)], [*pip, "-r", str(wanted)]]
    for command in commands:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            return (lines or done.stderr.splitlines() or ["no message"])[0]
    stamp.write_text(digest)
    return None


def pinned(library: str) -> list[str]:
    lines = (HERE / "requirements" / f"{library}.txt").read_text().splitlines()
    return [line for line in lines if "==" in line]


def measure(measurement: Measurement, inputs: Path) -> dict[str, Any]:
    """One measurement in a fresh process of the library's environment."""
    worker = HERE / "workers" / f"worker_{measurement.library.replace('-', '_')}.py"
    command = [str(python_of(measurement.library)), str(worker)]
    return call(command, {**measurement.task, "inputs": str(inputs)}, LIMIT)


def call(command: list[str], task: dict[str, Any], limit: float) -> dict[str, Any]:
    """Give a worker its task; its result, or what went wrong, as one of `failed`."""
    try:
        done = subprocess.run(
            command, input=json.dumps(task), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {limit:g} s"}
    if done.returncode == -9:
        return {"failed": "killed, which is what happens when memory gives out"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1][:300]}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


class Record:
    """Results in a JSON file, written after every measurement."""

    def __init__(self, path: Path, fresh: bool = False) -> None:
        self.path = path
        self.content: dict[str, Any] = {"results": []}
        if path.exists() and not fresh:
            self.content = json.loads(path.read_text())

    def known(self) -> set[str]:
        return {f"{r['library']} {json.dumps(r['task'], sort_keys=True)}" for r in self.results}

    @property
    def results(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.content["results"]
        return found

    def add(self, measurement: Measurement, result: dict[str, Any]) -> None:
        entry = {"library": measurement.library, "task": measurement.task, **result}
        self.content["results"].append(entry)
        self.save()

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        head = {k: v for k, v in self.content.items() if k != "results"}
        lines = ",\n".join("  " + json.dumps(r) for r in self.results)  # one line a result
        text = json.dumps({**head, "results": []}, indent=1)[: -len("[]\n}")]
        part = self.path.with_suffix(".part")
        part.write_text(f"{text}[\n{lines}\n ]\n}}\n")
        part.replace(self.path)


def run(
    todo: list[Measurement],
    record: Record,
    sizes: Sizes,
    do: Callable[[Measurement], dict[str, Any]],
    skipped: dict[str, str],
) -> None:
    """Make the measurements that the record lacks."""
    known = record.known()
    todo = [m for m in todo if m.key not in known and m.library not in skipped]
    ahead = [forecast(m, sizes) for m in todo]
    record.content = {**about(skipped), **record.content}
    print(f"{len(todo)} measurements, about {sum(ahead) / 60:.0f} minutes", flush=True)
    start = time.perf_counter()
    for i, measurement in enumerate(todo):
        began = time.perf_counter()
        result = do(measurement)
        result["wall"] = round(time.perf_counter() - began, 2)
        record.add(measurement, result)
        left = sum(ahead[i + 1 :]) * pace(time.perf_counter() - start, sum(ahead[: i + 1]))
        said = summary(result)
        print(f"[{i + 1}/{len(todo)}, {left / 60:.1f} min left] {measurement}: {said}", flush=True)
    print(f"done in {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)


def pace(spent: float, expected: float) -> float:
    """How much slower than forecast it went so far, not judged by a few seconds."""
    return (spent + 30) / (expected + 30)


def summary(result: dict[str, Any]) -> str:
    """One line on a result."""
    for name in ("failed", "cannot"):
        if name in result:
            return f"{name}: {result[name]}"
    if "steady" in result:
        size = result["peak_bytes"] / 2**20
        return f"first {result['first']:.3g} s, then {result['steady']:.3g} s, {size:.0f} MiB"
    words = [f"{k} {result[k]:.3g}" for k in ("accuracy", "error") if result.get(k) is not None]
    return ", ".join([result.get("outcome", "done"), *words])


def about(skipped: dict[str, str]) -> dict[str, Any]:
    """The machine, the command and the date."""
    return {
        "command": "make bench-peers",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "skipped": skipped,
    }


def machine() -> dict[str, Any]:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(pages / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"


def run_snippets(skipped: dict[str, str]) -> dict[str, Any]:
    """Run the snippets of the documentation; the numbers that each prints, by name."""
    numbers = {}
    for name, library in SNIPPETS.items():
        if library in skipped:
            continue
        command = [str(python_of(library)), str(HERE / "snippets" / f"{name}.py")]
        quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=quiet)
        if done.returncode != 0:
            raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
        numbers[name] = {
            "library": LABELS[library],
            "versions": pinned(library),
            "printed": read_numbers(done.stdout),
        }
        print(f"{name}: {len(numbers[name]['printed'])} lines of numbers", flush=True)
    return numbers


def read_numbers(printed: str) -> dict[str, list[float]]:
    """Lines such as `relu [0.1, 0.2]` as a dictionary."""
    lines = (line.partition(" [") for line in printed.splitlines() if " [" in line)
    return {name: json.loads("[" + rest) for name, _, rest in lines}
