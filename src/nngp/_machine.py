"""Facts about this machine: cores, free memory; and a limit of one thread for BLAS."""

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import ThreadpoolController

CONTROL_GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
QUOTA_SECONDS = 1.0  # for which a quota is kept: a forecast asks dozens of times, a fit hundreds


class single_threaded_blas(ContextDecorator):  # noqa: N801  # used like a function
    """One BLAS thread inside a block or a function, called from any thread of Python.

    Threads of BLAS wait for each other by spinning, so next to any other load they take many times
    the time of one; whatever runs in parallel here has threads of its own. The setting belongs to
    the whole process: the first to enter makes it, and the last to leave restores what was there.
    """

    def __enter__(self) -> None:
        _shared_limit().enter()
        _limit_of_thread().enter()

    def __exit__(self, *error: object) -> None:
        _limit_of_thread().leave()
        _shared_limit().leave()


class _Limit:
    """One thread for some libraries, while anybody uses them."""

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries, self._users, self._changed = libraries, 0, list[tuple[Any, int]]()
        self.renew_lock()

    def renew_lock(self) -> None:
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                counts = [(one, one.get_num_threads()) for one in self._libraries]
                self._changed = [(one, count) for one, count in counts if (count or 1) > 1]
                for one, _ in self._changed:
                    _set_threads(one, 1)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for one, count in self._changed:
                    if one.get_num_threads() == 1:  # otherwise somebody else has set it since
                        _set_threads(one, count)


def _set_threads(library: Any, count: int) -> None:
    """Set it from any thread: threadpoolctl from 3.6 on silently ignores all but the first thread
    that sets OpenBLAS, unless that one's claim is cleared."""
    clear = getattr(library, "clear_controlling_thread", lambda **_: None)
    clear(force=True)
    library.set_num_threads(count)
    clear(force=True)


@cache
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS of NumPy and SciPy: with a setting of the process, and of each thread (OpenMP)."""
    import scipy.linalg.blas  # noqa: F401  # loads its own OpenBLAS, which must be limited as well

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    own = [one for one in found if getattr(one, "threading_layer", "") == "openmp"]
    return [one for one in found if one not in own], own


@cache
def _shared_limit() -> _Limit:
    limit = _Limit(_libraries()[0])
    if hasattr(os, "register_at_fork"):  # another thread may hold the lock at that moment
        os.register_at_fork(after_in_child=limit.renew_lock)
    return limit


_of_thread = threading.local()


def _limit_of_thread() -> _Limit:
    if not hasattr(_of_thread, "limit"):
        _of_thread.limit = _Limit(_libraries()[1])
    found: _Limit = _of_thread.limit
    return found


def limit_this_thread() -> None:
    """Begin a thread that computes for one that has entered the limit, where each has its own."""
    _limit_of_thread().enter()


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute in the calling thread alone: for many small problems, where waking another thread
    takes longer than the work."""
    before = getattr(_of_thread, "alone", False)
    _of_thread.alone = True
    try:
        yield
    finally:
        _of_thread.alone = before


def threads() -> int:
    """The number of threads that this process may use: by its affinity, and by the share of CPU
    time that its container has."""
    if getattr(_of_thread, "alone", False):
        return 1
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min([cores, *map(math.ceil, _quotas_at(time.monotonic() // QUOTA_SECONDS))]))


@lru_cache(maxsize=1)
def _quotas_at(moment: float) -> tuple[float, ...]:
    """The quotas, read once at a moment: an orchestrator may change them while this runs."""
    return tuple(_cpu_quotas())


def _cpu_quotas() -> Iterator[float]:
    """Cores' worth of CPU time that each control group of this process may use."""
    for folder in _groups("cpu"):
        words = _words(folder / "cpu.max")  # "max 100000" without a quota
        quota = words[0] if words else "".join(_words(folder / "cpu.cfs_quota_us"))
        period = words[1] if len(words) > 1 else "".join(_words(folder / "cpu.cfs_period_us"))
        if quota.isdigit() and period.isdigit() and int(period) > 0:  # -1: no quota
            yield int(quota) / int(period)


def _groups(controller: str) -> Iterator[Path]:
    """Folders of the control groups that this process is in, and of all above them.

    A container may see its own group as the root, whatever the name of the group is.
    """
    for line in _lines(OWN_GROUPS):  # hierarchy:controllers:group, without controllers in version 2
        _, controllers, group = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = CONTROL_GROUPS / controllers
        if controllers and not root.is_dir():
            root = CONTROL_GROUPS / controller
        own = root / group.strip("/")
        yield from (one for one in (own, *own.parents) if one.is_relative_to(root))


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping or passing a container's limit, if known."""
    on_machine = _fields(Path("/proc/meminfo")).get("MemAvailable:")
    known = [*_free_in_containers(), *([] if on_machine is None else [on_machine * 1024])]
    return min(known, default=None)


def _free_in_containers() -> Iterator[int]:
    """The limit of each control group, less the memory in use that cannot be reclaimed."""
    for folder in _groups("memory"):
        for limit, used, file in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most, now = ("".join(_words(folder / name)) for name in (limit, used))
            if most.isdigit() and now.isdigit():  # "max": no limit
                yield int(most) - int(now) + _fields(folder / "memory.stat").get(file, 0)


def _fields(path: Path) -> dict[str, int]:
    rows = map(str.split, _lines(path))
    return {words[0]: int(words[1]) for words in rows if len(words) > 1}


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
