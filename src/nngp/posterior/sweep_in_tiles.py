"""A sweep's networks one after the other, in tiles: any engine, any size, any norms."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nngp.architecture import Network
from nngp.covariance import LookupTable
from nngp.gram import Inputs, Tile
from nngp.gram.kernel_matrix import StoredBlocks
from nngp.linsolve.tiling import cut, even_size, spans
from nngp.posterior.by_cholesky import CholeskySolution, solve_by_cholesky
from nngp.posterior.solution import check_shifted, means
from nngp.posterior.sweep_scores import (
    LabelledInputs,
    SweepData,
    SweepMethod,
    SweepResult,
    check_curve,
    failure_fields,
    score_fields,
)


@dataclass(frozen=True)
class _ScoredSet:
    """Points where scores are taken: their rows in blocks, with targets by block."""

    inputs: Inputs
    rows: list[slice]
    targets: list[Tile]


class TiledSweep(SweepMethod):
    """The cosines in blocks, and buffers that every network uses again."""

    def __init__(self, data: SweepData) -> None:
        self._data, self._engine = data, data.engine
        self._inputs = data.train.inputs
        self._edges = cut(len(self._inputs), self._engine.tile_size(len(self._inputs)))
        self._scored = [self._prepared(points) for points in data.scored]
        self._memory, self._lock = self._engine.factor_memory(), threading.Lock()

    def run(
        self, architectures: Iterable[Network], table: LookupTable | None = None
    ) -> Iterator[SweepResult]:
        return (self._score(architecture, table) for architecture in architectures)

    def _prepared(self, points: LabelledInputs) -> _ScoredSet:
        n, m = len(self._inputs), len(points.inputs)
        rows = spans(cut(m, even_size(m, self._engine.rows_at_a_time(n))))
        with self._engine.run() as run:
            targets = [run.put(points.targets[part]) for part in rows]
        return _ScoredSet(points.inputs, rows, targets)

    @cached_property
    def _own(self) -> StoredBlocks:
        """Cosines of the training points, for all networks that are no average."""
        columns = spans(self._edges)
        lower = [(r, c) for i, r in enumerate(columns) for c in columns[: i + 1]]
        return self._cosines(self._inputs, lower)

    @cached_property
    def _cross(self) -> list[StoredBlocks]:
        """Cosines of the points of each set that is scored with the training points."""
        columns = spans(self._edges)
        return [
            self._cosines(points.inputs, [(r, c) for r in points.rows for c in columns])
            for points in self._scored
        ]

    def _cosines(self, left: Inputs, where: list[tuple[slice, slice]]) -> StoredBlocks:
        source = self._engine.kernels.cosines(left, self._inputs)
        with self._engine.run() as run:
            handles = [run.apply(source.block, *rows_columns) for rows_columns in where]
            return {
                (rows.start, columns.start): run.wait(handle)
                for (rows, columns), handle in zip(where, handles, strict=True)
            }

    def _score(self, architecture: Network, table: LookupTable | None) -> SweepResult:
        start = time.perf_counter()
        try:
            with self._lock:  # the memory holds one factor at a time
                found = self._fit(architecture, table)
        except Exception as error:
            found = failure_fields(error)
        return SweepResult(architecture, seconds=time.perf_counter() - start, **found)

    def _fit(self, architecture: Network, table: LookupTable | None) -> dict[str, Any]:
        engine, data = self._engine, self._data
        with engine.run():
            stored = self._own if architecture.base is architecture else None
            own = engine.kernels.matrix(architecture, self._inputs, stored=stored, table=table)
        if table is None:
            check_curve(architecture, own.plan.input_var)
        noise, Y = data.noise_of(architecture), data.train.targets
        solution = solve_by_cholesky(engine, own, self._edges, Y, noise, memory=self._memory)
        found = [self._judge(architecture, solution, k, table) for k in range(len(self._scored))]
        return {
            "log_evidence": solution.log_evidence,
            "noise_var": solution.noise.least,
            "failed_attempts": solution.failed_attempts,
            **score_fields(data.scored, *zip(*found, strict=True)),
        }

    def _judge(
        self,
        architecture: Network,
        solution: CholeskySolution,
        k: int,
        table: LookupTable | None,
    ) -> tuple[float, float]:
        """The sum of squared errors, and how many classes are right, in one of the sets."""
        points = self._scored[k]
        with self._engine.run() as run:
            cross = self._engine.kernels.matrix(
                architecture,
                points.inputs,
                self._inputs,
                split=solution.split,
                stored=self._cross[k] if architecture.base is architecture else None,
                table=table,
            )
            check_shifted(cross, solution, self._data.train.targets)
            predicted = means(run, cross, solution, points.rows)
            pairs = list(zip(predicted, points.targets, strict=True))
            errors = [run.apply(_squared_error, *pair) for pair in pairs]
            agreements = [run.apply(_agreement, *pair) for pair in pairs]
            sums = [sum(float(run.fetch(part)) for part in parts) for parts in (errors, agreements)]
        return sums[0], sums[1]


def _squared_error(mean: Tile, target: Tile) -> Tile:
    return ((mean - target) ** 2).sum()


def _agreement(mean: Tile, target: Tile) -> Tile:
    return (mean.argmax(axis=1) == target.argmax(axis=1)).sum()
