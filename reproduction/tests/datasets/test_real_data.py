"""The real sets, where they are: counts, and the official checksums of what was read."""

import numpy as np
import pytest
import small_sets

from nngp_paper import datasets
from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.datasets.formats import from_planes

COUNTS = {
    "mnist": [
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    ],
    "fashion_mnist": [[6000] * 10, [1000] * 10],
}


@pytest.mark.parametrize("name", COUNTS)
def test_grey_images(data_folder, name):
    images = datasets.load(name, data_folder(f"{name}.npz"), download=False)
    labels = (images.train_labels, images.test_labels)
    assert [np.bincount(part).tolist() for part in labels] == COUNTS[name]
    parts = (images.train_images, labels[0], images.test_images, labels[1])
    for file, part in zip(small_sets.IDX, parts, strict=True):
        assert (
            small_sets.md5(small_sets.idx_bytes(part.astype(np.uint8)))
            == IMAGE_SETS[name].md5[file]
        )


def test_a_batch_of_cifar(data_folder):
    with np.load(data_folder("cifar10/test_batch.npz") / "cifar10" / "test_batch.npz") as batch:
        images, labels = from_planes(batch["d"]), batch["y"]
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    binary = np.concatenate([labels[:, None], rows], axis=1).tobytes()
    assert small_sets.md5(binary) == IMAGE_SETS["cifar10"].md5["test_batch.bin"]


def test_the_papers_subset_of_mnist(data_folder):
    got = datasets.split("mnist", 1000, data=data_folder("mnist.npz"), test=10, download=False)
    assert np.bincount(got.labels).tolist() == [100] * 10
    assert (len(got.X), len(got.X_val), len(got.X_test)) == (1000, 10_000, 10)
    assert np.allclose(np.einsum("ij,ij->i", got.X, got.X), 784)
    assert np.abs(got.X.mean(axis=1)).max() < 1e-12
    assert got.labels_val[:5].tolist() == [5, 0, 4, 1, 9]  # as MNIST begins
    assert got.labels_test.tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]


SHAPES = {
    "uci/boston": ((506, 13), 20, 51),
    "uci/yacht": ((308, 6), 20, 31),
    "uci_more/servo": ((167, 4), 10, None),
    "uci_class/iris": ((150, 4), 4, None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_tables(data_folder, name):
    table = datasets.load(name, data_folder("uci_regression", "uci_classification"))
    shape, splits, test = SHAPES[name]
    assert (table.X.shape, len(table.splits)) == (shape, splits)
    assert test in (None, len(table.splits[0][1]))


def test_every_table_that_is_listed_is_there(data_folder):
    folders = ("uci_regression", "uci_regression_more", "uci_classification")
    folder = data_folder(*folders)
    files = {path for name in folders for path in (folder / name).glob("*.npz")}
    tables = [name for name in datasets.names() if "/" in name]
    assert {datasets.where(name, folder).path for name in tables} == files
