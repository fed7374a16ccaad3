"""From bytes to images: idx files, CIFAR's binary and pickled batches, and packed colour planes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.datasets.pickled import read_batch

Bytes = NDArray[np.uint8]
Batch = tuple[Bytes, NDArray[Any]]
SIDE, CHANNELS = 32, 3
PIXELS = CHANNELS * SIDE * SIDE


def from_idx(data: bytes, dimensions: int) -> Bytes:
    """An idx file of bytes: zero, zero, 8 for uint8, the number of dimensions, then the sizes as
    big-endian 32-bit numbers, then the values."""
    start = 4 + 4 * dimensions
    if data[:4] != bytes([0, 0, 8, dimensions]) or len(data) < start:
        raise ValueError(f"it is no idx file of bytes in {dimensions} dimension(s)")
    shape = tuple(int(size) for size in np.frombuffer(data[4:start], ">u4"))
    values = np.frombuffer(data, np.uint8, offset=start)
    if len(values) != np.prod(shape, dtype=object):
        raise ValueError(f"it holds {len(values)} bytes, but its header says shape {shape}")
    return values.reshape(shape)


def from_records(data: bytes) -> Batch:
    """CIFAR's binary form: a label, then the planes red, green and blue, image after image."""
    if len(data) % (1 + PIXELS):
        raise ValueError(f"its {len(data)} bytes are no whole number of {1 + PIXELS}-byte records")
    records = np.frombuffer(data, np.uint8).reshape(-1, 1 + PIXELS)
    return _channels_last(records[:, 1:]), records[:, 0]


def from_pickle(data: bytes) -> Batch:
    """CIFAR's pickled form: a dictionary with the rows of pixels and a list of labels."""
    batch = read_batch(data)
    pixels, labels = batch["data"], batch["labels"]
    if pixels.shape[1:] != (PIXELS,):
        raise ValueError(f"its data have shape {pixels.shape}, expected rows of {PIXELS} pixels")
    return _channels_last(pixels), np.asarray(labels)


def from_planes(planes: NDArray[Any]) -> Bytes:
    """Undo the packing of colour planes (3, n, 32, 32): green, red minus green, blue minus green,
    each as differences down the rows and along the columns, all modulo 256."""
    if planes.dtype != np.uint8 or planes.ndim != 4 or planes.shape[::2] != (CHANNELS, SIDE):
        raise ValueError(
            f"its planes are {planes.dtype} {planes.shape}, expected uint8 (3, n, 32, 32)"
        )
    summed = planes.copy()
    for axis in (2, 3):
        _sum_along(np.moveaxis(summed, axis, -1))
    green, red, blue = summed
    return np.stack([red + green, green, blue + green], axis=-1)


def _sum_along(values: Bytes) -> None:
    """Cumulative sums along the last axis, in place, by doubling: after step s every value is the
    sum of the 2s values up to it. Five passes over whole arrays are faster than np.cumsum."""
    step = 1
    while step < values.shape[-1]:
        values[..., step:] += values[..., :-step].copy()
        step *= 2


def _channels_last(rows: Bytes) -> Bytes:
    planes = rows.reshape(-1, CHANNELS, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
