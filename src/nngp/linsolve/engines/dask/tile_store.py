"""Finished tiles as files in a folder, each there as a whole or not at all.

A file is a zip archive with one array, stored as it is: its checksum tells a damaged tile from a
good one. Its name is the digest of everything that the tile depends on (`nngp._digest`).
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nngp import _npy
from nngp._files import DAMAGED, replaced
from nngp.errors import TileStoreError


@dataclass(frozen=True)
class Token:
    """A tile in a folder, with the facts to report when it is found."""

    folder: str
    name: str
    notes: dict[str, Any] = field(default_factory=dict, compare=False)

    def read(self) -> Any:
        """The array."""
        try:
            return _read(tile_path(self.folder, self.name))[0]
        except (*DAMAGED, OSError) as error:
            raise TileStoreError(
                f"a tile in the store {self.folder} was removed or damaged while it was in use "
                f"({type(error).__name__}); condition again, and what is missing is computed"
            ) from error


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    found = _npy.read_npz(path, ("tile", "notes"))
    return found["tile"], json.loads(str(found["notes"]))


def tile_path(folder: str | os.PathLike[str], name: str) -> Path:
    """A few hundred folders, so that none gets too long to list."""
    return Path(folder) / name[:2] / f"{name}.npz"


def write_tile(folder: str, name: str, tile: Any, notes: dict[str, Any] | None = None) -> Token:
    """Keep a tile."""
    path = tile_path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as part, part.open("wb") as file:
        np.savez(file, tile=tile, notes=json.dumps(notes or {}))
    return Token(folder, name, notes or {})


def find_tile(folder: str, name: str) -> Token | None:
    """A tile if it is there and whole. A damaged one is removed: it will be computed again."""
    path = tile_path(folder, name)
    try:
        return Token(folder, name, _read(path)[1])
    except DAMAGED:
        path.unlink(missing_ok=True)
    except OSError:  # not there, or not readable at the moment
        pass
    return None
