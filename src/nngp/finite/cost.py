"""What a search will take, before it is begun."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

import jax

from nngp.datasets import Split
from nngp.finite.cells import Cell
from nngp.finite.device import lanes_that_fit
from nngp.finite.lanes import Shape
from nngp.finite.network import FiniteNetwork
from nngp.finite.recipe import BATCH_SIZES, Plan
from nngp.finite.training import shape_of
from nngp.linsolve import CpuEngine

GPU = 5e13, 2e12  # operations and bytes a second, of a large one
CPU_BYTES = 1e10
TRAFFIC = 40  # bytes that a step of Adam moves for each weight
COMPILE = 4.0  # seconds for each program, and on a CPU every batch size has its own


@dataclass(frozen=True)
class Cost:
    """Bytes on the device, and about how many seconds if no training ends early."""

    lanes: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        long = f"{self.seconds / 60:.0f} min" if self.seconds > 90 else f"{self.seconds:.0f} s"
        return f"{self.lanes} at a time, {self.bytes / 1e6:.0f} MB, about {long} if none ends early"


def search_cost(
    cells: Sequence[Cell], data: Split, plan: Plan, trials: int, lanes: int | None = None
) -> Cost:
    """Memory of the largest shape, and the time of all of them."""
    room = max(BATCH_SIZES)
    shapes = [
        shape_of(FiniteNetwork(cell.architecture, cell.width, data.n_classes), data, plan, room)
        for cell in cells
    ]
    largest = max(shapes, key=Shape.lane_bytes)
    side_by_side = min(lanes or lanes_that_fit(largest), trials)
    points = len(data.X) + len(data.X_val) + len(data.X_test)
    held = side_by_side * largest.lane_bytes() + 4 * points * data.X.shape[1]
    looked_at = len(data.X if plan.monitor == "train" else data.X_val)
    seconds = sum(_training(shape, plan, looked_at) for shape in shapes) * trials
    programs = len(BATCH_SIZES) if side_by_side == 1 else 2
    return Cost(side_by_side, held, seconds + len(shapes) * programs * COMPILE)


def _training(shape: Shape, plan: Plan, looked_at: int) -> float:
    """Seconds of one network: products of steps and looks, and what Adam reads and writes."""
    on_cpu = jax.devices()[0].platform == "cpu"
    rate, moved = (2 * CpuEngine().rate(), CPU_BYTES) if on_cpu else GPU
    batch = mean(BATCH_SIZES) if on_cpu else shape.batch
    step = 6 * batch / rate + TRAFFIC / moved
    look = 2 * looked_at / rate
    return shape.weights * (plan.steps * step + plan.steps / plan.interval * look)
