"""Small sets in the place of the large ones, an empty cache, and no folder but the test's."""

from dataclasses import replace

import pytest
import small_sets

from nngp_paper.datasets import download
from nngp_paper.datasets.catalogue import CIFAR10, FASHION_MNIST, IMAGE_SETS, MNIST


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of downloads; the user's own folders are not used."""
    monkeypatch.delenv("NNGP_DATA", raising=False)
    monkeypatch.setenv("NNGP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.001)
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def adopt(monkeypatch):
    """Make files the published ones of a set: their sums and sizes go into the catalogue."""

    def change(name, files, **more):
        sums = {file: small_sets.md5(data) for file, data in files.items()}
        entry = IMAGE_SETS[name]
        sizes = {file: len(files[file]) for file in entry.downloads if file in files}
        entry = replace(entry, md5={**entry.md5, **sums}, downloads=sizes, **more)
        monkeypatch.setitem(IMAGE_SETS, name, entry)
        return entry

    return change


@pytest.fixture
def grey(monkeypatch, adopt):
    """Small MNIST and Fashion-MNIST: name -> parts, raw files, gzipped files."""
    out = {}
    for seed, entry in enumerate((MNIST, FASHION_MNIST)):
        parts = small_sets.grey(seed)
        raw, zipped = small_sets.idx_files(parts)
        small = replace(entry, train=60, test=20, validation=20)
        monkeypatch.setitem(IMAGE_SETS, entry.name, small)
        adopt(entry.name, raw | zipped)
        out[entry.name] = parts, raw, zipped
    return out


@pytest.fixture
def coloured(monkeypatch):
    """Small CIFAR-10: six batches."""
    small = replace(CIFAR10, train=50, test=10, validation=10)
    monkeypatch.setitem(IMAGE_SETS, "cifar10", small)
    return small_sets.coloured()
