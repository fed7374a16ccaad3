"""Tasks of the Dask engine: a function and its arguments, with a digest as its name.

`Cluster` is what kernels need of that engine, which comes later in the pipeline.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

RowsHandle = Any  # a block of rows on the cluster, or the promise of one; its name is their digest


@dataclass(frozen=True)
class Task:
    """function(*arguments), to be computed on a worker.

    It gives an array that may be overwritten. Arguments may be handles of results on the cluster.
    `heavy` marks work that deserves a task of its own.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str
    heavy: bool = False


class BlockWithGap(NamedTuple):
    """A block of a kernel, and the smallest 1 - |c| of its pairs if it is small."""

    block: NDArray[np.float64]
    kernel: str
    nearest: float


class Notes(Protocol):
    """Facts that tasks have reported to the client."""

    nearest: dict[str, float]  # by kernel: its smallest 1 - |c|, if below 2^-16

    def begin(self) -> None:
        """Forget the facts of an earlier job."""


class Cluster(Protocol):
    """The part of the Dask engine that inputs and kernel matrices use."""

    store: str | None

    @property
    def listener(self) -> Notes: ...

    def check_room(self, n: int, d: int) -> None:
        """Raise MemoryError if the tiles of n points do not fit a worker."""

    def tile_size(self, n: int) -> int: ...

    def submit(self, task: Task, *, keep: bool = False) -> RowsHandle:
        """Compute a task on a worker; with `keep` and a store, through a file."""

    def compute(self, delayed: Any) -> RowsHandle:
        """Compute a delayed object of Dask's own."""

    def fetch(self, handle: RowsHandle) -> Any:
        """The value of a handle, on the client."""


def own_copy(array: NDArray[Any] | list[NDArray[Any]]) -> NDArray[Any]:
    """An array that travels with its task, or the list of its pieces, as one array."""
    return np.concatenate(array) if isinstance(array, list) else np.array(array)


def notify_client(topic: str, **facts: Any) -> None:
    """Send facts from inside a task to the client that listens to `topic`."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not a task
        return
    worker.log_event(topic, facts)
