"""Layouts in which an image set may lie in a folder, and the search for them.

For digits and clothes: one .npz as Keras has it, or the four idx files, gzipped or not, as
torchvision, Keras or the authors lay them out. For CIFAR-10: packed .npz batches, the binary or the
pickled batches, or either archive. Original files must have the published checksums.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nngp_paper.datasets.catalogue import (
    BATCHES,
    BINARY_TAR,
    CIFAR10,
    IDX_FILES,
    IMAGE_SETS,
    PYTHON_TARS,
    ImageSet,
)
from nngp_paper.datasets.files import md5_of, readable_errors
from nngp_paper.datasets.formats import from_pickle, from_records
from nngp_paper.datasets.readers import (
    Parts,
    read_archive,
    read_batches,
    read_idx_files,
    read_one_npz,
    read_packed,
)

Reader = Callable[[ImageSet, Sequence[Path]], Parts]


@dataclass(frozen=True)
class Layout:
    """Files that make up a set: for each, the names below a folder that it may have."""

    files: tuple[tuple[str, ...], ...]
    read: Reader


@dataclass(frozen=True)
class ImageFiles:
    """Files of an image set in a folder, not read yet."""

    entry: ImageSet
    paths: tuple[Path, ...]
    reader: Reader

    def read(self) -> Parts:
        return self.reader(self.entry, self.paths)


def find(entry: ImageSet, folder: Path, *, incomplete: bool = False) -> ImageFiles | None:
    """Find the first layout of which every file is in the folder, or None. Raises FileNotFoundError
    if some files of a layout are there and others are missing, unless `incomplete`."""
    problem = ""
    for layout in layouts(entry):
        paths = [_first(folder, names) for names in layout.files]
        there = [path for path in paths if path is not None]
        if not there or _belongs_to_another(entry, there):
            continue
        if len(there) == len(paths):
            return ImageFiles(entry, tuple(there), layout.read)
        missing = layout.files[paths.index(None)][0]
        problem = problem or (
            f"{folder} has {there[0].relative_to(folder)} but not {missing}, which {entry.name} "
            "needs too; put it there"
        )
    if problem and not incomplete:
        raise FileNotFoundError(problem)
    return None


def layouts(entry: ImageSet) -> list[Layout]:
    """The layouts of a set, in the order of preference."""
    if entry.name == CIFAR10.name:
        return _batch_layouts()
    idx = [
        Layout(tuple((path, f"{path}.gz") for path in _paths(below, IDX_FILES)), read_idx_files)
        for below in entry.folders
    ]
    return [Layout(((f"{entry.name}.npz",),), read_one_npz), *idx]


def _batch_layouts() -> list[Layout]:
    """The layouts of CIFAR-10."""
    binary, pickled = "cifar-10-batches-bin", "cifar-10-batches-py"
    forms: tuple[tuple[tuple[str, ...], str, Reader], ...] = (
        (("cifar10", ""), ".npz", read_packed),
        ((binary, ""), ".bin", partial(read_batches, decode=from_records)),
        ((pickled, f"{pickled}-target/{pickled}"), "", partial(read_batches, decode=from_pickle)),
    )
    batches = [
        Layout(tuple((f"{path}{end}",) for path in _paths(below, BATCHES)), read)
        for folders, end, read in forms
        for below in folders
    ]
    archives = (
        ((BINARY_TAR,), [f"{binary}/{batch}.bin" for batch in BATCHES], from_records),
        (PYTHON_TARS, [f"{pickled}/{batch}" for batch in BATCHES], from_pickle),
    )
    return batches + [
        Layout((names,), partial(read_archive, members=members, decode=decode))
        for names, members, decode in archives
    ]


def _paths(below: str, names: Sequence[str]) -> list[str]:
    return [f"{below}/{name}" if below else name for name in names]


def _first(folder: Path, names: Sequence[str]) -> Path | None:
    for path in (folder / name for name in names):
        if path.is_file():
            return path
        if os.path.lexists(path):
            raise FileNotFoundError(
                f"{path} is no file (a folder, or a link to nowhere); remove it"
            )
    return None


def _belongs_to_another(entry: ImageSet, paths: Sequence[Path]) -> bool:
    """Whether the checksum of one file is that of another set: MNIST and Fashion-MNIST share their
    file names."""
    path = min(paths, key=lambda path: path.stat().st_size)
    others = [other for other in IMAGE_SETS.values() if other.name != entry.name]
    if all(path.name not in other.md5 for other in others):
        return False
    with readable_errors(path):
        found = md5_of(path)
    theirs = any(other.md5.get(path.name) == found for other in others)
    return theirs and entry.md5.get(path.name) != found
