"""Files that are there as a whole or not at all."""

import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What reading a damaged archive of arrays can raise, beside the errors of the disk
DAMAGED = (KeyError, TypeError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path`, to be written to; it takes its place once the block is done, and
    vanishes if the block fails. What was there before stays until then."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    part = target.with_name(f".{target.stem}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        part.touch(exist_ok=False)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def usable_folder(path: str | os.PathLike[str], option: str) -> Path:
    """The folder that was named by an option, made if need be."""
    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{option}={str(path)!r} is no folder that can be used: {error}") from None
    return folder
