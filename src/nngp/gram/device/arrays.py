"""Arrays on a JAX device, in double precision whatever the global setting is."""

from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array, DeviceArray
from nngp.gram.device.programs import donating
from nngp.gram.inputs import Inputs

SPARE = 20_480  # rows that are held beside one copy of all


def put(array: ArrayLike) -> DeviceArray:
    """A host array as a float64 array on JAX's default device."""
    return put_as(array, np.dtype(np.float64))


def put_as(array: ArrayLike, dtype: np.dtype[Any]) -> DeviceArray:
    """A host array on JAX's default device; unlike `jnp.asarray` this compiles nothing."""
    with jax.enable_x64(True):
        return jax.device_put(np.asarray(array, dtype=dtype), may_alias=False)


def default_device() -> object:
    """The device on which JAX makes arrays now."""
    (device,) = jax.device_put(np.zeros(())).devices()
    return device


def unit_block(inputs: Inputs, rows: slice) -> DeviceArray:
    """Some rows as unit vectors, zeros beyond the last, uploaded once.

    Programs take such blocks, and not all rows: so one program serves any number of points.
    """
    blocks: dict[tuple[int, int], DeviceArray] = inputs.derived("blocks on a device", _no_blocks)
    key = rows.start, rows.stop
    if key not in blocks:
        held = sum(stop - start for start, stop in blocks)
        while blocks and held > len(inputs) + SPARE:  # another cut of the same rows
            start, stop = next(iter(blocks))
            del blocks[start, stop]
            held -= stop - start
        X, factor = (padded_rows(a[rows], count_of(rows)) for a in (inputs.X, inputs.inverse_norm))
        with jax.enable_x64(True):
            blocks[key] = _scale_in_place(put(X), put(factor))
    return blocks[key]


def _no_blocks(inputs: Inputs) -> dict[tuple[int, int], DeviceArray]:
    return {}


def count_of(rows: slice) -> int:
    """How many rows a slice has, some of which may be beyond the last."""
    return rows.stop - rows.start


def padded_rows(array: Array, rows: int, value: float = 0.0) -> Array:
    """The array with rows of one value below it, so that it has `rows` of them."""
    if len(array) == rows:
        return array
    out = np.full((rows, *array.shape[1:]), value)
    out[: len(array)] = array
    return out


@donating(0)
def _scale_in_place(X: DeviceArray, factor: DeviceArray) -> DeviceArray:
    return X * factor[:, None]
