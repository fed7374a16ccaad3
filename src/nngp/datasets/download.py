"""Fetching a set from its home into the cache.

A file arrives as NAME.part and takes its name once its checksum is right, so what has the name is
whole. A connection that breaks is taken up where it broke (HTTP ranges), also by a later call: the
.part stays then. It goes if the file turns out to be another, or the disk is full. Processes that
want the same set wait for each other; where a file system has no locks, the checksum still notices.
"""

import http.client
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from nngp._progress import Callback, Progress, progress_for
from nngp.datasets.catalogue import ImageSet
from nngp.datasets.integrity import md5_of
from nngp.datasets.locations import CACHE

TRIES = 5  # of one file at one home
PAUSE = 1.0  # seconds before the second try; twice as long before each later one
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 18
RATE = 2e6  # bytes a second, to guess whether a bar is worth showing
TRANSIENT = (408, 429, 500, 502, 503, 504)

Advance = Callable[[float], None]


class _RefusedError(Exception):
    """A home that has no such file, or cannot be reached: no use to ask it again."""


class _BrokenError(Exception):
    """A connection that ended too early: worth another try."""


def fetch(entry: ImageSet, folder: Path, progress: Callback | bool | None = None) -> None:
    """Bring every file of a set that is not in the folder yet."""
    with _writing(folder, sum(entry.downloads.values())):
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            sizes = {n: s for n, s in entry.downloads.items() if not (folder / n).exists()}
            expected = sum(sizes.values()) / RATE
            report = progress_for(progress, expected)
            with Progress(f"download {entry.name}", sum(sizes.values()), report, expected) as bar:
                for name in sizes:
                    _fetch_file(entry, name, folder / name, bar.advance)


def _fetch_file(entry: ImageSet, name: str, target: Path, advance: Advance) -> None:
    part = target.with_name(f"{name}.part")
    reasons = []
    for home in entry.homes:
        try:
            _persist(f"{home}{name}", part, entry.downloads[name], advance)
            break
        except (_RefusedError, _BrokenError) as reason:
            reasons.append(f"{home}{name}: {reason}")
        except OSError:  # the disk's, as those of the network have become reasons
            with suppress(OSError):
                part.unlink()
            raise
    else:
        raise ConnectionError("; ".join(reasons))
    found = md5_of(part)
    if found != entry.md5[name]:
        part.unlink()
        raise ValueError(
            f"what {home}{name} gave is not the published file (MD5 {found}, published "
            f"{entry.md5[name]}) and was deleted; try again later, or get the file another way"
        )
    part.replace(target)


def _persist(url: str, part: Path, size: int, advance: Advance) -> None:
    """Try until the part is complete; broken connections are taken up again."""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE * 2 ** (number - 1))
        try:
            return _continue(url, part, size, advance)
        except _BrokenError as broken:
            reason = broken
    raise _BrokenError(f"{reason}, {TRIES} times; the next call goes on from there")


def _continue(url: str, part: Path, size: int, advance: Advance) -> None:
    """One connection: what is still missing of the part is appended to it."""
    start = part.stat().st_size if part.exists() else 0
    if start >= size:
        return
    with _answer(url, start) as answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        done = start if resumed else 0
        length = answer.headers.get("Content-Length")
        if length is not None and int(length) != size - done:
            raise _RefusedError(f"a file of {done + int(length)} bytes, expected {size}")
        with part.open("ab" if resumed else "wb") as file:
            advance(done)
            while block := _receive(answer):
                file.write(block)
                advance(len(block))
            done = file.tell()
    if done < size:
        advance(-done)
        raise _BrokenError(f"the connection broke after {done} of {size} bytes")


@contextmanager
def _answer(url: str, start: int) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": "nngp"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        answer = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        kind = _BrokenError if error.code in TRANSIENT else _RefusedError
        raise kind(f"the server answered {error.code} {error.reason}") from None
    except URLError as error:
        raise _RefusedError(f"no connection ({error.reason})") from None
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"no answer ({error or type(error).__name__})") from None
    with answer:
        yield answer


def _receive(answer: http.client.HTTPResponse) -> bytes:
    """Some bytes, or none at the end or where the connection broke: the size tells which."""
    try:
        return answer.read(BLOCK)
    except (OSError, http.client.HTTPException):
        return b""


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time in a folder. The system lets go of the lock if a process dies."""
    with (folder / ".lock").open("w") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _writing(folder: Path, size: int) -> Iterator[None]:
    """Errors of the disk as sentences."""
    try:
        yield
    except (ConnectionError, ValueError):
        raise
    except OSError as cause:
        raise type(cause)(
            f"nothing can be written to the cache {folder} ({os.strerror(cause.errno or 0)}; "
            f"{size / 1e6:.0f} MB are needed); make room there, or set {CACHE} to another folder"
        ) from None
