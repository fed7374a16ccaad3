"""Training on this machine's device: its name, how many networks fit, and their memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import jax
from joblib import cpu_count

from nngp import FiniteNetwork
from nngp_paper.datasets import Split
from nngp_paper.finite.cells import Cell
from nngp_paper.finite.lanes import ProgramShape, program_shape
from nngp_paper.finite.recipe import BATCH_SIZES, Plan

MOST_LANES = 64
FILLINGS = 4  # how often a lane is filled
ENOUGH = 10**8  # weights of all lanes that keep a GPU busy
MOST_AHEAD = 8  # programs
SHARE = 0.7  # of the device's memory that lanes may take


def device_name() -> str:
    """The name of the device that networks are trained on."""
    return str(jax.devices()[0].device_kind)


def most_lanes() -> int:
    """The largest number of lanes: one on a CPU, whose cores a single network keeps busy."""
    return 1 if _is_cpu() else MOST_LANES


def compiled_ahead() -> int:
    """How many programs to compile while one runs: none on a CPU, whose cores are busy."""
    return 0 if _is_cpu() else min(MOST_AHEAD, int(cpu_count()))


def lanes_that_fit(shape: ProgramShape) -> int:
    """The number of lanes that the device's memory holds, at least one."""
    limit = (jax.devices()[0].memory_stats() or {}).get("bytes_limit", 8e9)
    return int(min(most_lanes(), max(1, SHARE * limit // shape.lane_bytes())))


def lanes_for(shape: ProgramShape, networks: int) -> int:
    """The number of lanes for so many networks. Large networks fill lanes several times, as lanes
    that stand empty while the last networks end are computed as well. Small ones have more lanes:
    a step takes a GPU as long for few of them as for many."""
    wanted = max(ENOUGH // shape.weights, -(-networks // FILLINGS))
    return max(1, min(lanes_that_fit(shape), networks, wanted))


@contextmanager
def explained_memory_error(lanes: int) -> Iterator[None]:
    """Turn JAX's error for a full device into a MemoryError that names the remedy."""
    try:
        yield
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        raise MemoryError(
            f"{lanes} networks side by side do not fit in the device's memory; set lanes to fewer"
        ) from None


@dataclass(frozen=True)
class SearchMemory:
    """Networks that are trained side by side, and their bytes on the device."""

    lanes: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.lanes} at a time, {self.bytes / 1e6:.0f} MB"


def search_memory(
    cells: Sequence[Cell], data: Split, plan: Plan, trials: int, lanes: int | None = None
) -> SearchMemory:
    """Estimate the memory of a search, that of its largest shape."""
    networks = [FiniteNetwork(cell.architecture, cell.width, data.n_classes) for cell in cells]
    shapes = [program_shape(network, data, plan, max(BATCH_SIZES)) for network in networks]
    largest = max(shapes, key=ProgramShape.lane_bytes)
    side_by_side = min(lanes or lanes_for(largest, trials), trials)
    points = len(data.X) + len(data.X_val) + len(data.X_test)
    held = side_by_side * largest.lane_bytes() + 4 * points * data.X.shape[1]
    return SearchMemory(side_by_side, held)


def _is_cpu() -> bool:
    return bool(jax.devices()[0].platform == "cpu")
