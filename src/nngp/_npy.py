"""Reader of .npy files that is safe with threads and allocates nothing on a false header.

NumPy parses the header of a .npy file with `ast.literal_eval`. In CPython 3.11 that function fails
at times ("AST constructor recursion depth mismatch") when two threads call it at once. A header is
one short dictionary in a fixed form, so a regular expression reads it here. Arrays of real
numbers, booleans, strings and dates are accepted; objects and structured types are not.
"""

import math
import os
import re
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"
LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # of the header's length, by the version of the format
ENCODINGS = {1: "latin1", 2: "latin1", 3: "utf8"}
LONGEST_HEADER = 10_000  # characters; NumPy itself refuses more
HEADER = re.compile(
    r"\{'descr': ?'(?P<descr>[<>|=](?:[biuf]\d{1,2}|[US][1-9]\d{0,8}|[mM]8\[\w+\]))', ?"
    r"'fortran_order': ?(?P<fortran>True|False), ?"
    r"'shape': ?\((?P<shape>|\d{1,19},|\d{1,19}(?:, ?\d{1,19})+,?)\)(?:, ?)?\}[ \n]*"
)


@dataclass(frozen=True)
class Header:
    """Type, shape and memory order of a stored array, and how many bytes precede it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> Header:
    """Read the header of a .npy stream; the file is left at the first byte of the array."""
    magic = file.read(8)
    if len(magic) < 8 or magic[:6] != MAGIC:
        raise ValueError("it is no .npy file, or it is cut short")
    version = magic[6]
    if version not in LENGTH_BYTES or magic[7]:
        raise ValueError(f"it has .npy format {version}.{magic[7]}, and 1.0 to 3.0 can be read")
    length = int.from_bytes(_exactly(file, LENGTH_BYTES[version]), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"its .npy header is longer than {LONGEST_HEADER} bytes, with {length}")
    text = _exactly(file, length).decode(ENCODINGS[version])
    return _parse(text, len(magic) + LENGTH_BYTES[version] + length)


def _parse(text: str, offset: int) -> Header:
    found = HEADER.fullmatch(text)
    if found is None:
        raise ValueError(
            f"its .npy header {text.strip()[:100]!r} does not describe an array of real "
            "numbers, booleans, strings or dates"
        )
    try:
        dtype = np.dtype(found["descr"])
    except (TypeError, ValueError, OverflowError):
        dtype = None
    if dtype is None or dtype.itemsize < 0:  # in NumPy 2.0 the size of long strings overflows
        raise ValueError(f"NumPy has no data type {found['descr']!r}")
    shape = tuple(int(size) for size in re.findall(r"\d+", found["shape"]))
    return Header(dtype, shape, "F" if found["fortran"] == "True" else "C", offset)


def open_memmap(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Map the array of a .npy file into memory, read-only; nothing but the header is read."""
    with open(path, "rb") as file:
        header = read_header(file)
        _check_size(header, _bytes_left(file))
    return np.memmap(path, header.dtype, "r", header.offset, header.shape, header.order)


def _bytes_left(file: IO[bytes]) -> int:
    start = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    return end - start


def _check_size(header: Header, available: int) -> None:
    """Raise ValueError if fewer bytes are there than the array needs."""
    if available < header.n_bytes:
        raise ValueError(
            f"it is cut short: an array {header.dtype} {header.shape} has {header.n_bytes} bytes, "
            f"but {max(available, 0)} are there"
        )


def _exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError("it is cut short in its .npy header")
    return data
