"""Functions that take data and counts refuse what is none, in one sentence."""

import datetime

import numpy as np
import pytest

import nngp
from nngp_paper import datasets, finite

RNG = np.random.default_rng(0)
NET = nngp.Architecture(1, "relu", 1.6, 0.1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
WIDE = nngp.FiniteNetwork(NET, 4)
COUNTS = {
    "ensemble": lambda n: finite.last_layer_ensemble(WIDE, X, Y, X, n),
    "images": lambda n: datasets.split("digits", n),
    "first images": lambda n: datasets.split("digits", 100).first(n),
}
DATA = {  # functions of an array of the shape of X, or of Y
    "inputs": (X, lambda bad: finite.last_layer_ensemble(WIDE, bad, Y, X, networks=1)),
    "test inputs": (X, lambda bad: finite.last_layer_ensemble(WIDE, X, Y, bad, networks=1)),
    "targets": (Y, lambda bad: finite.last_layer_ensemble(WIDE, X, bad, X, networks=1)),
}
DAYS = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-01-13"))
UNUSABLE = {  # of the shape of Y, and the sentence
    "complex": (Y + 1j, "complex|Complex|real"),
    "dates": (DAYS, "holds dates"),
    "lengths of time": (DAYS - DAYS[0], "holds lengths of time"),
    "Python's dates": (np.array([datetime.date(2020, 1, 1)] * 12, object), "holds dates"),
    "text": (np.array(["1.5"] * 12), "holds text"),
    "bytes": (np.array([b"1.5"] * 12), "holds bytes"),
    "records": (np.zeros(12, dtype=[("a", float), ("b", float)]), "holds records"),
}


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3", float("nan"), np.array([2])])
@pytest.mark.parametrize("name", COUNTS)
def test_no_count(name, value):
    with pytest.raises((ValueError, TypeError), match=r"must be (a whole number|from 1)"):
        COUNTS[name](value)


@pytest.mark.parametrize("name", DATA)
def test_masked_values(name):
    good, function = DATA[name]
    bad = np.ma.masked_array(good, mask=np.zeros(good.shape, bool))
    bad[0] = np.ma.masked
    as_objects = np.empty(good.shape, object)
    as_objects[:] = good
    as_objects[(0,) * good.ndim] = np.ma.masked
    rows = [np.ma.masked, *good[1:]] if good.ndim == 1 else [bad[0], *good[1:]]
    for one in (bad, rows, tuple(rows), as_objects):
        with pytest.raises(TypeError, match="masked values"):
            function(one)


@pytest.mark.parametrize("kind", UNUSABLE)
@pytest.mark.parametrize("name", DATA)
def test_what_is_no_number(name, kind):
    good, function = DATA[name]
    column, sentence = UNUSABLE[kind]
    whole = kind == "records" or good.ndim == 1
    with pytest.raises((TypeError, ValueError), match=sentence) as caught:
        function(column if whole else np.column_stack([column, column]))
    assert not any(raw in str(caught.value) for raw in ("DType", "ufunc", "\n"))


def test_an_ensemble_needs_an_affine_map_at_the_end():
    network = nngp.FiniteNetwork(nngp.Sum(nngp.Dense(1.0), nngp.Dense(1.0)), 8)
    with pytest.raises(ValueError, match="does not end in one affine map"):
        finite.last_layer_ensemble(network, X, X[:, :1], X)
