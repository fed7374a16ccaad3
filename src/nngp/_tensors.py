"""Files of arrays in the safetensors format, with a digest over every byte.

A file is the length of its header, the header (JSON) and the arrays one after the other. The
library `safetensors` checks bounds, types and that nothing overlaps or is left over. Beyond the
format, the header's metadata hold a SHA-256 of every array and one of the header itself, taken
with its own place filled with zeros. So a changed byte is noticed, wherever it is: in the header
when a file is opened, in an array when it is read. Arrays can be mapped instead of read; then
their digest is compared at first use.

Everything that is wrong with a file is a ValueError.
"""

import hashlib
import json
import math
import mmap
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

DTYPES = {
    name: np.dtype(code)
    for name, code in {
        **{"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"},
        **{"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"},
    }.items()
}
CODES = {dtype: name for name, dtype in DTYPES.items()}
METADATA, DIGEST, DIGESTS = "__metadata__", "digest", "digests"
BLANK = "0" * 64  # in place of a digest
LARGEST_HEADER = 16_000_000  # bytes
NESTED = 50  # mappings and lists in each other


@dataclass(frozen=True)
class StoredArray:
    """An array that is read, or computed, when it is asked for."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], NDArray[Any]]
    source: str = ""  # the file that it is in


Stored = NDArray[Any] | StoredArray


def write_tensors(
    path: str | os.PathLike[str], facts: Mapping[str, str], arrays: Mapping[str, Stored]
) -> None:
    """Write texts and arrays; those given as `StoredArray` are computed one at a time."""
    # Large types first, so that all are aligned.
    names = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    digests = dict.fromkeys(names, BLANK)
    with open(path, "wb") as file:
        file.write(_header(facts, arrays, digests))
        for name in names:
            data = _plain_bytes(arrays[name])
            digests[name] = _digest(data)
            file.write(data)
        file.seek(0)
        file.write(_header(facts, arrays, digests))


def _header(
    facts: Mapping[str, str], arrays: Mapping[str, Stored], digests: Mapping[str, str]
) -> bytes:
    """The header with its length; as long whatever the digests are."""
    metadata = {**facts, DIGESTS: json.dumps(digests), DIGEST: BLANK}
    values: dict[str, Any] = {METADATA: metadata}
    place = 0
    for name in digests:
        array = arrays[name]
        end = place + math.prod(array.shape) * array.dtype.itemsize
        code = CODES.get(array.dtype)
        if code is None:
            raise ValueError(f"an array of {array.dtype} cannot be saved")
        values[name] = {
            "dtype": code,
            "shape": list(array.shape),
            "data_offsets": [place, end],
        }
        place = end
    text = json.dumps(values, separators=(",", ":"), allow_nan=False).encode()
    if len(text) > LARGEST_HEADER:
        raise ValueError(
            f"the plain values take {len(text) / 1e6:.0f} MB, and {LARGEST_HEADER / 1e6:.0f} MB "
            "can be saved"
        )
    text += b" " * (-len(text) % 8)
    text = _with_digest(text, BLANK, _digest(text))
    return len(text).to_bytes(8, "little") + text


def _with_digest(text: bytes, old: str, new: str) -> bytes:
    """The text of a header with another digest of itself."""
    before, found, after = text.rpartition(f'"{DIGEST}":"{old}"'.encode())
    if not found:
        raise ValueError("its header has no digest where one belongs")
    return before + f'"{DIGEST}":"{new}"'.encode() + after


def _digest(data: bytes | memoryview) -> str:
    return hashlib.sha256(data).hexdigest()


def _plain_bytes(array: Stored) -> memoryview:
    """The values of an array as bytes, row by row."""
    found = array.read() if isinstance(array, StoredArray) else array
    if (found.shape, found.dtype) != (array.shape, array.dtype):
        raise TypeError(f"an array {found.dtype} {found.shape} was announced as {array}")
    return np.ascontiguousarray(found).reshape(-1).view(np.uint8).data


@dataclass(frozen=True)
class TensorFile:
    """The texts and arrays of a file; arrays are mapped, and checked when they are read."""

    facts: dict[str, str]
    arrays: dict[str, StoredArray]


def open_tensors(path: str | os.PathLike[str]) -> TensorFile:
    """Open a file and check its header, whose digest covers the digests of all arrays."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= min(LARGEST_HEADER, os.fstat(file.fileno()).st_size - 8):
            raise ValueError("it is no safetensors file, or it is cut short")
        text = file.read(length)
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        with safe_open(path, framework="np") as checked:
            facts = checked.metadata() or {}
    except SafetensorError as cause:
        raise ValueError(f"it is no whole safetensors file: {cause}") from None
    values, digest = parse_json(text), facts.pop(DIGEST, "")
    if _digest(_with_digest(text, digest, BLANK)) != digest:
        raise ValueError("the digest of its header is wrong")
    digests = parse_json(facts.pop(DIGESTS, ""))
    del values[METADATA]
    if not isinstance(digests, dict) or set(digests) != set(values):
        raise ValueError("its digests are not those of its arrays")
    return TensorFile(
        facts,
        {
            name: _stored(str(path), mapped, 8 + length, name, values[name], digests[name])
            for name in values
        },
    )


def _stored(
    source: str,
    mapped: mmap.mmap,
    begin: int,
    name: str,
    values: Mapping[str, Any],
    digest: str,
) -> StoredArray:
    if values["dtype"] not in DTYPES:
        raise ValueError(f"its array {name} holds {values['dtype']}")
    shape, dtype = tuple(values["shape"]), DTYPES[values["dtype"]]
    start = begin + values["data_offsets"][0]

    def read() -> NDArray[Any]:
        array = np.frombuffer(mapped, dtype, math.prod(shape), start).reshape(shape)
        if _digest(_plain_bytes(array)) != digest:
            raise ValueError(f"the digest of {name} is wrong")
        return array

    return StoredArray(shape, dtype, read, source)


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is none, repeats a name, holds NaN or
    infinity, or is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_different)
    except RecursionError:
        if _nesting(text) > NESTED:
            raise ValueError("its plain values are nested too deeply") from None
        raise  # the caller's own recursion


def _different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError("a name stands twice among its plain values")
    return out


def _nesting(text: str | bytes) -> int:
    depth = most = 0
    for sign in text.encode() if isinstance(text, str) else text:
        depth += (sign in b"[{") - (sign in b"]}")
        most = max(most, depth)
    return most


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"its plain values hold {word}")
