"""A set is found and read alike in every form in which people have it."""

import numpy as np
import pytest
import small_sets
from small_sets import BATCHES, IDX

from nngp_paper import datasets

PLACES = {
    "mnist": ("MNIST/raw", "mnist", ""),
    "fashion_mnist": ("FashionMNIST/raw", "fashion-mnist", "fashion_mnist", ""),
}


def assert_same(images, parts):
    found = (images.train_images, images.train_labels, images.test_images, images.test_labels)
    for ours, theirs in zip(found, parts, strict=True):
        assert np.array_equal(ours, theirs)
    assert [part.dtype for part in found] == [np.uint8, np.int64] * 2


def load(name, folder):
    images = datasets.load(name, folder, download=False)
    assert images.name == name
    assert len(images.class_names) == 10
    return images


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("zipped", [False, True])
def test_idx_files(grey, tmp_path, name, zipped):
    parts, raw, packed = grey[name]
    for number, place in enumerate(PLACES[name]):
        below = tmp_path / str(number)
        small_sets.write(below / place, packed if zipped else raw)
        assert_same(load(name, below), parts)


def test_some_files_gzipped_and_some_not(grey, folder):
    parts, raw, packed = grey["mnist"]
    mixed = {IDX[0]: raw[IDX[0]], **{f"{n}.gz": packed[f"{n}.gz"] for n in IDX[1:]}}
    small_sets.write(folder / "MNIST" / "raw", mixed)
    assert_same(load("mnist", folder), parts)


def test_files_named_alike_are_told_apart(grey, folder):
    small_sets.write(folder, grey["fashion_mnist"][1])
    assert_same(load("fashion_mnist", folder), grey["fashion_mnist"][0])
    with pytest.raises(FileNotFoundError, match="mnist was not found in"):
        load("mnist", folder)


@pytest.mark.parametrize("name", PLACES)
def test_npz(grey, folder, name):
    parts = grey[name][0]
    keys = ("x_train", "y_train", "x_test", "y_test")
    data = small_sets.npz_bytes(**dict(zip(keys, parts, strict=True)))
    (folder / f"{name}.npz").write_bytes(data)
    assert_same(load(name, str(folder)), parts)


def together(batches):
    *train, test = batches
    return (*(np.concatenate(part) for part in zip(*train, strict=True)), *test)


def batch_files(batches, kind):
    write, end = {
        "packed": (small_sets.packed, ".npz"),
        "binary": (small_sets.records, ".bin"),
        "pickled": (small_sets.pickled, ""),
    }[kind]
    return {f"{n}{end}": write(*batch) for n, batch in zip(BATCHES, batches, strict=True)}


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("packed", "cifar10"),
        ("packed", ""),
        ("binary", "cifar-10-batches-bin"),
        ("binary", ""),
        ("pickled", "cifar-10-batches-py"),
        ("pickled", "cifar-10-batches-py-target/cifar-10-batches-py"),
    ],
)
def test_batches(coloured, adopt, folder, kind, place):
    files = batch_files(coloured, kind)
    adopt("cifar10", files)
    small_sets.write(folder / place, files)
    assert_same(load("cifar10", folder), together(coloured))


@pytest.mark.parametrize(
    ("kind", "inside", "archive"),
    [
        ("binary", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
        ("pickled", "cifar-10-batches-py", "cifar-10-python.tar.gz"),
        ("pickled", "cifar-10-batches-py", "cifar-10-batches-py.tar.gz"),
        ("pickled", "cifar-10-batches-py", "cifar-10-batches-py-target_archive"),
    ],
)
def test_archives(coloured, adopt, folder, kind, inside, archive):
    files = {f"{inside}/{n}": data for n, data in batch_files(coloured, kind).items()}
    tar = {archive: small_sets.tar_bytes({f"{inside}/readme.html": b"hello", **files})}
    adopt("cifar10", tar)
    small_sets.write(folder, tar)
    assert_same(load("cifar10", folder), together(coloured))
    assert [path.name for path in folder.iterdir()] == [archive]


def test_the_variable_names_the_folder_and_the_argument_wins(grey, tmp_path, monkeypatch):
    parts, raw, _ = grey["mnist"]
    there = small_sets.write(tmp_path / "there", raw)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("NNGP_DATA", str(there))
    assert_same(load("mnist", None), parts)
    with pytest.raises(FileNotFoundError, match=f"not found in {tmp_path / 'empty'} or"):
        load("mnist", tmp_path / "empty")


def test_the_cache_comes_after_the_folder(grey, cache, folder):
    parts, raw, _ = grey["mnist"]
    small_sets.write(cache / "mnist", raw)
    assert datasets.where("mnist", folder) == datasets.Place("cache", cache / "mnist" / IDX[0])
    assert_same(load("mnist", folder), parts)
    other = [np.roll(part, 1, axis=0) for part in parts]
    keys = ("x_train", "y_train", "x_test", "y_test")
    data = small_sets.npz_bytes(**dict(zip(keys, other, strict=True)))
    (folder / "mnist.npz").write_bytes(data)
    small_sets.write(folder, raw)
    assert datasets.where("mnist", folder) == datasets.Place("folder", folder / "mnist.npz")
    assert_same(load("mnist", folder), other)


def test_the_cache_is_the_users(monkeypatch, tmp_path):
    from nngp_paper.files import cache_folder

    assert cache_folder() == tmp_path / "cache"
    monkeypatch.setenv("NNGP_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "nngp"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "nngp"


def test_digits_are_scikit_learns():
    from sklearn.datasets import load_digits

    stored = load_digits()
    digits = datasets.load("digits", "/nowhere")
    assert np.array_equal(np.concatenate([digits.train_images, digits.test_images]), stored.images)
    assert np.array_equal(np.concatenate([digits.train_labels, digits.test_labels]), stored.target)
    assert (len(digits.train_labels), len(digits.test_labels)) == (1297, 500)
    assert datasets.where("digits").kind == "scikit-learn"


def test_names():
    names = datasets.names()
    assert set(names) >= {"cifar10", "digits", "fashion_mnist", "mnist", "uci/boston"}
    assert [sum(n.startswith(p) for n in names) for p in ("uci/", "uci_more/", "uci_class/")] == [
        9,
        31,
        116,
    ]
    assert list(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("minst", "'mnist'"), ("boston", "'uci/boston'"), ("Cifar10", "'cifar10'"), ("?", "names()")],
)
def test_an_unknown_name(name, hint):
    for ask in (datasets.load, datasets.split, datasets.where):
        with pytest.raises(ValueError, match=f"there is no data set '[^']*'; .*{hint[:-2]}"):
            ask(name)
