"""A sweep's networks one after the other, in tiles: any engine, any size, any norms."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import Inputs, cosine_blocks, kernel_blocks
from nngp.linsolve import Engine
from nngp.linsolve.tiling import cut, even_size, spans
from nngp.posterior.noise import Noise
from nngp.posterior.sweep_result import Points, SweepResult, scores
from nngp.posterior.system import System, check_curve, check_shifted, means, solve

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _Asked:
    """Points where scores are taken: their rows in blocks, with cosines and answers by block."""

    inputs: Inputs
    rows: list[slice]
    cosines: dict[Any, Any]
    answers: list[Any]


class TiledSweep:
    """The cosines in blocks, and buffers that every network uses again."""

    def __init__(
        self,
        engine: Engine,
        inputs: Inputs,
        Y: Array,
        asked: Sequence[Points],
        noise: tuple[float, bool],
    ) -> None:
        self._engine, self._inputs, self._targets, self._noise = engine, inputs, Y, noise
        self._points = asked
        self._edges = cut(len(inputs), engine.tile_size(len(inputs)))
        columns = spans(self._edges)
        lower = [(r, c) for i, r in enumerate(columns) for c in columns[: i + 1]]
        self._own = self._cosines(inputs, lower)
        self._asked = [self._prepared(*points) for points in asked]
        self._arena, self._lock = engine.arena(), threading.Lock()

    def run(
        self, architectures: Iterable[Architecture], table: LookupTable | None = None
    ) -> Iterator[SweepResult]:
        """The results, as they come."""
        return (self._score(architecture, table) for architecture in architectures)

    def _prepared(self, inputs: Inputs, targets: Array) -> _Asked:
        n, m = len(self._inputs), len(inputs)
        rows = spans(cut(m, even_size(m, self._engine.rows_at_a_time(n))))
        cosines = self._cosines(inputs, [(r, c) for r in rows for c in spans(self._edges)])
        with self._engine.run() as run:
            answers = [run.put(targets[part]) for part in rows]
        return _Asked(inputs, rows, cosines, answers)

    def _cosines(self, left: Inputs, where: list[tuple[slice, slice]]) -> dict[Any, Any]:
        source = cosine_blocks(self._engine.where, left, self._inputs)
        with self._engine.run() as run:
            handles = [run.apply(source.block, *rows_columns) for rows_columns in where]
            return {
                (rows.start, columns.start): run.wait(handle)
                for (rows, columns), handle in zip(where, handles, strict=True)
            }

    def _score(self, architecture: Architecture, table: LookupTable | None) -> SweepResult:
        start = time.perf_counter()
        try:
            with self._lock:  # the arena holds one factor at a time
                found = self._fit(architecture, table)
        except NotPositiveDefiniteError as error:
            found = {"noise_var": error.noise_var, "failed_attempts": error.failed_attempts}
            found["error"] = str(error)
        except (ActivationError, VarianceError) as error:
            found = {"error": str(error)}
        return SweepResult(architecture, seconds=time.perf_counter() - start, **found)

    def _fit(self, architecture: Architecture, table: LookupTable | None) -> dict[str, Any]:
        engine = self._engine
        with engine.run():
            own = kernel_blocks(
                engine.where, architecture, self._inputs, stored=self._own, table=table
            )
        if table is None:
            check_curve(architecture, own.plan.input_var)
        noise = Noise.of(*self._noise, architecture, self._inputs)
        system = solve(engine, own, self._edges, self._targets, noise, arena=self._arena)
        found = [self._judge(architecture, system, asked, table) for asked in self._asked]
        return {
            "log_evidence": system.log_evidence,
            "noise_var": system.noise.variance,
            "failed_attempts": system.failed_attempts,
            **scores(self._points, *zip(*found, strict=True)),
        }

    def _judge(
        self,
        architecture: Architecture,
        system: System,
        asked: _Asked,
        table: LookupTable | None,
    ) -> tuple[float, float]:
        """The sum of squared errors, and how many classes are right."""
        with self._engine.run() as run:
            cross = kernel_blocks(
                self._engine.where,
                architecture,
                asked.inputs,
                self._inputs,
                split=system.split,
                stored=asked.cosines,
                table=table,
            )
            check_shifted(cross, system, self._targets, architecture.depth)
            predicted = means(run, cross, system, asked.rows)
            pairs = list(zip(predicted, asked.answers, strict=True))
            wrong = [run.apply(_squared_error, *pair) for pair in pairs]
            right = [run.apply(_agreement, *pair) for pair in pairs]
            sums = [sum(float(run.fetch(part)) for part in parts) for parts in (wrong, right)]
        return sums[0], sums[1]


def _squared_error(mean: Any, target: Any) -> Any:
    return ((mean - target) ** 2).sum()


def _agreement(mean: Any, target: Any) -> Any:
    return (mean.argmax(axis=1) == target.argmax(axis=1)).sum()
