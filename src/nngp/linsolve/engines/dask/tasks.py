"""Functions that run on a worker: the links of a chain, by the tile functions of one machine.

A task is a pure function of its arguments, so it can be done again anywhere if its worker dies.
With a store it leaves its tile in a folder and hands on a token; otherwise it hands on the tile.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nngp._machine import single_threaded_blas
from nngp.gram.cluster.task import BlockWithGap, notify_client
from nngp.linsolve.engines import blas
from nngp.linsolve.engines.dask.tile_store import Token, find_tile, write_tile


class Link(NamedTuple):
    """The constant part of a task; the last link of a chain has its name."""

    name: str
    topic: str
    dtype: str
    transposed: bool = True
    lower: bool = False  # the lower triangle will do
    potrf: bool = False
    store: str = ""  # the folder where its tile goes


@single_threaded_blas()
def link(
    how: Link,
    first: Callable[..., Any],
    arguments: Sequence[Any],
    left: Sequence[Any],
    right: Sequence[Any],
    last: Any,
    then: Callable[..., Any] | None,
    beside: Sequence[Any],
) -> Any:
    """first(); updates; potrf or trsm; then."""
    if how.store and (found := find_tile(how.store, how.name)) is not None:
        notify_client(how.topic, found=how.name, **found.notes)
        return found
    C, notes = _unpacked(first(*map(value, arguments)))
    C = np.require(C, how.dtype, ["C", "W"])
    if notes:
        notify_client(how.topic, **notes)
    for a, b in zip(left, right, strict=True):
        A = value(a)
        _update(C, A, A if a is b or (isinstance(a, Token) and a == b) else value(b), how)
    if how.potrf:
        blas.potrf(C)
    elif last is not None:
        blas.trsm(value(last), C, transposed=how.transposed)
    if how.name:
        notify_client(how.topic, done=how.name, pid=os.getpid())
    if then is not None:
        return then(C, *map(value, beside))
    return write_tile(how.store, how.name, C, notes) if how.store else C


def _unpacked(found: Any) -> tuple[Any, dict[str, Any]]:
    """An array, and the facts to report with it."""
    if not isinstance(found, BlockWithGap):
        return found, {}
    near = {"kernel": found.kernel, "nearest": found.nearest} if found.nearest < 1 else {}
    return found.block, near


def _update(C: Any, A: Any, B: Any, how: Link) -> None:
    if A is B and how.lower:
        blas.update_lower(C, A)
    else:
        blas.update(C, A, B, transposed=how.transposed)


def call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """function(*arguments), tokens read."""
    return _unpacked(function(*map(value, arguments)))[0]


def value(argument: Any) -> Any:
    """The tile of a token, also inside a list; any other argument as it is. Arrays are aligned, as
    BLAS wants them: those that came over the network need not be."""
    if isinstance(argument, list):
        return [value(item) for item in argument]
    if isinstance(argument, np.ndarray):
        return np.require(argument, requirements="A")
    return argument.read() if isinstance(argument, Token) else argument


def copied(tile: Any) -> Any:
    """A tile that may be overwritten."""
    return np.array(tile)


def whole(tile: Any) -> Any:
    """The tile itself."""
    return tile
