"""Angular curves compiled ahead of their use, in other processes.

A GPU needs curves faster than one core can compile them, and activations without closed form take
long on any machine.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from nngp import ActivationError, AngularCurve, Architecture, VarianceError
from nngp.curve import cache_curve, curve_at, is_cached

SPARE = 2  # cores for this process and the device's driver
FEWEST = 4  # others: with fewer they would only take from this one
AHEAD = 28  # sheets: the networks of 28 weight variances
PIECE = 45  # networks that a process compiles at a time
INPUT_VAR = 1.0  # of the inputs that `datasets.split` gives


class Curves:
    """Curves of sheets of networks, in the order in which they will be needed. Networks that differ
    in depth alone should share a sheet, as they share layers."""

    def __init__(
        self, sheets: Sequence[Sequence[Architecture]], processes: int | None = None
    ) -> None:
        self._sheets = sheets
        self._places = {net: place for place, sheet in enumerate(sheets) for net in sheet}
        self._processes = _spare() if processes is None else processes
        self._pool: ProcessPoolExecutor | None = None
        self._coming: dict[int, list[Future[list[AngularCurve]]]] = {}

    def ready(self, network: Architecture) -> None:
        """Put the sheet of this network into the cache of `curve_at`, unless the network is there.
        Without other processes nothing is done: `curve_at` compiles on demand."""
        if not self._processes or is_cached(network, INPUT_VAR):
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._processes, get_context("spawn"), initializer=_alone
            )
        place = self._places[network]
        wanted = range(place, min(place + AHEAD, len(self._sheets)))
        self._coming = {
            ahead: self._coming.get(ahead)
            or [self._pool.submit(_compiled, piece) for piece in _pieces(self._sheets[ahead])]
            for ahead in wanted
        }
        for future in self._coming[place]:
            for curve in future.result():
                cache_curve(curve)

    def close(self) -> None:
        """Cancel what is not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool, self._coming = None, {}


def _spare() -> int:
    """Number of processes to start. None from another thread than the main one: a worker of a
    cluster, say, needs its cores itself and must not have children."""
    others = cpu_count() - SPARE
    main = threading.current_thread() is threading.main_thread()
    return others if main and others >= FEWEST else 0


def _alone() -> None:
    """Give each process one thread of BLAS, as there is one process for each core."""
    threadpool_limits(1, user_api="blas")


def _pieces(sheet: Sequence[Architecture]) -> list[list[Architecture]]:
    """Networks that differ in depth alone stay together, the deepest first: it leaves layers for
    the others."""
    ordered = sorted(sheet, key=lambda net: (net.bias_var, -net.depth))
    return [ordered[start : start + PIECE] for start in range(0, len(ordered), PIECE)]


def _compiled(piece: Sequence[Architecture]) -> list[AngularCurve]:
    """The curves that exist; `curve_at` raises for the others when they are needed."""
    found = []
    for architecture in piece:
        try:
            found.append(curve_at(architecture, INPUT_VAR))
        except (ActivationError, VarianceError):
            continue
    return found
