"""Compiled programs kept in files, so that the next process need not compile them again.

A file is named by a digest of all that its program depends on, so a program that no longer fits is
never found. Files appear complete or not at all, and reading one marks it as used; when they take
too much room, those unused for longest are removed. Nothing here is needed for a right answer:
whatever goes wrong with the folder, a program is compiled as if there were none.

Loading a program runs what its file says. So the folder must belong to this user, and nobody else
may write to it.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from nngp._files import cache_folder, replaced

VARIABLE, OFF = "NNGP_PROGRAMS", "off"  # names the folder, or says that there is none
MOST_BYTES = 2**29
ABANDONED = 3600.0  # seconds after which a file that is not complete belongs to no process
SUFFIX = ".program"
_DIGEST = hashlib.sha256().digest_size


def store_folder() -> Path | None:
    """The folder that the variable names, or one in the user's cache; None if it is turned off."""
    named = os.environ.get(VARIABLE, "").strip()
    if named.lower() == OFF:
        return None
    try:
        return Path(named).expanduser() if named else cache_folder() / "programs"
    except RuntimeError:  # a user without a home
        return None


class ProgramStore:
    """Bytes by name in a folder, of `most` bytes in all."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        self._folder, self._most = folder, most

    def read(self, name: str) -> bytes | None:
        """What was written under a name; None if that is missing, damaged or somebody else's."""
        path = self._path(name)
        try:
            if not self._is_private(self._folder):
                return None
            content = path.read_bytes()
        except OSError:
            return None
        body = content[_DIGEST:]
        if hashlib.sha256(body).digest() != content[:_DIGEST]:
            return None
        with suppress(OSError):  # a folder that can only be read
            os.utime(path)
        return body

    def write(self, name: str, body: bytes) -> None:
        """Keep `body` under a name, if the folder allows it."""
        if len(body) > self._most:
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_private(self._folder):
                return
            with replaced(self._path(name)) as part:
                part.write_bytes(hashlib.sha256(body).digest() + body)
            self._remove_oldest()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}{SUFFIX}"

    def _remove_oldest(self) -> None:
        """Delete what was used longest ago until the rest is small enough."""
        found, now = [], time.time()
        for path in self._folder.glob(f"*{SUFFIX}"):
            with suppress(OSError):  # another process may have deleted it
                facts = path.stat()
                if not path.name.startswith("."):
                    found.append((facts.st_mtime, facts.st_size, path))
                elif now - facts.st_mtime > ABANDONED:
                    path.unlink()
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self._most:
                return
            with suppress(OSError):
                path.unlink()
            total -= size

    @staticmethod
    def _is_private(folder: Path) -> bool:
        """Whether nobody but this user can write there."""
        if not hasattr(os, "getuid"):  # folders of a user are private there
            return True
        facts = folder.stat()
        others = stat.S_IWGRP | stat.S_IWOTH
        return facts.st_uid == os.getuid() and not facts.st_mode & others
