"""Readers from the files of an image set to checked arrays, one function for each layout."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nngp_paper.datasets.catalogue import BATCHES, ImageSet
from nngp_paper.datasets.files import read_npz, read_original, read_tar, readable_errors
from nngp_paper.datasets.formats import Batch, Bytes, from_idx, from_planes

Labels = NDArray[np.int64]
Parts = tuple[Bytes, Labels, Bytes, Labels]  # training images and labels, test images and labels
Decoder = Callable[[bytes], Batch]
TRAINING_BATCHES = len(BATCHES) - 1
HEADER = 10_000  # bytes before and after the values of a file
NAMES = 200  # bytes beside the pixels of an image: its label, the name of its file


def read_one_npz(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Read one archive with x_train, y_train, x_test and y_test."""
    (path,) = paths
    stored = read_npz(path, ("x_train", "y_train", "x_test", "y_test"))
    with readable_errors(path):
        train = _checked(entry, (stored["x_train"], stored["y_train"]), entry.train)
        return *train, *_checked(entry, (stored["x_test"], stored["y_test"]), entry.test)


def read_idx_files(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Read four idx files: training images and labels, test images and labels."""
    parts = []
    counts = (entry.train, entry.train, entry.test, entry.test)
    for path, dimensions, count in zip(paths, (3, 1, 3, 1), counts, strict=True):
        most = HEADER + count * math.prod(entry.shape)  # labels take less, and are told apart later
        data = read_original(path, entry.md5[path.name], most)
        with readable_errors(path):
            parts.append(from_idx(data, dimensions))
    with readable_errors(paths[1]):
        train = _checked(entry, (parts[0], parts[1]), entry.train)
    with readable_errors(paths[3]):
        return *train, *_checked(entry, (parts[2], parts[3]), entry.test)


def read_packed(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Read six .npz archives of packed colour planes."""

    def batch(path: Path) -> Batch:
        stored = read_npz(path, ("d", "y"))
        with readable_errors(path):
            return from_planes(stored["d"]), stored["y"]

    return _join(entry, paths, batch)


def read_batches(entry: ImageSet, paths: Sequence[Path], *, decode: Decoder) -> Parts:
    """Read six original files of CIFAR-10."""

    def batch(path: Path) -> Batch:
        data = read_original(path, entry.md5[path.name], _most_in_batch(entry))
        with readable_errors(path):
            return decode(data)

    return _join(entry, paths, batch)


def read_archive(
    entry: ImageSet, paths: Sequence[Path], *, members: Sequence[str], decode: Decoder
) -> Parts:
    """Read a .tar.gz archive with six original files of CIFAR-10."""
    (path,) = paths
    inside = [path / name for name in members]
    data = dict(zip(inside, _members(entry, path, members), strict=True))

    def batch(member: Path) -> Batch:
        with readable_errors(member):
            return decode(data[member])

    return _join(entry, inside, batch)


def _join(entry: ImageSet, paths: Sequence[Path], read: Callable[[Path], Batch]) -> Parts:
    """Read and check all batches, two at a time (unzipping releases the interpreter's lock)."""
    sizes = [entry.train // TRAINING_BATCHES] * TRAINING_BATCHES + [entry.test]

    def checked(path: Path, size: int) -> tuple[Bytes, Labels]:
        batch = read(path)
        with readable_errors(path):
            return _checked(entry, batch, size)

    with ThreadPoolExecutor(2) as pool:
        *train, test = pool.map(checked, paths, sizes)
    images, labels = zip(*train, strict=True)
    return np.concatenate(images), np.concatenate(labels), *test


def _members(entry: ImageSet, path: Path, members: Sequence[str]) -> list[bytes]:
    most = (len(members) + 1) * _most_in_batch(entry)  # there are a page and names of classes, too
    return read_tar(path, members, entry.md5[path.name], most)


def _most_in_batch(entry: ImageSet) -> int:
    """Bytes of an original batch: pixels, labels and names of files."""
    return _batch_size(entry) * (math.prod(entry.shape) + NAMES) + HEADER


def _batch_size(entry: ImageSet) -> int:
    return max(entry.train // TRAINING_BATCHES, entry.test)


def _checked(entry: ImageSet, batch: Batch, count: int) -> tuple[Bytes, Labels]:
    """Check the types, shapes and labels of some images."""
    images, labels = batch
    shape, classes = (count, *entry.shape), len(entry.class_names)
    if images.dtype != np.uint8 or images.shape != shape:
        raise ValueError(f"its images are {images.dtype} {images.shape}, expected uint8 {shape}")
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError(
            f"its labels are {labels.dtype} {labels.shape}, expected integers ({count},)"
        )
    if len(labels) != count:
        raise ValueError(f"it has {len(labels)} labels for {count} images")
    if labels.min() < 0 or labels.max() >= classes:
        wrong = labels.min() if labels.min() < 0 else labels.max()
        raise ValueError(f"it has a label {wrong}, but labels go from 0 to {classes - 1}")
    return images, labels.astype(np.int64)
