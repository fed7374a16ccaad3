"""Writing files completely or not at all, folders for output, and arrays in .npy files."""

import os
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.lib import format as npy
from numpy.typing import NDArray

LONGEST = 100  # characters of a path in a message
_PARSING = threading.Lock()


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a new file beside `path`, which replaces `path` at the end of the block. If the
    block fails, the new file is deleted and `path` stays as it was. A link is followed."""
    target = writable_file(path)
    part = target.with_name(f".{secrets.token_hex(8)}.part{target.suffix[-16:]}")
    try:
        try:
            part.touch(exist_ok=False)
        except OSError as error:
            raise _unwritable(path, error) from None
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def writable_file(path: str | os.PathLike[str]) -> Path:
    """The file that a path names, through all links. Raises OSError, in one sentence, where no
    plain file can be: only such a file may be replaced."""
    if not os.fspath(path):
        raise FileNotFoundError("the name of the file is empty; give a file name")
    try:
        target = Path(os.path.realpath(path))
        mode = os.stat(target).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if target.parent.is_dir():
            return target
        raise FileNotFoundError(
            f"the folder {Path(path).parent} does not exist; create it first"
        ) from None
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no plain file"
        raise IsADirectoryError(f"{path} is {what}; give a file name")
    return target


def _unwritable(path: str | os.PathLike[str], error: OSError | ValueError) -> OSError:
    name, reason = str(path), getattr(error, "strerror", None) or error
    shown = name if len(name) <= LONGEST else f"{name[:LONGEST]!r}..."
    kind = type(error) if isinstance(error, OSError) else OSError
    return kind(f"{shown} cannot be written ({reason}); use another name or folder")


def usable_folder(path: str | os.PathLike[str], option: str) -> Path:
    """Create the folder that an option names, unless it exists. Raises ValueError if that fails."""
    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{option}={str(path)!r} is no folder that can be used: {error}") from None
    return folder


def open_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Map the array of a .npy file into memory, read-only; ValueError for anything else.

    One thread at a time: NumPy parses the header with `ast.literal_eval`, which fails at times in
    CPython 3.11 ("AST constructor recursion depth mismatch") when two threads call it at once.
    """
    try:
        with _PARSING:
            return npy.open_memmap(path, mode="r")
    except (OSError, MemoryError):
        raise
    except Exception as cause:  # of NumPy's parser there are many
        raise ValueError(f"it is no .npy file of numbers: {cause}") from None
