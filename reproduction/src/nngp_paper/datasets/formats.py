"""Decoders from bytes to images: idx files, CIFAR's binary and pickled batches, packed planes.

A pickle can call whatever it can name. The unpickler here lets CIFAR's pickles name three things of
NumPy's, and replaces them by classes of this file, which accept arrays of bytes only.
"""

import io
import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Batch = tuple[Bytes, NDArray[Any]]  # images and labels
SIDE, CHANNELS = 32, 3
PIXELS = CHANNELS * SIDE * SIDE


def from_idx(data: bytes, dimensions: int) -> Bytes:
    """Decode an idx file of bytes: zero, zero, 8 for uint8, the number of dimensions, then the
    sizes as big-endian 32-bit numbers, then the values."""
    start = 4 + 4 * dimensions
    if data[:4] != bytes([0, 0, 8, dimensions]) or len(data) < start:
        raise ValueError(f"it is no idx file of bytes in {dimensions} dimension(s)")
    shape = tuple(int(size) for size in np.frombuffer(data[4:start], ">u4"))
    values = np.frombuffer(data, np.uint8, offset=start)
    if len(values) != math.prod(shape):
        raise ValueError(f"it holds {len(values)} bytes, but its header says shape {shape}")
    return values.reshape(shape)


def from_records(data: bytes) -> Batch:
    """Decode CIFAR's binary form: a label, then the planes red, green and blue, for each image."""
    if len(data) % (1 + PIXELS):
        raise ValueError(f"its {len(data)} bytes are no whole number of {1 + PIXELS}-byte records")
    records = np.frombuffer(data, np.uint8).reshape(-1, 1 + PIXELS)
    return _channels_last(records[:, 1:]), records[:, 0]


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


def from_pickle(data: bytes) -> Batch:
    """Decode CIFAR's pickled form: a dictionary with the rows of pixels and a list of labels."""
    batch = _Unpickler(io.BytesIO(data), encoding="latin1").load()
    if not isinstance(batch, dict) or not isinstance(batch.get("data"), _PickledArray):
        raise ValueError("its pickle holds no dictionary with an array 'data'")
    if "labels" not in batch:
        raise ValueError("its pickle has no 'labels'")
    pixels = batch["data"].values
    if pixels.shape[1:] != (PIXELS,):
        raise ValueError(f"its data have shape {pixels.shape}, expected rows of {PIXELS} pixels")
    return _channels_last(pixels), np.asarray(batch["labels"])


class _PickledArray:
    """Replacement of a pickled array of bytes: empty at first, and filled from its state."""

    def __init__(self, *described: object) -> None:
        self.values: Bytes = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, raw = state
        values = np.frombuffer(raw.encode("latin1"), np.uint8)
        if not isinstance(kind, _ByteType) or by_columns or len(values) != math.prod(shape):
            raise ValueError(f"its pickle holds an array that is no row-by-row uint8 {shape}")
        self.values = values.reshape(shape)


class _ByteType:
    """Replacement of a pickled data type; types other than uint8 are refused."""

    def __init__(self, code: str, *flags: object) -> None:
        if code != "u1":
            raise ValueError(f"its pickle holds an array of '{code}', expected 'u1' (bytes)")

    def __setstate__(self, state: object) -> None:
        """Byte order and the like: bytes have none."""


class _Unpickler(pickle.Unpickler):
    ALLOWED = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _PickledArray,
        ("numpy", "ndarray"): _PickledArray,
        ("numpy", "dtype"): _ByteType,
    }

    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in self.ALLOWED:
            raise ValueError(f"its pickle asks for {module}.{name}, which images have no need of")
        return self.ALLOWED[module, name]
