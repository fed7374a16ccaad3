"""Functions compiled for a device: once for each kind of arguments, and kept between processes.

`program` stands for `jax.jit`. What differs: a program can be compiled before its first call, in a
thread of its own (`DeviceProgram.prepare`), since XLA takes much longer to compile than the device
to compute. And what was compiled is kept in files (`program_store.py`), by JAX's own means of
writing and reading executables. No setting of JAX is changed for that, so a user's own programs are
compiled and kept as the user says.

A program is named by its text as JAX lowers it, the versions, the device and the options of the
compiler. So tracing is done in every process, and compiling is not.
"""

import hashlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import serialize_executable

from nngp._arrays import DeviceArray
from nngp.gram.device.program_store import VARIABLE, ProgramStore, store_folder

THREADS = 4
Options = dict[str, bool | int | str]
# Of XLA by platform, beside its own defaults. To time many ways to multiply takes ten times as long
# as to compile, and finds none that is faster in float64 than the vendor's own.
OPTIONS: dict[str, Options] = {
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
}


class Made(NamedTuple):
    """How one program came to be; threads make several side by side."""

    name: str
    shapes: str
    loaded: bool  # from a file, and not compiled
    tracing: float  # seconds
    compiling: float  # or loading


made: list[Made] = []  # the programs of this process
_lock = threading.Lock()


class DeviceProgram:
    """A function of arrays, compiled for each kind of arguments; keywords are not traced."""

    def __init__(self, function: Callable[..., Any], donate: Sequence[int] = ()) -> None:
        self._function, self._donate = function, tuple(donate)
        self._found: dict[Hashable, Future[Callable[..., Any]]] = {}
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *args: Any, **fixed: Any) -> Any:
        leaves, tree = _flat(args)
        return self._future(leaves, tree, fixed, _here).result()(leaves)

    def prepare(self, *args: Any, **fixed: Any) -> None:
        """Begin to compile for arguments of these shapes and types, in another thread."""
        leaves, tree = _flat(args)
        self._future(leaves, tree, fixed, _beside)

    def _future(
        self, leaves: list[Any], tree: Any, fixed: dict[str, Any], begin: Callable[..., Any]
    ) -> "Future[Callable[..., Any]]":
        """The compiled program for these arguments; `begin` says where it is compiled."""
        place = _Place.now()
        kinds = tuple((leaf.shape, leaf.dtype) for leaf in leaves)
        key = (kinds, tree, *fixed.items(), place)
        found = self._found.get(key)
        if found is None:
            with _lock:
                found = self._found.get(key)
                mine = found is None
                if found is None:
                    found = self._found[key] = Future()
            if mine:
                self._begin(begin, found, key, kinds, tree, fixed, place)
        return found

    def _begin(
        self,
        begin: Callable[..., Any],
        future: "Future[Callable[..., Any]]",
        key: Hashable,
        *what: Any,
    ) -> None:
        try:
            begin(self._settle, future, key, *what)
        except BaseException:  # interrupted, or no thread to be had: nobody must wait for it
            self._found.pop(key, None)
            future.cancel()
            raise

    def _settle(self, future: "Future[Callable[..., Any]]", key: Hashable, *what: Any) -> None:
        try:
            future.set_result(self._compiled(*what))
        except BaseException as error:  # whoever waits gets it, and the next call tries again
            self._found.pop(key, None)
            future.set_exception(error)

    def _compiled(
        self, kinds: tuple[Any, ...], tree: Any, fixed: dict[str, Any], place: "_Place"
    ) -> Callable[..., Any]:
        shape_of_result: list[Any] = []

        def flat(*leaves: DeviceArray) -> list[DeviceArray]:
            out, structure = jax.tree.flatten(self._function(*tree.unflatten(leaves), **fixed))
            shape_of_result[:] = [structure]
            return out

        flat.__name__ = self.__name__
        arguments = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in kinds]
        start = time.perf_counter()
        with place.entered():
            jitted = jax.jit(flat, donate_argnums=self._donated(tree, len(kinds)))
            lowered = jitted.lower(*arguments)
            traced = time.perf_counter()
            counts = len(kinds), shape_of_result[0].num_leaves
            run, loaded = _executable(lowered, place.device, counts)
        shapes = " ".join(str(shape) for shape, _ in kinds if shape)
        spent = traced - start, time.perf_counter() - traced
        made.append(Made(self.__name__, shapes, loaded, *spent))
        return partial(_call, run, shape_of_result[0])

    def _donated(self, tree: Any, count: int) -> tuple[int, ...]:
        """The leaves that belong to donated arguments."""
        if not self._donate:
            return ()
        numbers = tree.unflatten(range(count))
        return tuple(jax.tree.leaves([numbers[k] for k in self._donate]))


def program(function: Callable[..., Any]) -> DeviceProgram:
    """Compile a function of arrays, whose keywords are static."""
    return DeviceProgram(function)


def donating(*donate: int) -> Callable[[Callable[..., Any]], DeviceProgram]:
    """The same for a function that may use the memory of these arguments for its results."""
    return partial(DeviceProgram, donate=donate)


@dataclass(frozen=True)
class _Place:
    """Where and in which precision JAX computes now; a thread of its own must be told."""

    device: Any
    double: bool

    @classmethod
    def now(cls) -> "_Place":
        config: Any = jax.config
        return cls(config.jax_default_device, config.jax_enable_x64)

    def entered(self) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(jax.enable_x64(self.double))
        stack.enter_context(jax.default_device(self.device))
        return stack


def _flat(args: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The arrays in the arguments; a number is an array of one."""
    leaves, tree = jax.tree.flatten(args)
    return [leaf if hasattr(leaf, "dtype") else np.float64(leaf) for leaf in leaves], tree


def _here(function: Callable[..., None], *args: Any) -> None:
    function(*args)


def _thread_count() -> int:
    asked = os.environ.get("NNGP_COMPILE_THREADS", "")
    return int(asked) if asked.isdigit() and int(asked) > 0 else min(THREADS, os.cpu_count() or 1)


_threads = threading.BoundedSemaphore(_thread_count())


def _beside(function: Callable[..., None], *args: Any) -> None:
    """Do it in a thread that ends with it."""

    def work() -> None:
        with _threads:
            function(*args)

    threading.Thread(target=work, name="nngp-compile").start()


def _call(run: Callable[..., Any], structure: Any, leaves: list[Any]) -> Any:
    return structure.unflatten(run(*leaves))


def _executable(
    lowered: Any, device: Any, counts: tuple[int, int]
) -> tuple[Callable[..., Any], bool]:
    """The compiled program, and whether it came from the store; `counts` are those of its
    arguments and results."""
    device = device if isinstance(device, jax.Device) else jax.devices(device)[0]
    options = OPTIONS.get(device.platform) or None
    folder = programs_folder(device)
    if folder is None:
        return lowered.compile(compiler_options=options), False
    store, name = ProgramStore(folder), _name(lowered, device, options)
    found = _load(store, name, counts, device)
    if found is not None:
        return found, True
    compiled = lowered.compile(compiler_options=options)
    _keep(store, name, compiled)
    return compiled, False


def _load(
    store: ProgramStore, name: str, counts: tuple[int, int], device: Any
) -> Callable[..., Any] | None:
    body = store.read(name)
    if body is None:
        return None
    arguments, results = (list(range(count)) for count in counts)
    trees = jax.tree.structure((tuple(arguments), {})), jax.tree.structure(results)
    try:
        found: Callable[..., Any] = serialize_executable.deserialize_and_load(
            body, *trees, backend=device.client, execution_devices=[device]
        )
    except Exception:  # whatever a file of another time or machine makes JAX raise
        return None
    return found


def _keep(store: ProgramStore, name: str, compiled: Any) -> None:
    try:
        body, _, _ = serialize_executable.serialize(compiled)
    except Exception:  # a platform or a program that cannot be written
        return
    store.write(name, body)


def programs_folder(device: Any) -> Path | None:
    """Where programs for a device are kept, if anywhere.

    Programs for this machine's own processor may use instructions that another machine, which
    shares the folder, does not have. They are kept only where somebody has named a folder. Where a
    user has JAX keep programs, these are left to JAX: one that it has read from its own files
    cannot be written again, and fails when it is called.
    """
    config: Any = jax.config
    if config.jax_enable_compilation_cache and config.jax_compilation_cache_dir:
        return None
    may = device.platform != "cpu" or bool(os.environ.get(VARIABLE))
    return store_folder() if may else None


def _name(lowered: Any, device: Any, options: Options | None) -> str:
    """A digest of everything that the compiled program depends on."""
    parts = lowered.as_text(), device_digest(device), repr(sorted((options or {}).items()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def device_digest(device: Any) -> str:
    """A digest of a device and of all that runs programs on it."""
    parts = (
        *_versions(),
        device.platform,
        device.device_kind,
        str(device.id),
        device.client.platform_version,
        platform.machine(),
        os.environ.get("XLA_FLAGS", ""),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    """Those of JAX and of the libraries that its programs call. They stand in the names of the
    folders that describe installed packages; to read what is in these takes half a second."""
    return tuple(sorted(name for place in sys.path for name in _described(Path(place or "."))))


def _described(place: Path) -> list[str]:
    try:
        names = os.listdir(place)
    except OSError:  # not a folder
        return []
    return [one for one in names if one.endswith("-info") and one.startswith(("jax", "nvidia"))]


def shaped(*shape: int, dtype: Any = np.float64) -> jax.ShapeDtypeStruct:
    """An argument of `DeviceProgram.prepare`: a float64 array of this shape."""
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype))
