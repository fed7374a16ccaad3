"""Writing files completely or not at all, and the folder for downloads."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CACHE = "NNGP_CACHE"


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write to a new file beside `path`, which replaces `path` at the end of the block. If the
    block fails, the new file is deleted and `path` stays as it was."""
    target = Path(path)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist; create it first")
    part = target.with_name(f".{secrets.token_hex(8)}.part{target.suffix}")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def cache_folder() -> Path:
    """The folder for downloads and the like, which may not exist: NNGP_CACHE, or nngp in the user's
    cache."""
    own = os.environ.get(CACHE)
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "nngp"
