"""Finished tiles as files in a folder, each there as a whole or not at all.

A file is a zip archive with one array, stored as it is: its checksum tells a damaged tile from a
good one. Its name is that of the tile (`nngp._later.named`), so that a tile can only be found by
who wants exactly it.
"""

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nngp._files import replaced

DAMAGED = (zipfile.BadZipFile, ValueError, KeyError, EOFError, OSError)


@dataclass(frozen=True)
class Token:
    """A tile that is in a folder."""

    folder: str
    name: str

    def read(self) -> Any:
        """The array; raises one of DAMAGED if the file is not what it was."""
        with np.load(tile_path(self.folder, self.name), allow_pickle=False) as file:
            return file["tile"]


def tile_path(folder: str | os.PathLike[str], name: str) -> Path:
    """A few hundred folders, so that none gets too long to list."""
    return Path(folder) / name[:2] / f"{name}.npz"


def write_tile(folder: str, name: str, tile: Any) -> Token:
    """Keep a tile."""
    path = tile_path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as part, part.open("wb") as file:
        np.savez(file, tile=tile)
    return Token(folder, name)


def find_tile(folder: str, name: str) -> Token | None:
    """A tile if it is there and whole. A damaged one is removed: it will be computed again."""
    path, token = tile_path(folder, name), Token(folder, name)
    if not path.exists():
        return None
    try:
        token.read()
    except DAMAGED:
        path.unlink(missing_ok=True)
        return None
    return token
