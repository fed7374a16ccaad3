"""Folders and files of data sets: the folders to look in, and files read whole or not at all.

Whatever is wrong with a file becomes one sentence that names the file, the fault and the remedy.
"""

import gzip
import hashlib
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

AnyPath = str | os.PathLike[str]
DATA = "NNGP_DATA"
DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, tarfile.TarError)


def data_folder(data: AnyPath | None = None) -> Path | None:
    """The user's folder: the one given, or the one that NNGP_DATA names, or None. Raises OSError if
    it does not exist or may not be read."""
    given = data if data is not None else os.environ.get(DATA)
    if not given:
        return None
    folder = Path(given).expanduser()
    origin = "" if data is not None else f" (which {DATA} names)"
    if not folder.is_dir():
        kind = "is a file" if folder.exists() else "does not exist"
        raise FileNotFoundError(
            f"the data folder {folder}{origin} {kind}; name a folder that holds the data"
        )
    if not os.access(folder, os.R_OK | os.X_OK):
        raise PermissionError(
            f"the data folder {folder}{origin} may not be read (permission denied); change its "
            "permissions, or use a copy"
        )
    return folder


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Replace errors of reading a file by one sentence. A parser that fails in any way has met a
    damaged file, so every error but a lack of memory and a fault of Python itself is replaced."""
    try:
        yield
    except (MemoryError, SystemError):
        raise
    except PermissionError:
        raise PermissionError(
            f"{path} may not be read (permission denied); change its permissions, or use a copy"
        ) from None
    except DAMAGE as cause:
        raise _unusable(path, f"it is cut short or damaged ({cause})") from cause
    except OSError as cause:
        raise OSError(f"{path} could not be read ({cause.strerror or cause})") from cause
    except ValueError as cause:
        raise _unusable(path, str(cause)) from cause
    except Exception as cause:
        raise _unusable(path, f"it is damaged ({type(cause).__name__}: {cause})") from cause


def _unusable(path: Path, cause: str) -> ValueError:
    return ValueError(
        f"{path} cannot be used: {cause}; delete it, or put a whole copy in its place"
    )


def md5_of(path: Path) -> str:
    """The MD5 sum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def read_original(path: Path, md5: str, most: int) -> bytes:
    """Read a file of the published checksum, decompressed if its name ends in .gz, of at most so
    many bytes."""
    with readable_errors(path):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            data: bytes = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it holds more than the {most} bytes that it should have")
        _check_md5(md5_of(path), md5)
        return data


def read_tar(path: Path, names: Sequence[str], md5: str, most: int) -> list[bytes]:
    """Read members of a .tar.gz archive of the published checksum, which holds at most so many
    bytes, into memory."""
    found = {}
    with readable_errors(path):
        with (
            gzip.open(path, "rb") as file,
            tarfile.open(fileobj=cast(Any, _Limited(file, most)), mode="r|") as archive,
        ):
            for member in archive:  # in one pass, as going back would unzip it all again
                if member.name in names and (inner := archive.extractfile(member)):
                    found[member.name] = inner.read()
        _check_md5(md5_of(path), md5)
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"it has no member {missing[0]}")
        return [found[name] for name in names]


class _Limited:
    """A stream that holds at most so many bytes."""

    def __init__(self, file: gzip.GzipFile, most: int) -> None:
        self._file, self._most, self._left = file, most, most

    def read(self, count: int) -> bytes:
        data = self._file.read(min(count, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"it holds more than the {self._most} bytes that it should have")
        return data


def _check_md5(found: str, published: str) -> None:
    if found != published:
        raise ValueError(f"it is not the published file (MD5 {found}, published {published})")


def read_npz(path: Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Read arrays of a .npz archive by name."""
    with readable_errors(path), path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is cut short, or no .npz archive")
        with np.load(file, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            if missing:
                raise ValueError(f"it has no array '{missing[0]}' (it has {', '.join(archive)})")
            return {name: archive[name] for name in names}
