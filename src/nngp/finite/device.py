"""Where networks are trained, and how many fit there side by side."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

from nngp.finite.lanes import Shape

MOST_LANES = 64
SHARE = 0.7  # of the device's memory that lanes may take


def most_lanes() -> int:
    """One on a CPU, whose cores a single network keeps busy."""
    return 1 if jax.devices()[0].platform == "cpu" else MOST_LANES


def lanes_that_fit(shape: Shape) -> int:
    """As many as the device's memory holds, at least one."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 8e9)
    return int(min(most_lanes(), max(1, SHARE * limit // shape.lane_bytes())))


def device_name() -> str:
    """What the networks are trained on."""
    return str(jax.devices()[0].device_kind)


@contextmanager
def memory_sentence(lanes: int) -> Iterator[None]:
    """Say what to do when a device has no more memory."""
    try:
        yield
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(
            f"{lanes} networks side by side do not fit in the device's memory; set lanes to fewer"
        ) from None
