"""Many networks over one data set: the inner products are computed once.

Then a network costs one look-up and one factorisation, in buffers that are used again. This is
what the paper's grids over depth, weight and bias variance are made of (sec. 3, appendix D).
"""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from nngp.architecture import ActivationError, Architecture
from nngp.curve import VarianceError
from nngp.gram import Inputs, check_architecture, cosine_blocks, kernel_blocks
from nngp.linsolve import Engine, NotPositiveDefiniteError
from nngp.linsolve.cholesky import cut, even_size, spans
from nngp.posterior.noise import Noise
from nngp.posterior.system import check_shifted, means, solve
from nngp.posterior.targets import as_noise, as_targets
from nngp.posterior.workplace import find_engine


@dataclass(frozen=True)
class SweepResult:
    """One network's scores on the validation set; NaN, with `error`, where there are none.

    `accuracy` compares the largest output with the largest target, and is NaN for one output.
    """

    architecture: Architecture
    accuracy: float
    mse: float
    log_evidence: float
    noise_var: float
    failed_attempts: int
    seconds: float
    error: str = ""


class Sweep:
    """Validation scores of many networks on one data set.

    Parameters
    ----------
    X, Y : array_like, (n, d) and (n,) or (n, outputs)
    X_val, Y_val : array_like
        Where the scores are taken.
    noise_var, relative_noise
        As in `nngp.condition`: the start of the ladder.
    engine, memory
        As in `nngp.condition`.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> sweep = nngp.Sweep(X[::2], np.sin(X[::2, 0]), X[1::2], np.sin(X[1::2, 0]))
    >>> nets = [nngp.Architecture(depth, "erf") for depth in (1, 2, 3)]
    >>> all(result.mse < 1e-3 for result in sweep.run(nets))
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        X_val: ArrayLike,
        Y_val: ArrayLike,
        *,
        noise_var: float = 1e-10,
        relative_noise: bool = False,
        engine: str | Engine = "auto",
        memory: int | None = None,
    ) -> None:
        self._inputs, self._val = Inputs.kept(X), Inputs.kept(X_val, "X_val")
        if self._inputs.X.shape[1] != self._val.X.shape[1]:
            raise ValueError(
                f"X has {self._inputs.X.shape[1]} features and X_val {self._val.X.shape[1]}"
            )
        self._targets, _ = as_targets(Y, len(self._inputs))
        self._val_targets, _ = as_targets(Y_val, len(self._val), "Y_val")
        if self._targets.shape[1] != self._val_targets.shape[1]:
            raise ValueError("Y and Y_val must have the same number of outputs")
        self._noise = as_noise(noise_var), relative_noise
        n, m = len(self._inputs), len(self._val)
        self._engine, _ = find_engine(
            engine,
            self._inputs,
            self._targets.shape[1],
            memory,
            beside=lambda n: 4 * n * (n + 2 * m),  # the cosines
        )
        self._edges = cut(n, self._engine.tile_size(n))
        self._rows = spans(cut(m, even_size(m, self._engine.rows_at_a_time(n))))
        columns = spans(self._edges)
        lower = [(r, c) for i, r in enumerate(columns) for c in columns[: i + 1]]
        self._own = self._cosines(self._inputs, lower)
        self._cross = self._cosines(self._val, [(r, c) for r in self._rows for c in columns])
        with self._engine.run() as run:
            self._answers = [run.put(self._val_targets[rows]) for rows in self._rows]
        self._arena, self._lock = self._engine.arena(), threading.Lock()

    def _cosines(self, left: Inputs, where: list[tuple[slice, slice]]) -> dict[Any, Any]:
        source = cosine_blocks(self._engine.where, left, self._inputs)
        with self._engine.run() as run:
            handles = [run.apply(source.block, *rows_columns) for rows_columns in where]
            return {
                (rows.start, columns.start): run.wait(handle)
                for (rows, columns), handle in zip(where, handles, strict=True)
            }

    def run(self, architectures: Iterable[Architecture]) -> Iterator[SweepResult]:
        """The results, one network after the other, as they come."""
        if isinstance(architectures, Architecture):
            raise TypeError("run takes many networks; pass [architecture] for one")
        self._inputs.check_unchanged()
        for architecture in architectures:
            check_architecture(architecture)
            yield self._score(architecture)

    def _score(self, architecture: Architecture) -> SweepResult:
        start, nothing = time.perf_counter(), float("nan")
        try:
            with self._lock:  # the arena holds one factor at a time
                scores = self._fit(architecture)
        except NotPositiveDefiniteError as error:
            scores = (nothing, nothing, nothing, error.noise_var, error.failed_attempts)
            return SweepResult(architecture, *scores, _since(start), str(error))
        except (ActivationError, VarianceError) as error:
            scores = (nothing, nothing, nothing, nothing, 0)
            return SweepResult(architecture, *scores, _since(start), str(error))
        return SweepResult(architecture, *scores, _since(start))

    def _fit(self, architecture: Architecture) -> tuple[float, float, float, float, int]:
        engine = self._engine
        with engine.run():
            own = kernel_blocks(engine.where, architecture, self._inputs, stored=self._own)
            cross = kernel_blocks(
                engine.where,
                architecture,
                self._val,
                self._inputs,
                split=own.split,
                stored=self._cross,
            )
        noise = Noise.of(*self._noise, architecture, self._inputs)
        system = solve(engine, own, self._edges, self._targets, noise, arena=self._arena)
        check_shifted(cross, system, self._targets, architecture.depth)
        with engine.run() as run:
            predicted = means(run, cross, system, self._rows)
            pairs = list(zip(predicted, self._answers, strict=True))
            wrong = sum(float(run.fetch(run.apply(_squared_error, *pair))) for pair in pairs)
            right = sum(int(run.fetch(run.apply(_agreement, *pair))) for pair in pairs)
        m, outputs = self._val_targets.shape
        accuracy = right / m if outputs > 1 else float("nan")
        scores = accuracy, wrong / (m * outputs), system.log_evidence
        return *scores, system.noise.variance, system.failed_attempts


def _squared_error(mean: Any, target: Any) -> Any:
    return ((mean - target) ** 2).sum()


def _agreement(mean: Any, target: Any) -> Any:
    return (mean.argmax(axis=1) == target.argmax(axis=1)).sum()


def _since(start: float) -> float:
    return time.perf_counter() - start
