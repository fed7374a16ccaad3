"""Files are used whole or not at all: whatever is wrong becomes a sentence that names it."""

import gzip
import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nngp._npy import names_in, read_member

DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, tarfile.TarError)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Errors while a file is read, as one sentence. A parser that stumbles in any way has met a
    damaged file, so nothing is let through but a lack of memory."""
    try:
        yield
    except MemoryError:
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


def contents(path: Path, published: str) -> bytes:
    """What is in an original file, unzipped where it is gzipped, its sum checked."""
    with reading(path):
        stored = path.read_bytes()
        data = gzip.decompress(stored) if path.suffix == ".gz" else stored
        _check(hashlib.md5(stored, usedforsecurity=False).hexdigest(), published)
        return data


def members(path: Path, names: Sequence[str], published: str) -> list[bytes]:
    """Files of a tar archive, in memory: nothing is unpacked to disk."""
    found = {}
    with reading(path):
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:  # in one pass, as going back would unzip it all again
                if member.name in names and (file := archive.extractfile(member)):
                    found[member.name] = file.read()
        _check(md5_of(path), published)
        missing = [name for name in names if name not in found]
        if missing:
            raise ValueError(f"it has no member {missing[0]}")
        return [found[name] for name in names]


def _check(found: str, published: str) -> None:
    """Refuse a file that is not, byte for byte, the one its authors published."""
    if found != published:
        raise ValueError(f"it is not the published file (MD5 {found}, published {published})")


def arrays(path: Path, keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz file by name (zip checks the CRC of each; no pickles)."""
    with reading(path), path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError("it is cut short, or no .npz archive")
        with zipfile.ZipFile(file) as archive:
            stored = names_in(archive)
            missing = [key for key in keys if key not in stored]
            if missing:
                raise ValueError(f"it has no array '{missing[0]}' (it has {', '.join(stored)})")
            return {key: read_member(archive, f"{key}.npy") for key in keys}
