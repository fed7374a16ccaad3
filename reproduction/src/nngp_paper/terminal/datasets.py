"""`nngp-paper datasets`: the data sets that are known by name, and the source of each."""

from pathlib import Path

from nngp_paper.datasets import Place, where
from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.datasets.files import data_folder
from nngp_paper.datasets.tables import COLLECTIONS, Collection
from nngp_paper.files import cache_folder
from nngp_paper.terminal.options import DatasetsOptions
from nngp_paper.terminal.output import print_result

SOURCES = {
    "download": "not here; downloaded when it is asked for",
    "scikit-learn": "comes with scikit-learn",
}


def datasets(options: DatasetsOptions) -> None:
    """Print a line for each set of images and each collection of tables; with JSON, every set."""
    places = {name: _place(name, options.data) for name in IMAGE_SETS}
    tables = {c.prefix: [where(name, options.data) for name in c.names()] for c in COLLECTIONS}
    folder = data_folder(options.data)
    facts: dict[str, object] = {"folder": folder, "cache": cache_folder()}
    if options.as_json:
        for collection in COLLECTIONS:
            places |= dict(zip(collection.names(), tables[collection.prefix], strict=True))
        facts["sets"] = {name: _facts(place) for name, place in places.items()}
    else:
        facts["folder"] = folder or "none (name one with --data or NNGP_DATA)"
        facts |= {name: _line(name, place) for name, place in places.items()}
        facts |= {f"{c.prefix}/...": _summary(c, tables[c.prefix]) for c in COLLECTIONS}
    print_result("data sets", facts, options.as_json)


def _place(name: str, data: Path | None) -> Place | str:
    """The location of a set, or the sentence that says which of its files is missing."""
    try:
        return where(name, data)
    except OSError as error:
        return str(error)


def _facts(place: Place | str) -> dict[str, str | None]:
    if isinstance(place, str):
        return {"place": "incomplete", "path": None, "problem": place}
    return {"place": place.kind, "path": None if place.path is None else str(place.path)}


def _line(name: str, place: Place | str) -> str:
    found = place if isinstance(place, str) else SOURCES.get(place.kind) or f"in the {place.kind}"
    return f"{IMAGE_SETS[name].title}: {found}"


def _summary(collection: Collection, places: list[Place]) -> str:
    there = sum(place.kind == "folder" for place in places)
    below = f"in the folder, below {collection.folder}"
    return f"{collection.title}: {there} of {len(places)} {below}"
