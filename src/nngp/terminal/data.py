"""What `nngp datasets` says: the data sets there are, and where each would come from."""

from pathlib import Path
from typing import Any

from nngp.datasets import Place, where
from nngp.datasets.catalogue import IMAGE_SETS
from nngp.datasets.files import cache_folder, data_folder
from nngp.datasets.tables import COLLECTIONS, Collection
from nngp.terminal.speech import answer

WORDS = {
    "download": "not here; downloaded when it is asked for",
    "scikit-learn": "comes with scikit-learn",
}


def datasets(data: Path | None, as_json: bool) -> None:
    """A line for each set of images and each collection of tables; with JSON, for every set."""
    folder = data_folder(data)
    places = {name: _place(name, data) for name in IMAGE_SETS}
    tables = {c.prefix: [where(name, data) for name in c.names()] for c in COLLECTIONS}
    facts: dict[str, Any] = {"folder": folder, "cache": cache_folder()}
    if as_json:
        for collection in COLLECTIONS:
            places |= dict(zip(collection.names(), tables[collection.prefix], strict=True))
        facts["sets"] = {name: _facts(place) for name, place in places.items()}
    else:
        facts["folder"] = facts["folder"] or "none (name one with --data or NNGP_DATA)"
        facts |= {name: _line(name, place) for name, place in places.items()}
        facts |= {f"{c.prefix}/...": _summary(c, tables[c.prefix]) for c in COLLECTIONS}
    answer("data sets", facts, as_json)


def _place(name: str, data: Path | None) -> Place | str:
    """Where a set is, or the sentence that says which of its files is missing."""
    try:
        return where(name, data)
    except OSError as error:
        return str(error)


def _facts(place: Place | str) -> dict[str, str | None]:
    if isinstance(place, str):
        return {"place": "incomplete", "path": None, "problem": place}
    return {"place": place.kind, "path": None if place.path is None else str(place.path)}


def _line(name: str, place: Place | str) -> str:
    found = place if isinstance(place, str) else WORDS.get(place.kind) or f"in the {place.kind}"
    return f"{IMAGE_SETS[name].title}: {found}"


def _summary(collection: Collection, places: list[Place]) -> str:
    there = sum(place.kind == "folder" for place in places)
    below = f"in the folder, below {collection.folder}"
    return f"{collection.title}: {there} of {len(places)} {below}"
