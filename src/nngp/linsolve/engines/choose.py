"""The choice of an engine by name.

A GPU computes faster and starts later: in a fresh process JAX is imported, the device started, and
programs are compiled or read from files. So "auto" compares what the work would take here with
that first call, and takes a GPU at once where it has been used already.
"""

import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

from nngp.gram.device.program_store import store_folder
from nngp.linsolve.engines.cpu import CpuEngine
from nngp.linsolve.engines.engine import Engine

GPU_FROM = 1500  # points from which engine="auto" looks for a GPU
# Seconds of the first call on one H200 beside the work, with compiled programs kept from an earlier
# process and without (benchmarks/results/first_call.json, n50000).
KEPT, COMPILED = 3.5, 3.7
USES = 2.0  # a factor is made for predictions, which take about as long again


@dataclass(frozen=True)
class EngineChoice:
    """An engine, why it was taken, and the seconds that its first call takes beside the work."""

    engine: Engine
    reason: str
    first_call: float = 0.0


def choose_engine(engine: str | Engine, n: int) -> Engine:
    """The engine of that name; "auto" takes a GPU if there is one and n is worth it. For work that
    comes in great numbers, so that the first call does not count."""
    return pick_engine(engine, n).engine


def pick_engine(engine: str | Engine, n: int, d: int | None = None) -> EngineChoice:
    """The same with a reason; given the number of features, "auto" counts the first call."""
    if isinstance(engine, Engine):
        return EngineChoice(engine, "as asked for")
    if not isinstance(engine, str):
        raise TypeError(
            "engine must be 'auto', 'cpu', 'gpu' or an engine, such as nngp.DaskEngine(client), "
            f"got {type(engine).__name__}"
        )
    if engine not in ("auto", "cpu", "gpu"):
        raise ValueError(
            f"engine must be 'auto', 'cpu' or 'gpu', got {engine!r}; a cluster is "
            "nngp.DaskEngine(address)"
        )
    if engine == "auto":
        return _pick(n, d)
    chosen = _gpu() if engine == "gpu" else CpuEngine()
    return EngineChoice(chosen, "as asked for", first_call_seconds() if engine == "gpu" else 0.0)


def start_early(engine: str | Engine, n: int, d: int, *, solver: object = "auto") -> None:
    """Begin to start the GPU that this work will go to, in a thread, while the caller still does
    something else: a factor, unless `solver` says otherwise. What goes wrong is left to whoever
    needs the GPU."""
    if solver not in ("auto", "cholesky"):
        return
    if goes_to_gpu(engine, n, d) and first_call_seconds() > 0:
        threading.Thread(target=_start, args=(engine, n), name="nngp-start").start()


def goes_to_gpu(engine: str | Engine, n: int, d: int) -> bool:
    """Whether work on n points of d features would be sent to a GPU, which is not started to find
    out."""
    if isinstance(engine, Engine):
        return engine.name == "gpu"
    if engine != "auto":
        return engine == "gpu"
    return _has_gpu_node() and _against_gpu(n, d) is None


def _start(engine: str | Engine, n: int) -> None:
    with suppress(Exception):
        (engine if isinstance(engine, Engine) else _gpu()).start_early(n)


def _pick(n: int, d: int | None) -> EngineChoice:
    against = _against_gpu(n, d)
    if against is not None:
        return EngineChoice(CpuEngine(), against)
    try:
        first = first_call_seconds()
        return EngineChoice(_gpu(), "there is a GPU, and the work is worth it", first)
    except (ImportError, RuntimeError):
        return EngineChoice(CpuEngine(), "JAX sees no GPU")


def _against_gpu(n: int, d: int | None) -> str | None:
    """Why the CPU is the better place, or None."""
    if n < GPU_FROM:
        return f"fewer than {GPU_FROM:,} points are not worth a GPU"
    if not _gpu_in_sight():
        return "no GPU that JAX could use is in sight"
    first, here = first_call_seconds(), CpuEngine()
    if d is None or first == 0:
        return None
    work = USES * float(n) ** 3 / 3 + float(n) ** 2 * d
    seconds = work / max(here.rate(), 1.0)
    if seconds >= first:
        return None
    return (
        f"about {seconds:.1f} s on the CPU, less than the {first:.1f} s of a GPU's first call in a "
        "process"
    )


def first_call_seconds() -> float:
    """What the first call on a GPU takes beside its work; nothing once there was one."""
    programs = sys.modules.get("nngp.gram.device.programs")
    if getattr(programs, "made", None):  # another thread may be importing it
        return 0.0
    folder = store_folder()
    kept = folder is not None and any(folder.glob("*.program"))
    return KEPT if kept else COMPILED


def _gpu() -> Engine:
    try:
        from nngp.linsolve.engines.gpu import GpuEngine, gpu_device
    except ImportError:
        raise ImportError(
            "engine='gpu' needs JAX; install it with: pip install 'nngp[jax]'"
        ) from None
    device = gpu_device()
    if device is None:
        raise RuntimeError(
            "engine='gpu' needs JAX with a GPU, and JAX sees none; install the JAX build for "
            "your GPU, or use engine='cpu'"
        )
    return GpuEngine(device)


def _gpu_in_sight() -> bool:
    """Cheap signs of a GPU, so that JAX is not imported in vain."""
    if find_spec("jax") is None:
        return False
    return "jax" in sys.modules or _has_gpu_node()


def _has_gpu_node() -> bool:
    nodes = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    return any(os.path.exists(node) for node in nodes)
