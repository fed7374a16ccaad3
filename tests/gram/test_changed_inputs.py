"""Inputs that are too large to be copied are watched: any change after conditioning is noticed."""

import numpy as np
import pytest

import nngp
from nngp._checksums import BLOCK, checksums
from nngp.gram.inputs import Inputs

CHANGED = "were changed after they were conditioned on"


@pytest.fixture
def large():
    return np.random.default_rng(0).normal(size=(5000, 1000))  # 40 MB, more than is copied


def swap_rows(X):
    X[[17, 4000]] = X[[4000, 17]]


def swap_neighbours(X):
    X[[2000, 2001]] = X[[2001, 2000]]


def shift_in_one_row(X):
    X[1234, 5] += 1.0
    X[1234, 6] -= 1.0


def flip_one_bit(X):
    X.view(np.uint64)[4321, 77] ^= np.uint64(1)


def negate_a_row(X):
    X[7] *= -1.0


def reverse_a_row(X):
    X[-1] = X[-1, ::-1].copy()


CHANGES = [
    swap_rows,
    swap_neighbours,
    shift_in_one_row,
    flip_one_bit,
    negate_a_row,
    reverse_a_row,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_noticed(large, change):
    kept = Inputs.kept(large)
    assert np.shares_memory(kept.X, large)
    kept.check_unchanged()
    change(large)
    with pytest.raises(ValueError, match=CHANGED):
        kept.check_unchanged()


def test_a_change_back_is_none(large):
    kept = Inputs.kept(large)
    flip_one_bit(large)
    flip_one_bit(large)
    kept.check_unchanged()


@pytest.mark.parametrize(
    "view",
    [lambda X: X.astype(np.float32), lambda X: X[:, ::2], lambda X: X.T, lambda X: X[::-1]],
    ids=["float32", "columns", "transposed", "backwards"],
)
def test_other_layouts_are_copied_and_stay(large, view):
    given = view(large)
    kept = Inputs.kept(given)
    before = kept.X.copy()
    given[5] = 0.0
    kept.check_unchanged()
    assert np.array_equal(kept.X, before)


def test_a_posterior_notices(monkeypatch):
    monkeypatch.setattr("nngp.gram.inputs.COPIED", 1000)
    X = np.random.default_rng(0).normal(size=(50, 10))
    posterior = nngp.condition(nngp.Architecture(1), X, X[:, 0], noise_var=0.1)
    posterior.mean(X[:2])
    X[[3, 4]] = X[[4, 3]]
    with pytest.raises(ValueError, match=CHANGED):
        posterior.mean(X[:2])


def test_a_file_that_was_overwritten(tmp_path, monkeypatch):
    monkeypatch.setattr("nngp.gram.inputs.COPIED", 1000)
    X = np.random.default_rng(0).normal(size=(50, 10))
    np.save(tmp_path / "X.npy", X)
    posterior = nngp.condition(nngp.Architecture(1), tmp_path / "X.npy", X[:, 0], noise_var=0.1)
    posterior.mean(X[:2])
    np.load(tmp_path / "X.npy", mmap_mode="r+")[[3, 4]] = X[[4, 3]]
    with pytest.raises(ValueError, match=CHANGED):
        posterior.mean(X[:2])


@pytest.mark.parametrize("size", [0, 1, 8, BLOCK - 8, BLOCK, BLOCK + 8, 3 * BLOCK])
def test_checksums_see_every_place(size):
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    before = checksums(data)
    assert len(before) == -(-size // BLOCK)
    for place in (0, size // 2, size - 1) if size else ():
        data[place] ^= 1
        assert checksums(data) != before
        data[place] ^= 1
    assert checksums(data) == before
