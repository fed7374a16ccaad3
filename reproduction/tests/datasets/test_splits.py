"""The paper's splits: which images, in which order, and how they are preprocessed."""

from dataclasses import replace

import numpy as np
import pytest
import small_sets

import nngp
from nngp_paper import datasets
from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.datasets.split import balanced


def on_sphere(images):
    """Each image minus its mean, over its standard deviation."""
    rows = images.reshape(len(images), -1).astype(float)
    return np.stack([(row - row.mean()) / row.std() for row in rows])


def test_the_first_training_images_of_mnist_are_validation(grey, folder):
    (x, y, x_test, y_test), raw, _ = grey["mnist"]
    small_sets.write(folder, raw)
    got = datasets.split("mnist", data=folder)
    for ours, theirs in ((got.X, x[20:]), (got.X_val, x[:20]), (got.X_test, x_test)):
        assert np.allclose(ours, on_sphere(theirs), atol=1e-12)
        assert ours.dtype == np.float64
    for ours, theirs in ((got.labels, y[20:]), (got.labels_val, y[:20]), (got.labels_test, y_test)):
        assert np.array_equal(ours, theirs)
        assert ours.dtype == np.int64
    assert got.name == "mnist"
    assert got.class_names == tuple("0123456789")


def test_the_last_training_images_of_cifar_are_validation(coloured, folder):
    files = {
        f"{n}.npz": small_sets.packed(*b) for n, b in zip(small_sets.BATCHES, coloured, strict=True)
    }
    small_sets.write(folder, files)
    got = datasets.split("cifar10", data=folder, test=4)
    x, y = (np.concatenate(part) for part in zip(*coloured[:5], strict=True))
    assert np.allclose(got.X, on_sphere(x[:40]), atol=1e-12)
    assert np.allclose(got.X_val, on_sphere(x[40:]), atol=1e-12)
    assert np.array_equal(got.labels_val, y[40:])
    assert np.allclose(got.X_test, on_sphere(coloured[5][0][:4]), atol=1e-12)
    assert np.array_equal(got.labels_test, coloured[5][1][:4])


def test_the_mean_pixel_of_the_training_set_makes_no_difference(grey, folder):
    """The authors subtract it first."""
    (x, *_), raw, _ = grey["mnist"]
    small_sets.write(folder, raw)
    shifted = x[20:].reshape(40, -1) - x[20:].mean()
    got = datasets.split("mnist", data=folder)
    assert np.allclose(got.X, nngp.normalize(shifted, center=True), atol=1e-12)


def test_the_catalogue_has_the_papers_numbers():
    numbers = {
        name: (entry.train - entry.validation, entry.validation, entry.test, entry.validation_first)
        for name, entry in IMAGE_SETS.items()
    }
    assert numbers == {
        "cifar10": (45_000, 5_000, 10_000, False),
        "digits": (1000, 297, 500, False),
        "fashion_mnist": (50_000, 10_000, 10_000, True),
        "mnist": (50_000, 10_000, 10_000, True),
    }


def test_digits_in_file_order():
    from sklearn.datasets import load_digits

    stored = load_digits()
    got = datasets.split("digits")
    parts = ((got.X, got.labels), (got.X_val, got.labels_val), (got.X_test, got.labels_test))
    places = (slice(0, 1000), slice(1000, 1297), slice(1297, 1797))
    for (X, labels), place in zip(parts, places, strict=True):
        assert np.allclose(X, on_sphere(stored.images[place]), atol=1e-12)
        assert np.array_equal(labels, stored.target[place])


def test_a_subset_has_the_first_images_of_every_class():
    whole = datasets.split("digits")
    part = datasets.split("digits", np.int64(230), test=7)
    rows = np.sort(np.concatenate([np.flatnonzero(whole.labels == c)[:23] for c in range(10)]))
    assert np.array_equal(part.X, whole.X[rows])
    assert np.array_equal(part.labels, whole.labels[rows])
    assert np.array_equal(part.X_val, whole.X_val)
    assert np.array_equal(part.X_test, whole.X_test[:7])


def taken_one_by_one(labels, n):
    """The rule of `train`, literally: rounds in which each class that has some left gives one."""
    left = {c: list(np.flatnonzero(labels == c)) for c in np.unique(labels)}
    rows = []
    while True:
        for rest in left.values():
            if len(rows) == n:
                return sorted(rows)
            if rest:
                rows.append(rest.pop(0))


def test_uneven_numbers_and_classes_that_run_out():
    labels = np.random.default_rng(1).choice(4, 60, p=(0.05, 0.15, 0.3, 0.5))
    for n in (4, 5, 17, 40, 59, 60):
        assert balanced(labels, n).tolist() == taken_one_by_one(labels, n)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"train": 1001},
            r"must be from 10 \(one of each class\) to 1000, which is all that dig",
        ),
        ({"train": 9}, r"train must be from 10 \(one of each class\) to 1000, .*, got 9"),
        ({"train": 0}, "got 0"),
        ({"test": 501}, "test must be from 1 to 500, which is all that digits has, got 501"),
        ({"test": 0}, "test must be from 1 to 500"),
    ],
)
def test_numbers_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        datasets.split("digits", **options)


@pytest.mark.parametrize("train", [100.0, "100", True])
def test_numbers_that_are_none(train):
    with pytest.raises(TypeError, match="train must be a whole number or None, got"):
        datasets.split("digits", train)


def test_numbers_are_checked_before_anything_is_fetched():
    with pytest.raises(ValueError, match="to 50000, which is all that mnist has"):
        datasets.split("mnist", 50_001)


def test_tables_have_splits_of_their_own():
    with pytest.raises(ValueError, match=r"uci/boston is a table with splits of its own; use nngp"):
        datasets.split("uci/boston")


def test_a_constant_image_is_named_not_nan(grey, folder, adopt):
    x, y, x_test, y_test = grey["mnist"][0]
    x = x.copy()
    x[3] = 77
    raw, _ = small_sets.idx_files((x, y, x_test, y_test))
    adopt("mnist", raw)
    small_sets.write(folder, raw)
    with pytest.raises(
        ValueError, match=r"^mnist, validation images: row 3 is constant, so it has"
    ):
        datasets.split("mnist", data=folder)


def test_targets():
    digits = datasets.split("digits", 10, test=5)
    targets = digits.targets(digits.labels_test)
    assert digits.n_classes == 10
    assert targets.shape == (5, 10)
    for row, label in zip(targets, digits.labels_test, strict=True):
        assert row.tolist() == [0.9 if c == label else -0.1 for c in range(10)]
    four = replace(digits, class_names=tuple("abcd"))
    assert four.targets([1]).tolist() == [[-0.25, 0.75, -0.25, -0.25]]
    for wrong in ([10], [-1]):
        with pytest.raises(ValueError, match="labels must go from 0 to 9"):
            digits.targets(wrong)
    for wrong in ([1.0], [[1]]):
        with pytest.raises(TypeError, match="labels must be whole numbers"):
            digits.targets(wrong)
