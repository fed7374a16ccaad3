"""The choice of an engine by name.

A GPU computes faster and starts later: in a fresh process JAX is imported, the device started, and
programs are compiled, which takes some seconds. So "auto" takes one from `GPU_FROM` points on.
"""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec

from nngp.linsolve.engines.cpu import CpuEngine
from nngp.linsolve.engines.engine import Engine

GPU_FROM = 4000  # points: with fewer, a CPU is done about when a GPU has started


@dataclass(frozen=True)
class EngineChoice:
    """An engine, and why it was taken."""

    engine: Engine
    reason: str


def choose_engine(engine: str | Engine, n: int) -> Engine:
    """The engine of that name; "auto" takes a GPU if there is one and n is worth it."""
    return pick_engine(engine, n).engine


def pick_engine(engine: str | Engine, n: int) -> EngineChoice:
    """The same with a reason."""
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
        return _pick(n)
    return EngineChoice(_gpu() if engine == "gpu" else CpuEngine(), "as asked for")


def _pick(n: int) -> EngineChoice:
    if n < GPU_FROM:
        reason = f"fewer than {GPU_FROM:,} points are not worth a GPU"
    elif not _gpu_in_sight():
        reason = "no GPU that JAX could use is in sight"
    else:
        try:
            return EngineChoice(_gpu(), f"there is a GPU, and {GPU_FROM:,} points are worth it")
        except (ImportError, RuntimeError):
            reason = "JAX sees no GPU"
    return EngineChoice(CpuEngine(), reason)


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
    nodes = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    return "jax" in sys.modules or any(os.path.exists(node) for node in nodes)
