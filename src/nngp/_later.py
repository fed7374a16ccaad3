"""Computations that are described here and done elsewhere, under names that say what they are.

A name is a digest of everything that a result depends on: the function, the numbers, the names of
what it is computed from. Equal names mean equal results, on any machine and on any day; that is
what lets a folder of finished tiles be used again.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

FORMAT = b"nngp tiles 1"  # changes when the same name would mean another result


@dataclass(frozen=True)
class Later:
    """function(*arguments), which gives an array that may be overwritten; arguments may be handles
    of what is being computed elsewhere. A heavy one is worth a task of its own."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    name: str
    heavy: bool = False


def named(*parts: Any) -> str:
    """A digest of values, arrays, and things that have names themselves."""
    digest = hashlib.blake2b(FORMAT, digest_size=20)
    for part in parts:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape};".encode())
        digest.update(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
    elif isinstance(part, list | tuple):
        digest.update(f"list {len(part)};".encode())
        for item in part:
            _feed(digest, item)
    elif isinstance(part, dict):
        _feed(digest, sorted(part.items()))
    elif isinstance(part, np.generic):  # before float, which some of them are
        _feed(digest, part.item())
    elif part is None or isinstance(part, str | bool | int | float | slice):
        digest.update(f"{type(part).__name__} {part!r};".encode())
    else:
        digest.update(f"name {part.name};".encode())


class Noted(NamedTuple):
    """A block of a kernel, and the smallest 1 - |c| of its pairs if it is small."""

    block: Any
    kernel: str
    nearest: float


def given(array: Any) -> Any:
    """An array that travels with the description itself, or the list of its pieces."""
    return np.concatenate(array) if isinstance(array, list) else np.array(array)


def tell(topic: str, **facts: Any) -> None:
    """Let the client that listens to `topic` know, from inside a task; nothing elsewhere."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # not a task
        return
    worker.log_event(topic, facts)
