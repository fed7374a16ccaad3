"""Finished tiles as files in a folder, each there as a whole or not at all.

A file is a zip archive with one array, stored as it is, and its facts: checksums tell a damaged
tile from a good one. Its name is the digest of everything that the tile depends on
(`nngp._digest`), and is also among the facts: a tile under another's name is not taken for it.
"""

import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from nngp._archive import open_stored
from nngp._fields import Fields, parse_json
from nngp._files import replaced
from nngp.errors import TileStoreError

LARGEST_FACTS = 10_000  # bytes
FACTS, TILE = "facts.json", "tile.npy"


@dataclass(frozen=True)
class Token:
    """A tile in a folder, with the notes to report when it is found."""

    folder: str
    name: str
    notes: dict[str, Any] = field(default_factory=dict, compare=False)

    def read(self) -> Any:
        """The array."""
        try:
            return _read(tile_path(self.folder, self.name), self.name)[0]
        except (ValueError, OSError) as error:
            raise TileStoreError(
                f"a tile in the store {self.folder} was removed or damaged while it was in use "
                f"({error}); condition again, and what is missing is computed"
            ) from error


def _read(path: Path, name: str) -> tuple[Any, dict[str, Any]]:
    """The tile and its notes. Raises ValueError if the file is not what `write_tile` wrote."""
    with open_stored(path) as archive:
        if set(archive.members) != {FACTS, TILE}:
            raise ValueError("it has other members than a tile and its facts")
        facts = Fields(parse_json(archive.read(FACTS, LARGEST_FACTS)), "facts", ValueError)
        if facts.text("name") != name:
            raise ValueError("it is another tile")
        shape = tuple(facts.list("shape", int))
        tile = archive.read_array(TILE, shape, facts.text("dtype", ("float64", "float32")))
        if facts.flag("finite") and not np.isfinite(tile).all():
            raise ValueError("it holds NaN or infinity")
        return tile, _notes(facts.fields("notes"))


def _notes(notes: Fields) -> dict[str, Any]:
    if not notes.values:
        return {}
    return {"kernel": notes.text("kernel"), "nearest": notes.number("nearest", 0.0)}


def tile_path(folder: str | os.PathLike[str], name: str) -> Path:
    """A few hundred folders, so that none gets too long to list."""
    return Path(folder) / name[:2] / f"{name}.npz"


def write_tile(folder: str, name: str, tile: Any, notes: dict[str, Any] | None = None) -> Token:
    """Keep a tile."""
    path, array = tile_path(folder, name), np.ascontiguousarray(tile)
    facts = {
        "name": name,
        "shape": array.shape,
        "dtype": array.dtype.name,
        "finite": bool(np.isfinite(array).all()),
        "notes": notes or {},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(FACTS, json.dumps(facts))
        with archive.open(TILE, "w", force_zip64=True) as member:
            npy.write_array(member, array, allow_pickle=False)
    return Token(folder, name, notes or {})


def find_tile(folder: str, name: str) -> Token | None:
    """A tile if it is there and whole. A damaged one is removed: it will be computed again."""
    path = tile_path(folder, name)
    try:
        return Token(folder, name, _read(path, name)[1])
    except ValueError:
        path.unlink(missing_ok=True)
    except OSError:  # not there, or not readable at the moment
        pass
    return None
