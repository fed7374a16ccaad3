"""Owners of claimed runs, and whether they are alive.

An owner is a process: its place (host, and on Linux the namespace of its process number), its
number, and when it started, because numbers are used again. It is alive as long as it renews its
heartbeat, and, where this process can check that, as long as it exists.
"""

import os
import platform
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

BEAT = 10.0  # seconds between heartbeats
STALE = 90.0  # seconds after which a silent owner counts as dead
SIGNAL_0_CHECKS = os.name == "posix"  # elsewhere signal 0 does something to the process


@dataclass(frozen=True)
class Owner:
    """One store object of one process."""

    id: str
    place: str
    pid: int
    start: str  # "" where the system does not tell

    @classmethod
    def this(cls) -> "Owner":
        """A new owner in this process."""
        pid = os.getpid()
        name = f"{platform.node()}:{pid}:{secrets.token_hex(6)}"
        return cls(name, _place(), pid, _start(pid))

    @property
    def is_possible(self) -> bool:
        """Whether all values are of their types, and the number is one of a process."""
        texts = all(isinstance(text, str) for text in (self.id, self.place, self.start))
        return texts and isinstance(self.pid, int) and 0 < self.pid < 2**31

    def is_alive(self, silent: float) -> bool:
        """Whether the process exists, `silent` seconds after its last heartbeat."""
        if silent > STALE:
            return False
        return self.place != _place() or _exists(self.pid, self.start)


class Heartbeat:
    """A thread that calls `beat` every few seconds, from `start` to `stop`."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the thread unless it runs; after a fork, the child starts a thread of its own."""
        if not self._is_running():
            self._stopped = threading.Event()
            self._thread = threading.Thread(target=self._run, args=(self._stopped,), daemon=True)
            self._thread.start()

    def stop(self) -> bool:
        """Stop the thread; returns whether it ran in this process."""
        was_running = self._is_running()
        self._stopped.set()
        self._thread = None
        return was_running

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.wait(BEAT):
            with suppress(Exception):  # the worker meets the same error, and reports it
                self._beat()


def _place() -> str:
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _exists(pid: int, start: str) -> bool:
    if not SIGNAL_0_CHECKS:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and is another user's
    return _start(pid) == start


def _start(pid: int) -> str:
    """When the process started, in ticks since the machine did; "dead" for a zombie; "" if the
    system does not tell."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "dead" if after_name[0] in "ZX" else after_name[19]
