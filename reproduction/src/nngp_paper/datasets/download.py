"""Downloads of image sets into the cache.

A file is written to NAME.part and renamed once its checksum is right, so a file called NAME is
complete. After a broken connection the download resumes where it broke (HTTP ranges), also in a
later call: the .part file stays. It is deleted if its checksum is wrong, or the disk is full.
Processes that download the same set wait for each other; where a file system has no locks, the
checksum still detects a mix of two downloads.
"""

import http.client
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from nngp_paper.datasets.catalogue import ImageSet
from nngp_paper.datasets.files import md5_of
from nngp_paper.files import CACHE
from nngp_paper.progress import Advance, progress_bar

TRIES = 5  # of one file on one server
PAUSE = 1.0  # seconds before the second try; twice as long before each later one
TIMEOUT = 30.0  # seconds without a byte
BLOCK = 1 << 18
TRANSIENT = (408, 429, 500, 502, 503, 504)


class _RefusedError(Exception):
    """A server has no such file, or cannot be reached: trying again is no use."""


class _BrokenError(Exception):
    """A connection ended too early: trying again may help."""


def fetch(entry: ImageSet, folder: Path, progress: bool | None = None) -> None:
    """Download every file of a set that is not in the folder yet."""
    with _disk_errors(folder, sum(entry.downloads.values())):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            sizes = {n: s for n, s in entry.downloads.items() if not (folder / n).exists()}
            total = sum(sizes.values())
            with progress_bar(f"download {entry.name}", total, progress) as advance:
                for name in sizes:
                    _download_file(entry, name, folder / name, advance)


def _download_file(entry: ImageSet, name: str, target: Path, advance: Advance) -> None:
    part = target.with_name(f"{name}.part")
    try:
        url = _download_from_any_server(entry, name, part, advance)
    except ConnectionError:
        raise
    except OSError:  # of the disk: those of the network were converted
        with suppress(OSError):
            part.unlink()
        raise
    found = md5_of(part)
    if found != entry.md5[name]:
        part.unlink()
        raise ValueError(
            f"what {url} gave is not the published file (MD5 {found}, published "
            f"{entry.md5[name]}) and was deleted; try again later, or get the file another way"
        )
    part.replace(target)


def _download_from_any_server(entry: ImageSet, name: str, part: Path, advance: Advance) -> str:
    """Try one server after the other; returns the address that had the file."""
    reasons = []
    for url in (f"{server}{name}" for server in entry.servers):
        try:
            _download_with_retries(url, part, entry.downloads[name], advance)
            return url
        except (_RefusedError, _BrokenError) as reason:
            reasons.append(f"{url}: {reason}")
    raise ConnectionError("; ".join(reasons))


def _download_with_retries(url: str, part: Path, size: int, advance: Advance) -> None:
    """Try until the part is complete, resuming after broken connections."""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE * 2 ** (number - 1))
        try:
            return _resume(url, part, size, advance)
        except _BrokenError as broken:
            reason = broken
    raise _BrokenError(f"{reason}, {TRIES} times; the next call goes on from there")


def _resume(url: str, part: Path, size: int, advance: Advance) -> None:
    """Append the missing bytes to the part, over one connection."""
    start = part.stat().st_size if part.exists() else 0
    if start >= size:
        return
    with _response(url, start) as response:
        resumed = response.status == http.client.PARTIAL_CONTENT
        done = start if resumed else 0
        length = response.headers.get("Content-Length")
        if length is not None and int(length) != size - done:
            raise _RefusedError(f"a file of {done + int(length)} bytes, expected {size}")
        with part.open("ab" if resumed else "wb") as file:
            advance(done)
            while block := _receive(response):
                file.write(block)
                advance(len(block))
            done = file.tell()
    if done < size:
        advance(-done)
        raise _BrokenError(f"the connection broke after {done} of {size} bytes")


@contextmanager
def _response(url: str, start: int) -> Iterator[http.client.HTTPResponse]:
    headers = {"User-Agent": "nngp"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        response = urlopen(Request(url, headers=headers), timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        kind = _BrokenError if error.code in TRANSIENT else _RefusedError
        raise kind(f"the server answered {error.code} {error.reason}") from None
    except URLError as error:
        raise _RefusedError(f"no connection ({error.reason})") from None
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(f"no answer ({error or type(error).__name__})") from None
    with response:
        yield response


def _receive(response: http.client.HTTPResponse) -> bytes:
    """Receive some bytes, or none at the end or if the connection broke: the size tells which."""
    try:
        return response.read(BLOCK)
    except (OSError, http.client.HTTPException):
        return b""


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a folder. The lock of a dead process is released."""
    with (folder / ".lock").open("w") as file:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _disk_errors(folder: Path, size: int) -> Iterator[None]:
    """Replace errors of the disk by one sentence."""
    try:
        yield
    except (ConnectionError, ValueError):
        raise
    except OSError as cause:
        raise type(cause)(
            f"nothing can be written to the cache {folder} ({os.strerror(cause.errno or 0)}; "
            f"{size / 1e6:.0f} MB are needed); make room there, or set {CACHE} to another folder"
        ) from None
