"""Arrays on a JAX device and programs for it, in double precision whatever the global setting is.

XLA takes much longer to compile a program than a device to compute it, so there are few: one for
each kind of arguments, of which tiles have few. JAX keeps them between processes where a user has
enabled that (`jax_compilation_cache_dir`); no setting of JAX is changed here.
"""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array, DeviceArray
from nngp.gram.inputs import Inputs

Options = dict[str, bool | int | str]
# Of XLA by platform, beside its own defaults. To time many ways to multiply takes ten times as long
# as to compile, and finds none that is faster in float64 than the vendor's own.
OPTIONS: dict[str, Options] = {
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
}
made: list[str] = []  # names of the programs of this process, one for each kind of arguments


class DeviceProgram:
    """A function of arrays, compiled for each kind of arguments; keywords are not traced."""

    def __init__(self, function: Callable[..., Any], donate: Sequence[int] = ()) -> None:
        self._donate = tuple(donate)
        self._jitted: dict[tuple[str, tuple[str, ...]], Callable[..., Any]] = {}

        @wraps(function)
        def traced(*args: Any, **fixed: Any) -> Any:
            made.append(function.__name__)
            return function(*args, **fixed)

        self._function = traced

    def __call__(self, *args: Any, **fixed: Any) -> Any:
        key = _platform(), tuple(fixed)
        if key not in self._jitted:
            self._jitted[key] = self._jit(*key)
        return self._jitted[key](*jax.tree.map(_as_array, args), **fixed)

    def _jit(self, platform: str, fixed: tuple[str, ...]) -> Callable[..., Any]:
        return jax.jit(
            self._function,
            static_argnames=fixed,
            donate_argnums=self._donate,
            compiler_options=OPTIONS.get(platform),
        )


def program(function: Callable[..., Any]) -> DeviceProgram:
    """Compile a function of arrays, whose keywords are static."""
    return DeviceProgram(function)


def donating(*donate: int) -> Callable[[Callable[..., Any]], DeviceProgram]:
    """The same for a function that may use the memory of these arguments for its results."""
    return partial(DeviceProgram, donate=donate)


def _platform() -> str:
    """That of the device on which JAX computes now."""
    config: Any = jax.config
    device = config.jax_default_device
    return str((device if isinstance(device, jax.Device) else jax.devices(device)[0]).platform)


def _as_array(leaf: Any) -> Any:
    """A number is an array of one, in double precision."""
    return leaf if hasattr(leaf, "dtype") else np.float64(leaf)


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
