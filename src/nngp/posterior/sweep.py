"""Many networks over one data set: the inner products are computed once.

Then a network costs one look-up and one factorisation, in buffers that are used again. This is
what the paper's grids over depth, weight and bias variance are made of (sec. 3, appendix D).
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.architecture import Architecture
from nngp.curve import VarianceError
from nngp.gram import Inputs, check_architecture, cosine_blocks, kernel_blocks
from nngp.linsolve import Engine, NotPositiveDefiniteError, choose_engine, forecast_factor
from nngp.linsolve.cholesky import cut, spans
from nngp.posterior.system import means, solve
from nngp.posterior.targets import as_noise, as_targets

Array = NDArray[np.float64]


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
    noise_var : float
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
        engine: str | Engine = "auto",
        memory: int | None = None,
    ) -> None:
        self._inputs, self._val = Inputs.of(X), Inputs.of(X_val, "X_val")
        if self._inputs.X.shape[1] != self._val.X.shape[1]:
            raise ValueError(
                f"X has {self._inputs.X.shape[1]} features and X_val {self._val.X.shape[1]}"
            )
        self._targets, _ = as_targets(Y, len(self._inputs))
        self._val_targets, _ = as_targets(Y_val, len(self._val), "Y_val")
        if self._targets.shape[1] != self._val_targets.shape[1]:
            raise ValueError("Y and Y_val must have the same number of outputs")
        self._noise_var = as_noise(noise_var)
        n, m = len(self._inputs), len(self._val)
        self._engine = choose_engine(engine, n)
        self._edges = cut(n, self._engine.tile_size(n))
        self._rows = spans(cut(m, self._engine.rows_at_a_time(n)))
        d, outputs = self._inputs.X.shape[1], self._targets.shape[1]
        forecast_factor(
            self._engine, n, d, outputs, memory, beside=lambda n: 4 * n * (n + 2 * m)
        ).check()
        columns = spans(self._edges)
        lower = [(r, c) for i, r in enumerate(columns) for c in columns[: i + 1]]
        self._own = self._cosines(self._inputs, lower)
        self._cross = self._cosines(self._val, [(r, c) for r in self._rows for c in columns])
        self._arena = self._engine.arena()

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
        for architecture in architectures:
            check_architecture(architecture)
            yield self._score(architecture)

    def _score(self, architecture: Architecture) -> SweepResult:
        start = time.perf_counter()
        try:
            scores = self._fit(architecture)
        except (NotPositiveDefiniteError, VarianceError) as cause:
            nothing = float("nan")
            return SweepResult(
                architecture, nothing, nothing, nothing, nothing, 0, _since(start), str(cause)
            )
        return SweepResult(architecture, *scores, _since(start))

    def _fit(self, architecture: Architecture) -> tuple[float, float, float, float, int]:
        engine = self._engine
        own = kernel_blocks(engine.where, architecture, self._inputs, stored=self._own)
        cross = kernel_blocks(
            engine.where, architecture, self._val, self._inputs, stored=self._cross
        )
        system = solve(engine, own, self._edges, self._targets, self._noise_var, arena=self._arena)
        with engine.run() as run:
            parts = [part() for part in means(run, cross, system, self._rows)]
        accuracy, mse = _scores(np.concatenate(parts), self._val_targets)
        return accuracy, mse, system.log_evidence, system.factor.noise_var, system.failed_attempts


def _scores(mean: Array, targets: Array) -> tuple[float, float]:
    mse = float(np.mean((mean - targets) ** 2))
    if targets.shape[1] == 1:
        return float("nan"), mse
    return float(np.mean(mean.argmax(axis=1) == targets.argmax(axis=1))), mse


def _since(start: float) -> float:
    return time.perf_counter() - start
