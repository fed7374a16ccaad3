"""Checksums of large arrays, at the speed of the hardware: whether somebody wrote to one.

Every byte counts, and its place: one CRC-32 for each block of some megabytes, computed by all
threads of the machine (zlib releases the interpreter's lock). A changed bit, and any change within
32 bits in a row, is always noticed; of other changes one in 4e9 is not. `benchmarks/checksums.py`
measures the time.
"""

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._threads import in_threads

BLOCK = 1 << 22  # bytes


def checksums(array: NDArray[Any]) -> tuple[int, ...]:
    """The checksum of each block of an array, as its values lie row by row."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    blocks = [data[start : start + BLOCK] for start in range(0, len(data), BLOCK)]
    return tuple(in_threads(zlib.crc32, blocks))
