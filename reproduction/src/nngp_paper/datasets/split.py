"""The paper's splits of images into training, validation and test inputs, ready for a kernel."""

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp import normalize
from nngp_paper.arrays import Array, Index
from nngp_paper.datasets.catalogue import IMAGE_SETS, ImageSet
from nngp_paper.datasets.files import AnyPath
from nngp_paper.datasets.load import checked_name, load_images
from nngp_paper.numbers import check_unmasked

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Inputs (n, d) in float64 with x·x/d = 1, and labels from 0, to train on, to choose a network
    with, and to test on.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> digits = datasets.split("digits", 200)
    >>> digits.n_classes, digits.X_val.shape
    (10, (297, 64))
    >>> float((digits.X[0] @ digits.X[0] / digits.X.shape[1]).round(6))
    1.0
    """

    name: str
    X: Array
    labels: Labels
    X_val: Array
    labels_val: Labels
    X_test: Array
    labels_test: Labels
    class_names: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        return len(self.class_names)

    def first(self, n: int) -> "Split":
        """This split with n training images, those that `split` takes.

        Examples
        --------
        >>> from nngp_paper import datasets
        >>> digits = datasets.split("digits")
        >>> digits.first(20).labels.tolist().count(3)  # two of each class
        2
        """
        count = _count("n", n, self.n_classes, len(self.labels), self.name)
        rows = balanced(self.labels, count)
        return replace(self, X=self.X[rows], labels=self.labels[rows])

    def targets(self, labels: ArrayLike) -> Array:
        """Regression targets: one-hot minus 1/n_classes (0.9 and -0.1 for ten classes).

        Examples
        --------
        >>> from nngp_paper import datasets
        >>> digits = datasets.split("digits", 100)
        >>> digits.targets([2])[0, :4].round(3).tolist()
        [-0.1, -0.1, 0.9, -0.1]
        """
        check_unmasked(labels, "labels")
        rows = np.asarray(labels)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            raise TypeError(f"labels must be whole numbers in a row, got {rows.dtype} {rows.shape}")
        if len(rows) and not 0 <= rows.min() <= rows.max() < self.n_classes:
            raise ValueError(f"labels must go from 0 to {self.n_classes - 1}, as in this data set")
        return np.eye(self.n_classes)[rows] - 1 / self.n_classes


def split(
    name: str,
    train: int | None = None,
    *,
    data: AnyPath | None = None,
    test: int | None = None,
    download: bool = True,
    progress: bool | None = None,
) -> Split:
    """The paper's training, validation and test sets, preprocessed as the authors did.

    Validation sets: the first 10,000 training images of MNIST and Fashion-MNIST, the last 5,000 of
    CIFAR-10 (which ones the authors took is not known), the last 297 of the 1297 digits. The
    other training images, 50,000, 45,000 or 1,000, are trained on.

    Every image is centred by its own mean and scaled to x·x/d = 1. The authors first subtract the
    mean pixel of the training set; that is one number, so the centring undoes it, and it is left
    out here.

    Parameters
    ----------
    name : str
        "mnist", "fashion_mnist", "cifar10" or "digits".
    train : int, optional
        Train on this many images only, in equal parts: the first image of each class, then the
        second of each, and so on until there are enough. So with ten classes 1,000 are the first
        100 of each; of 1,005, classes 0 to 4 have one more; and a class that has run out leaves
        its turns to the others. Images stay in the order of the file. By default all.
    test : int, optional
        Test on the first so many test images only. By default all.
    data, download, progress
        Where the images come from, as for `load`.

    Examples
    --------
    >>> from nngp_paper import datasets
    >>> digits = datasets.split("digits", 100)
    >>> digits.X.shape, digits.X_val.shape, digits.X_test.shape
    ((100, 64), (297, 64), (500, 64))
    """
    entry = _image_set(name)
    n = _count("train", train, len(entry.class_names), entry.most_training, name)
    m = _count("test", test, 1, entry.test, name)
    images = load_images(name, data, download=download, progress=progress)
    kept, held_out = _hold_out(entry)
    rows = kept[balanced(images.train_labels[kept], n)]

    def inputs(part: str, pixels: NDArray[np.uint8]) -> Array:
        try:
            return normalize(pixels.reshape(len(pixels), -1), center=True)
        except ValueError as error:  # a constant image
            raise ValueError(f"{name}, {part} images: {error}") from None

    return Split(
        name,
        inputs("training", images.train_images[rows]),
        images.train_labels[rows],
        inputs("validation", images.train_images[held_out]),
        images.train_labels[held_out],
        inputs("test", images.test_images[:m]),
        images.test_labels[:m],
        images.class_names,
    )


def balanced(labels: NDArray[np.integer], n: int) -> Index:
    """The rows of n labels, ascending: the first of each class, then the second of each, ..."""
    return np.sort(in_turns(labels)[:n])


def in_turns(labels: NDArray[np.integer]) -> Index:
    """All rows in the order in which training sets take them: the first of each class, then the
    second of each, ..."""
    by_class = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_class], labels[by_class])
    turn = np.empty(len(labels), np.intp)
    turn[by_class] = np.arange(len(labels)) - starts
    return np.lexsort((labels, turn))


def _hold_out(entry: ImageSet) -> tuple[Index, Index]:
    """Rows of the training images to train on, and of those held out for validation."""
    rows = np.arange(entry.train)
    if entry.validation_first:
        return rows[entry.validation :], rows[: entry.validation]
    return rows[: -entry.validation], rows[-entry.validation :]


def _image_set(name: str) -> ImageSet:
    if checked_name(name) not in IMAGE_SETS:
        raise ValueError(
            f"{name} is a table with splits of its own; use "
            f"nngp_paper.datasets.load({name!r}).splits"
        )
    return IMAGE_SETS[name]


def _count(option: str, value: int | None, least: int, most: int, name: str) -> int:
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{option} must be a whole number or None, got {value!r}")
    number = int(value)
    if not least <= number <= most:
        reason = " (one of each class)" if option == "train" else ""
        raise ValueError(
            f"{option} must be from {least}{reason} to {most}, which is all that {name} has, "
            f"got {number}"
        )
    return number
