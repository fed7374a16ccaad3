"""The engine that the library would take, and its device."""

from functools import lru_cache

from nngp import forecast


@lru_cache(maxsize=1024)
def engine_name(engine: str, points: int = 0) -> str:
    """The engine for so many training points: "cpu" or "gpu". Raises ValueError for an unknown
    name, ImportError or RuntimeError where there is no such engine."""
    return forecast(max(points, 1), 1, engine=engine).engine


def device_name(engine: str, points: int) -> str:
    """The device of that engine: "cpu", or the kind of GPU."""
    name = engine_name(engine, points)
    if name == "cpu":
        return name
    import jax  # which that engine needs

    return str(jax.devices(name)[0].device_kind)
