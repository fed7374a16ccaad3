"""Tasks of the Dask engine: a function and its arguments, with a digest as its name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Task:
    """function(*arguments), which gives an array that may be overwritten; arguments may be handles
    of what is being computed elsewhere. A heavy one is worth a task of its own."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str
    heavy: bool = False


class BlockWithGap(NamedTuple):
    """A block of a kernel, and the smallest 1 - |c| of its pairs if it is small."""

    block: Any
    kernel: str
    nearest: float


def own_copy(array: Any) -> Any:
    """An array that travels with the description itself, or the list of its pieces."""
    return np.concatenate(array) if isinstance(array, list) else np.array(array)


def notify_client(topic: str, **facts: Any) -> None:
    """Let the client that listens to `topic` know, from inside a task; nothing elsewhere."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not a task
        return
    worker.log_event(topic, facts)
