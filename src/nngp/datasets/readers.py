"""From the files of a set to its images and labels, one function for each form; every array is
checked against what the set should be."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.datasets.catalogue import BATCHES, ImageSet
from nngp.datasets.formats import (
    Batch,
    Bytes,
    from_idx,
    from_pickle,
    from_planes,
    from_records,
)
from nngp.datasets.integrity import arrays, contents, members, reading

Labels = NDArray[np.int64]
Parts = tuple[Bytes, Labels, Bytes, Labels]  # training images and labels, test images and labels
TRAINING_BATCHES = len(BATCHES) - 1


def read_npz(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """x_train, y_train, x_test, y_test in one archive."""
    (path,) = paths
    stored = arrays(path, ("x_train", "y_train", "x_test", "y_test"))
    with reading(path):
        train = _checked(entry, (stored["x_train"], stored["y_train"]), entry.train)
        return *train, *_checked(entry, (stored["x_test"], stored["y_test"]), entry.test)


def read_idx_files(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Four files: images and labels to train on, images and labels to test on."""
    parts = []
    for path, dimensions in zip(paths, (3, 1, 3, 1), strict=True):
        data = contents(path, entry.md5[path.name])
        with reading(path):
            parts.append(from_idx(data, dimensions))
    with reading(paths[1]):
        train = _checked(entry, (parts[0], parts[1]), entry.train)
    with reading(paths[3]):
        return *train, *_checked(entry, (parts[2], parts[3]), entry.test)


def read_packed(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Six archives of packed colour planes."""

    def batch(path: Path) -> Batch:
        stored = arrays(path, ("d", "y"))
        with reading(path):
            return from_planes(stored["d"]), stored["y"]

    return _batches(entry, paths, batch)


def read_binary(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Six files of records."""
    return _batches(entry, paths, lambda path: _decoded(entry, path, from_records))


def read_pickled(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """Six pickles."""
    return _batches(entry, paths, lambda path: _decoded(entry, path, from_pickle))


def _decoded(entry: ImageSet, path: Path, decode: Callable[[bytes], Batch]) -> Batch:
    data = contents(path, entry.md5[path.name])
    with reading(path):
        return decode(data)


def read_binary_archive(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """The archive of the binary batches."""
    names = [f"cifar-10-batches-bin/{batch}.bin" for batch in BATCHES]
    return _archive(entry, paths[0], names, from_records)


def read_pickled_archive(entry: ImageSet, paths: Sequence[Path]) -> Parts:
    """The archive of the pickled batches."""
    names = [f"cifar-10-batches-py/{batch}" for batch in BATCHES]
    return _archive(entry, paths[0], names, from_pickle)


def _archive(
    entry: ImageSet, path: Path, names: Sequence[str], decode: Callable[[bytes], Batch]
) -> Parts:
    data = dict(zip(names, members(path, names, entry.md5[path.name]), strict=True))

    def batch(member: Path) -> Batch:
        with reading(member):
            return decode(data[member.relative_to(path).as_posix()])

    return _batches(entry, [path / name for name in names], batch)


def _batches(entry: ImageSet, paths: Sequence[Path], read: Callable[[Path], Batch]) -> Parts:
    """All batches, two at a time (unzipping does not hold the interpreter's lock)."""
    sizes = [entry.train // TRAINING_BATCHES] * TRAINING_BATCHES + [entry.test]

    def checked(path: Path, size: int) -> tuple[Bytes, Labels]:
        batch = read(path)
        with reading(path):
            return _checked(entry, batch, size)

    with ThreadPoolExecutor(2) as pool:
        *train, test = pool.map(checked, paths, sizes)
    return (
        np.concatenate([images for images, _ in train]),
        np.concatenate([labels for _, labels in train]),
        *test,
    )


def _checked(entry: ImageSet, batch: tuple[Any, Any], count: int) -> tuple[Bytes, Labels]:
    """Images and labels of one part, if they are what they should be."""
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
