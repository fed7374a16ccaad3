"""Where data are looked for: the user's folder, then a cache."""

import os
from pathlib import Path

AnyPath = str | os.PathLike[str]
DATA, CACHE = "NNGP_DATA", "NNGP_CACHE"


def data_folder(data: AnyPath | None = None) -> Path | None:
    """The folder that was given, or that NNGP_DATA names, or None; refused if it is not there."""
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


def cache_folder() -> Path:
    """NNGP_CACHE, or nngp in the user's cache folder. It need not exist."""
    own = os.environ.get(CACHE)
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "nngp"
