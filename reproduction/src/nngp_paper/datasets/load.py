"""Loading a data set by its name, from the first place that has it: the user's folder, the cache,
or a server."""

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nngp_paper.datasets.catalogue import IMAGE_SETS, SKLEARN_DIGITS, ImageSet
from nngp_paper.datasets.download import fetch
from nngp_paper.datasets.files import DATA, AnyPath, data_folder
from nngp_paper.datasets.folder import ImageFiles, find
from nngp_paper.datasets.readers import Parts
from nngp_paper.datasets.tables import COLLECTIONS, Table, collection_of, read_table
from nngp_paper.files import cache_folder


@dataclass(frozen=True)
class Images:
    """Labelled images as they come: uint8 (n, height, width) or (n, height, width, 3).

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> digits = datasets.load("digits")
    >>> digits.train_images.dtype, digits.test_images.shape, digits.class_names[:3]
    (dtype('uint8'), (500, 8, 8), ('0', '1', '2'))
    """

    name: str
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    class_names: tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """The origin of a set: "folder", "cache", "download", "scikit-learn" or "nowhere"; and its
    file, or the first of them, where there is one.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> datasets.where("digits")
    Place(kind='scikit-learn', path=None)
    """

    kind: Literal["folder", "cache", "download", "scikit-learn", "nowhere"]
    path: Path | None = None


def names() -> tuple[str, ...]:
    """The names of all data sets, in alphabetical order.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> [name for name in datasets.names() if "/" not in name]
    ['cifar10', 'digits', 'fashion_mnist', 'mnist']
    """
    tables = [name for collection in COLLECTIONS for name in collection.names()]
    return tuple(sorted([*IMAGE_SETS, *tables]))


def load(
    name: str,
    data: AnyPath | None = None,
    *,
    download: bool = True,
    progress: bool | None = None,
) -> Images | Table:
    """Load a data set: `Images`, or a `Table` for the UCI sets.

    Parameters
    ----------
    name : str
        One of `names()`.
    data : path, optional
        A folder that may hold the set; by default the one that the variable NNGP_DATA names.
        After it comes the cache: NNGP_CACHE, or nngp in the user's cache folder.
    download : bool
        Whether to download a set of images that is in neither place into the cache.
        (UCI tables are read from a folder only: there are no published checksums for them.)
    progress : bool, optional
        Whether to show a bar while downloading; by default on a terminal.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> datasets.load("digits").train_images.shape
    (1297, 8, 8)
    """
    if name in IMAGE_SETS:
        return load_images(name, data, download=download, progress=progress)
    collection = collection_of(checked_name(name))
    assert collection is not None  # as the name is known
    folder = data_folder(data)
    path = None if folder is None else folder / collection.file(name)
    if path is None or not path.is_file():
        reason = "no folder was named" if path is None else f"{path} is not there"
        raise FileNotFoundError(
            f"{name} was not found ({reason}), and there is no server with published checksums to "
            f"download it from; put it at {collection.file(name)} in a folder, and name that "
            f"folder with data= (on the command line --data) or {DATA}"
        )
    return read_table(collection, name, path)


def load_images(
    name: str,
    data: AnyPath | None = None,
    *,
    download: bool = True,
    progress: bool | None = None,
) -> Images:
    """Load a set of images; the parameters are those of `load`."""
    entry = IMAGE_SETS[name]
    if entry is SKLEARN_DIGITS:
        return Images(name, *_digits(), entry.class_names)
    folder = data_folder(data)
    found = _find(entry, folder)
    if found is None:
        _download(entry, folder, download, progress)
        found = _find(entry, folder)
        assert found is not None  # as every file has just been downloaded
    return Images(name, *found[1].read(), entry.class_names)


def where(name: str, data: AnyPath | None = None) -> Place:
    """Find where a set would come from, without reading or downloading it.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> datasets.where("digits").kind
    'scikit-learn'
    """
    folder = data_folder(data)
    collection = collection_of(checked_name(name))
    if collection is not None:
        path = None if folder is None else folder / collection.file(name)
        return Place("folder", path) if path is not None and path.is_file() else Place("nowhere")
    entry = IMAGE_SETS[name]
    if entry is SKLEARN_DIGITS:
        return Place("scikit-learn")
    found = _find(entry, folder)
    return Place("download") if found is None else Place(found[0], found[1].paths[0])


def checked_name(name: str) -> str:
    """Return the name, or raise ValueError with similar names if no set has it."""
    if name in names():
        return name
    near = difflib.get_close_matches(str(name).lower(), names(), n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}"
        if near
        else "see nngp_paper.datasets.names()"
    )
    raise ValueError(f"there is no data set {name!r}; {hint}")


def _find(
    entry: ImageSet, folder: Path | None
) -> tuple[Literal["folder", "cache"], ImageFiles] | None:
    """Find the files of a set in the user's folder, else in the cache."""
    if folder is not None and (found := find(entry, folder)):
        return "folder", found
    cached = find(entry, cache_folder() / entry.name, incomplete=True)
    return None if cached is None else ("cache", cached)


def _download(entry: ImageSet, folder: Path | None, allowed: bool, progress: bool | None) -> None:
    """Download a set that was not found, or raise OSError with the files to get by hand."""
    cache = cache_folder() / entry.name
    missing = f"{entry.name} was not found in {f'{folder} or ' if folder else ''}{cache}"
    remedy = (
        f"put {', '.join(entry.downloads)} (or {entry.name} in another of its usual forms) into a "
        f"folder, and name that folder with data= (on the command line --data) or {DATA}"
    )
    if not allowed:
        raise FileNotFoundError(f"{missing}, and was not to be downloaded; {remedy}")
    try:
        fetch(entry, cache, progress)
    except ConnectionError as reason:
        raise ConnectionError(
            f"{missing}, and could not be downloaded ({reason}); {remedy}"
        ) from None


def _digits() -> Parts:
    """The digits of scikit-learn in their order; the last 500 are the test set."""
    from sklearn.datasets import load_digits

    stored = load_digits()
    images, labels = stored.images.astype(np.uint8), stored.target.astype(np.int64)
    n = SKLEARN_DIGITS.train
    return images[:n], labels[:n], images[n:], labels[n:]
