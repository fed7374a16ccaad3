"""Facts about this machine: cores, free memory, and the number of BLAS threads."""

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path

from threadpoolctl import ThreadpoolController


def single_threaded_blas() -> AbstractContextManager[object]:
    """Limit BLAS to one thread inside a block, for code that has threads of its own."""
    return blas_threads(1)


def blas_threads(most: int) -> AbstractContextManager[object]:
    """Limit BLAS to so many threads inside a block, one at least.

    Outside the main thread this does nothing: OpenBLAS ignores the call that would undo it.
    """
    now = max((one["num_threads"] for one in _blas().select(user_api="blas").info()), default=1)
    if most >= now or threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _blas().limit(limits=max(most, 1), user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg.blas  # noqa: F401  # loads its own OpenBLAS, which must be limited as well

    return ThreadpoolController()


def threads() -> int:
    """The number of threads that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping or passing a container's limit, if known."""
    known = [free for free in (_free_on_machine(), _free_in_container()) if free is not None]
    return min(known, default=None)


def _free_on_machine() -> int | None:
    fields = _fields("/proc/meminfo")
    return None if "MemAvailable:" not in fields else fields["MemAvailable:"] * 1024


def _free_in_container() -> int | None:
    """The limit of the control group, less the memory in use that cannot be reclaimed."""
    folder = "/sys/fs/cgroup/"
    try:
        limit = int(Path(folder, "memory.max").read_text())
        used = int(Path(folder, "memory.current").read_text())
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    return limit - used + _fields(folder + "memory.stat").get("inactive_file", 0)


def _fields(path: str) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) > 1}
