"""Reader of .npz files that allocates nothing on a false header.

Arrays of real numbers, booleans, strings and dates are accepted; objects and structured types are
not. The header of an array is one short dictionary in a fixed form, which a regular expression
reads.
"""

import math
import re
import zipfile
from dataclasses import dataclass
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"
LENGTH_BYTES = {1: 2, 2: 4, 3: 4}  # of the header's length, by the version of the format
ENCODINGS = {1: "latin1", 2: "latin1", 3: "utf8"}
LONGEST_HEADER = 10_000  # characters; NumPy itself refuses more
CHUNK = 1 << 20  # bytes: members of a zip archive are read through a copy of this size
HEADER = re.compile(
    r"\{'descr': ?'(?P<descr>[<>|=](?:[biuf]\d{1,2}|[US][1-9]\d{0,8}|[mM]8\[\w+\]))', ?"
    r"'fortran_order': ?(?P<fortran>True|False), ?"
    r"'shape': ?\((?P<shape>|\d{1,19},|\d{1,19}(?:, ?\d{1,19})+,?)\)(?:, ?)?\}[ \n]*"
)


@dataclass(frozen=True)
class ArrayHeader:
    """Type, shape and memory order of a stored array, and how many bytes precede it."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    order: Literal["C", "F"]
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_member(archive: zipfile.ZipFile, name: str, most: int) -> NDArray[Any]:
    """Read the array of one .npy member of a zip archive, to its end, where zipfile compares the
    checksum. An array of more than `most` bytes is refused before anything is allocated. Raises
    KeyError if the archive has no such member."""
    size = archive.getinfo(name).file_size
    with archive.open(name) as member:
        header = _read_header(member)
        left = size - header.offset
        _check_size(header, left)
        if header.n_bytes > most:
            raise ValueError(
                f"{name} is an array {header.dtype} {header.shape} of {header.n_bytes} bytes, and "
                f"{most} were expected at most"
            )
        if header.n_bytes != left:
            raise ValueError(f"{name} has {left - header.n_bytes} bytes after its array")
        values = _read_values(member, header)
        if member.read(1):
            raise ValueError(f"{name} is longer than its archive says")
        return values


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """List the names of the arrays in a .npz archive."""
    return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def _read_header(file: IO[bytes]) -> ArrayHeader:
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


def _parse(text: str, offset: int) -> ArrayHeader:
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
    return ArrayHeader(dtype, shape, "F" if found["fortran"] == "True" else "C", offset)


def _check_size(header: ArrayHeader, available: int) -> None:
    """Raise ValueError if fewer bytes are there than the array needs."""
    if available < header.n_bytes:
        raise ValueError(
            f"it is cut short: an array {header.dtype} {header.shape} has {header.n_bytes} bytes, "
            f"but {max(available, 0)} are there"
        )


def _read_values(file: IO[bytes], header: ArrayHeader) -> NDArray[Any]:
    array: NDArray[Any] = np.empty(header.shape, header.dtype, header.order)
    if not array.size:
        return array
    target = array.reshape(-1, order="A").view(np.uint8).data
    done = 0
    while done < len(target):
        block = file.read(min(CHUNK, len(target) - done))
        if not block:
            raise ValueError(f"it is cut short after {done} of {len(target)} bytes")
        target[done : done + len(block)] = block
        done += len(block)
    return array


def _exactly(file: IO[bytes], count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ValueError("it is cut short in its .npy header")
    return data
