"""Large arrays part by part, by all threads of the machine: NumPy and SciPy release the
interpreter's lock."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

from numpy.typing import NDArray

from nngp import _machine

PART = 2**20  # numbers of one part
WAITING = 0.1  # seconds
Found = TypeVar("Found")


def in_threads(
    function: Callable[[Any], Found],
    parts: Sequence[Any],
    *,
    meanwhile: Callable[[], None] = lambda: None,
    stop: Callable[[], None] = lambda: None,
) -> list[Found]:
    """The function of each part. What NumPy does about overflow, say, is as it is here.

    The calling thread waits, and calls `meanwhile` now and then. After an error or an interruption
    `stop` is called, and parts that have not begun never do.
    """
    if len(parts) < 2:
        return [function(part) for part in parts]
    workers = min(_machine.threads(), len(parts))
    with (
        _machine.single_threaded_blas(),
        ThreadPoolExecutor(workers, initializer=_machine.limit_this_thread) as pool,
    ):
        begun = [pool.submit(copy_context().run, function, part) for part in parts]
        try:
            for one in begun:
                while not wait([one], timeout=WAITING).done:
                    meanwhile()
                one.result()
            return [one.result() for one in begun]
        except BaseException:
            stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def by_rows(function: Callable[[Any], Found], X: NDArray[Any]) -> list[Found]:
    """The function of some rows at a time."""
    return in_threads(lambda part: function(X[part]), row_parts(X))


def by_columns(function: Callable[[Any], Found], X: NDArray[Any]) -> list[Found]:
    """The function of some columns at a time."""
    return in_threads(lambda part: function(X[:, part]), column_parts(X))


def row_parts(X: NDArray[Any]) -> list[slice]:
    """Some rows of an array for each part."""
    return _cut(len(X), X.shape[1])


def column_parts(X: NDArray[Any]) -> list[slice]:
    """Some columns of an array for each part."""
    return _cut(X.shape[1], len(X))


def _cut(count: int, length: int) -> list[slice]:
    step = max(1, PART // max(length, 1))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]
