"""The choice of an engine by name."""

import os
import sys
from importlib.util import find_spec

from nngp.linsolve.engines.cpu import CpuEngine
from nngp.linsolve.engines.engine import Engine

GPU_FROM = 1500  # points from which engine="auto" looks for a GPU


def choose_engine(engine: str | Engine, n: int) -> Engine:
    """The engine of that name; "auto" takes a GPU if there is one and n is worth it."""
    if isinstance(engine, Engine):
        return engine
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
    if engine == "gpu":
        return _gpu()
    if engine == "auto" and n >= GPU_FROM and _gpu_in_sight():
        try:
            return _gpu()
        except (ImportError, RuntimeError):
            pass
    return CpuEngine()


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
