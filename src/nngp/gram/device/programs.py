"""Functions compiled for a device: `jax.jit` with the compiler's options for its platform.

XLA takes much longer to compile a program than a device to compute it, so there are few: one for
each kind of arguments, of which tiles have few. JAX keeps them between processes where a user has
enabled that (`jax_compilation_cache_dir`); no setting of JAX is changed here.
"""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import jax
import numpy as np

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
