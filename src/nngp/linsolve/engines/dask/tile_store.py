"""Finished tiles as files in a folder, each there as a whole or not at all.

A file holds one array and its facts (`nngp._tensors`): digests tell a damaged tile from a good
one. Its name is the digest of everything that the tile depends on (`nngp._digest`), and is also
among the facts: a tile under another's name is not taken for it.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nngp._files import replaced
from nngp._tensors import open_tensors, parse_json, write_tensors
from nngp.errors import TileStoreError

TILE, FACTS = "tile", {"name", "finite", "notes"}


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
    file = open_tensors(path)
    facts = file.facts
    if set(file.arrays) != {TILE} or set(facts) != FACTS or facts["name"] != name:
        raise ValueError("it is another tile")
    tile = np.array(file.arrays[TILE].read())
    if facts["finite"] == "yes" and not np.isfinite(tile).all():
        raise ValueError("it holds NaN or infinity")
    return tile, parse_json(facts["notes"])


def tile_path(folder: str | os.PathLike[str], name: str) -> Path:
    """A few hundred folders, so that none gets too long to list."""
    return Path(folder) / name[:2] / f"{name}.safetensors"


def write_tile(folder: str, name: str, tile: Any, notes: dict[str, Any] | None = None) -> Token:
    """Keep a tile."""
    path, array = tile_path(folder, name), np.ascontiguousarray(tile)
    finite = "yes" if np.isfinite(array).all() else "no"
    facts = {"name": name, "finite": finite, "notes": json.dumps(notes or {})}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as part:
        write_tensors(part, facts, {TILE: array})
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
