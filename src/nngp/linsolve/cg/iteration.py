"""Solving with B = M + noise by conjugate gradients: the product, the preconditioner, the checks.

`Iteration` is to CG what `Factor` is to Cholesky: made once for a matrix, used for any right-hand
sides. It knows no kernel: blocks of M come from outside, those of the landmarks too.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import KernelMatrix, Shift
from nngp.linsolve.cg.cg_plan import CG, CgPlan
from nngp.linsolve.cg.checkpoint import Checkpoint
from nngp.linsolve.cg.gradients import CGState, RowSolutions, conjugate_gradients
from nngp.linsolve.cg.nystrom import LandmarkFactor, Landmarks, Nystrom, factor_landmarks
from nngp.linsolve.cg.product import KernelProduct
from nngp.linsolve.cg.single import SingleFactor
from nngp.linsolve.engines.engine import Engine, EngineRun
from nngp.linsolve.tiling import flops

Tracker = Callable[[str, float], Progress]  # of a phase, by its work


@dataclass
class Iteration:
    """M in tiles, some of them kept, and what preconditions it."""

    engine: Engine
    options: CG
    plan: CgPlan
    product: KernelProduct
    track: Tracker
    noise: Shift = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    _preconditioner: Any = None
    _factored: LandmarkFactor | None = None

    @classmethod
    def begin(
        cls, engine: Engine, options: CG, plan: CgPlan, blocks: KernelMatrix, track: Tracker
    ) -> "Iteration":
        """Nothing is computed yet."""
        return cls(engine, options, plan, KernelProduct(blocks, plan.edges, plan.room), track)

    @property
    def bytes(self) -> int:
        return int(self.plan.held) + self.product.kept_bytes

    @property
    def is_ready(self) -> bool:
        return self._preconditioner is not None

    def prepare(self, run: EngineRun, noise: Shift, landmarks: Callable[[int], Landmarks]) -> None:
        """Keep tiles, and make a preconditioner for this noise; what can be is used again."""
        start, self.noise = time.perf_counter(), noise
        self._preconditioner = None  # there is room for one
        with self.track("preconditioner", self.plan.operations) as progress:
            self._preconditioner = self._made(run, noise, landmarks, progress)
        self._spent("preconditioner", start)
        start = time.perf_counter()
        with self.track("kernel", 1.0) as progress:
            self.product.keep(run, progress.advance)
        self._spent("kernel", start)

    def _made(
        self,
        run: EngineRun,
        noise: Shift,
        landmarks: Callable[[int], Landmarks],
        progress: Progress,
    ) -> Any:
        blocks, edges = self.product.blocks, self.plan.edges
        if self.plan.preconditioner == "single":
            tiles = self.engine.edges(blocks)
            progress.total = max(flops(tiles), 1.0)
            return SingleFactor(self.engine.single(), blocks, tiles, noise, progress)
        if self._factored is None:
            self._factored = factor_landmarks(
                run,
                landmarks(self.plan.rank),
                edges,
                blocks.diagonal,
                single=self.plan.single_rows,
            )
        progress.advance(progress.total)
        return Nystrom(run, self._factored, edges, noise, float(np.mean(blocks.diagonal)))

    def solve(
        self,
        run: EngineRun,
        right: Array,
        *,
        start: Array | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> RowSolutions:
        """Rows of B⁻¹ times the rows of `right`, to the tolerance or not at all."""
        state = None if checkpoint is None else checkpoint.read(right.shape)
        began = time.perf_counter()
        with self.track("cg", 1.0) as progress:
            try:
                found = conjugate_gradients(
                    partial(self._times, run),
                    partial(self._preconditioner, run),
                    right,
                    tolerance=self.options.tolerance,
                    max_iterations=self.options.max_iterations,
                    start=start,
                    state=state,
                    told=_Reporter(progress, checkpoint, self.options.tolerance),
                )
            except NotPositiveDefiniteError:
                if checkpoint is not None:  # there is nothing to go on with
                    checkpoint.remove()
                raise
            except BaseException:
                if checkpoint is not None:
                    with suppress(OSError):  # what went wrong first is what matters
                        checkpoint.write()
                raise
        if checkpoint is not None:
            checkpoint.remove()
        self._spent("cg", began)
        return found

    def _times(self, run: EngineRun, vectors: Array) -> Array:
        return self.product(run, vectors) + self.noise * vectors

    def _spent(self, phase: str, start: float) -> None:
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start


class _Reporter:
    """Reports the progress of an iteration, by the digits of its residual, and saves its state."""

    def __init__(self, progress: Progress, checkpoint: Checkpoint | None, tolerance: float) -> None:
        self._progress, self._checkpoint, self._tolerance = progress, checkpoint, tolerance
        self._done = 0.0

    def __call__(self, state: CGState, residual: float) -> None:
        if self._checkpoint is not None:
            self._checkpoint.note(state)
        done = float(np.clip(np.log(residual + 1e-300) / np.log(self._tolerance), 0.0, 1.0))
        self._progress.advance(max(done - self._done, 0.0), f"residual {residual:.0e}")
        self._done = max(done, self._done)
