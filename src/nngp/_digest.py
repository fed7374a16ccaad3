"""Digests of values: equal digests mean equal results, on any machine and on any day.

A digest names a result by everything that it depends on. It lets a folder of finished tiles, or a
checkpoint, be used again by a later job.
"""

import hashlib
from typing import Any

import numpy as np

FORMAT = b"nngp tiles 1"  # changes when the same digest would mean another result


def digest(*parts: object) -> str:
    """The digest of plain values, arrays, and objects whose `name` is a digest."""
    state = hashlib.blake2b(FORMAT, digest_size=20)
    for part in parts:
        _feed(state, part)
    return state.hexdigest()


def _feed(state: hashlib.blake2b, part: Any) -> None:
    if isinstance(part, np.ndarray):
        state.update(f"array {part.dtype.str} {part.shape};".encode())
        state.update(np.ascontiguousarray(part).data.cast("B") if part.size else b"")
    elif isinstance(part, list | tuple):
        state.update(f"list {len(part)};".encode())
        for item in part:
            _feed(state, item)
    elif isinstance(part, dict):
        _feed(state, sorted(part.items()))
    elif isinstance(part, np.generic):  # before float, which some of them are
        _feed(state, part.item())
    elif part is None or isinstance(part, str | bool | int | float | slice):
        state.update(f"{type(part).__name__} {part!r};".encode())
    else:
        state.update(f"name {part.name};".encode())
