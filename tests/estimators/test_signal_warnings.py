"""Warnings about a column that gives the target away, and about inputs that say nothing."""

import warnings

import numpy as np
import pytest

import nngp

pytestmark = pytest.mark.filterwarnings("ignore::nngp.errors.TreesWarning")


def table(n=240, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n), rng


def categories(kind):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        kind()
    return [one.category for one in seen]


@pytest.mark.parametrize("of", [lambda y: y, np.exp, lambda y: 3 - 2 * y])
def test_a_copy_of_the_target_is_found(of):
    X, y, rng = table()
    leaky = np.column_stack([X, of(y + 1e-3 * rng.normal(size=len(y)))])
    model = nngp.NNGPRegressor(selection=None)
    with pytest.warns(nngp.errors.LeakageWarning, match="column 4 explains the target"):
        model.fit(leaky, y)
    assert nngp.errors.LeakageWarning not in categories(lambda: model.fit(X, y))


def test_one_column_alone_is_no_leak():
    x = np.linspace(-3, 3, 100)[:, None]
    model = nngp.NNGPRegressor(selection=None)
    assert nngp.errors.LeakageWarning not in categories(lambda: model.fit(x, np.sin(x[:, 0])))


def test_a_column_of_categories_that_is_the_label():
    pd = pytest.importorskip("pandas")
    X, y, _ = table()
    labels = np.digitize(y, [-0.5, 0.5])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "code": np.array(["u", "v", "w"])[labels]})
    model = nngp.NNGPClassifier(selection=None, likelihood="regression")
    with pytest.warns(nngp.errors.LeakageWarning, match="column 'code'"):
        model.fit(frame, labels)
    assert nngp.errors.LeakageWarning not in categories(
        lambda: model.fit(frame[["a", "b"]], labels)
    )


def test_copies_of_rows_are_no_leak():
    X, _, rng = table(n=100)
    model = nngp.NNGPRegressor(selection=None)
    X, y = np.repeat(X, 2, axis=0), np.repeat(rng.normal(size=100), 2)
    assert nngp.errors.LeakageWarning not in categories(lambda: model.fit(X, y))


@pytest.mark.parametrize("heavy", [False, True])
def test_noise_alone_and_a_signal(heavy):
    X, _, rng = table(n=120)
    noise = rng.standard_t(2, size=len(X)) if heavy else rng.normal(size=len(X))
    options = {"depth": 1, "activation": "erf", "relevance": False, "column_maps": "identity"}
    model = nngp.NNGPRegressor(target_transform="identity", **options)
    with pytest.warns(nngp.errors.NoSignalWarning, match="120 held-out rows"):
        model.fit(X, noise)
    assert nngp.errors.NoSignalWarning not in categories(lambda: model.fit(X, 2 * X[:, 0] + noise))


@pytest.mark.filterwarnings("ignore::nngp.errors.NeverPredictedWarning")
def test_labels_without_signal():
    X, y, rng = table(n=120)
    model = nngp.NNGPClassifier(depth=1, activation="erf", relevance=False, column_maps="identity")
    with pytest.warns(nngp.errors.NoSignalWarning):
        model.fit(X, rng.integers(2, size=len(X)))
    assert nngp.errors.NoSignalWarning not in categories(lambda: model.fit(X, y > 0))
