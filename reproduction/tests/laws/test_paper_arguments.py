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
    "inputs": (X, lambda bad: finite.last_layer_ensemble(WIDE, bad, Y, X, n_networks=1)),
    "test inputs": (X, lambda bad: finite.last_layer_ensemble(WIDE, X, Y, bad, n_networks=1)),
    "targets": (Y, lambda bad: finite.last_layer_ensemble(WIDE, X, bad, X, n_networks=1)),
}
DAYS = np.arange(np.datetime64("2020-01-01"), np.datetime64("2020-01-13"))
UNUSABLE = {  # of the shape of Y
    "complex": Y + 1j,
    "dates": DAYS,
    "lengths of time": DAYS - DAYS[0],
    "Python's dates": np.array([datetime.date(2020, 1, 1)] * 12, object),
    "text": np.array(["1.5"] * 12),
    "bytes": np.array([b"1.5"] * 12),
    "records": np.zeros(12, dtype=[("a", float), ("b", float)]),
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
    with pytest.raises(TypeError, match="is a masked array; drop or fill"):
        function(bad)


@pytest.mark.parametrize("kind", UNUSABLE)
@pytest.mark.parametrize("name", DATA)
def test_what_is_no_number(name, kind):
    good, function = DATA[name]
    column = UNUSABLE[kind]
    whole = kind == "records" or good.ndim == 1
    with pytest.raises(TypeError, match="must hold real numbers, got"):
        function(column if whole else np.column_stack([column, column]))


def test_an_ensemble_needs_an_affine_map_at_the_end():
    network = nngp.FiniteNetwork(nngp.Sum(nngp.Dense(1.0), nngp.Dense(1.0)), 8)
    with pytest.raises(ValueError, match="does not end in one affine map"):
        finite.last_layer_ensemble(network, X, X[:, :1], X)
