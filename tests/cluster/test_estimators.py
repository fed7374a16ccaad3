"""Estimators on a cluster: chosen here, conditioned there, saved and loaded anywhere."""

import numpy as np
import pytest
from sklearn.base import clone

import nngp
from nngp import _tensors


@pytest.fixture
def engine(client):
    return nngp.DaskEngine(client, 150)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=700), X[:30] + 0.1


OPTIONS = {"budget": 12, "activation": "relu", "depth": 2, "selection_size": 200}


def test_a_regressor_is_chosen_here_and_conditioned_there(client, engine, table):
    X, y, Xs = table
    local = nngp.NNGPRegressor(engine="cpu", **OPTIONS).fit(X, y)
    model = nngp.NNGPRegressor(engine=engine, **OPTIONS).fit(X, y)
    alone = nngp.DaskEngine(client, 150)
    given = {"noise_var": model.noise_var_, "engine": alone}
    nngp.condition(model.network_, X, y, **given).leave_one_out()
    # Of one factor and held-out rows, which the widths of intervals need; of no search.
    assert len(engine.listener.done) == len(alone.listener.done)
    assert model.report_.engine == "dask"
    ours, theirs = (m.network_.weight_vars for m in (model, local))
    assert ours == pytest.approx(theirs, rel=1e-6)  # sums of threads differ in their order
    ours, theirs = (m.predict(Xs, return_std=True) for m in (model, local))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.slow
def test_a_classifier(engine, table):
    X, y, Xs = table
    labels = np.where(y > 0, "up", "down")
    local, model = (
        nngp.NNGPClassifier(engine=place, **OPTIONS).fit(X, labels) for place in ("cpu", engine)
    )
    np.testing.assert_allclose(model.predict_proba(Xs), local.predict_proba(Xs), rtol=1e-6)


def test_copies_share_the_connection(engine):
    model = nngp.NNGPRegressor(engine=engine, depth=2)
    twin = clone(model)
    assert twin.engine is engine
    assert twin.get_params()["depth"] == 2
    assert model.set_params(engine="cpu").engine == "cpu"


@pytest.mark.parametrize("factor", [True, False])
def test_saved_here_and_loaded_there(engine, table, tmp_path, factor):
    X, y, Xs = table
    options = {"selection": None, "depth": 2, "noise_var": 0.01}
    local = nngp.NNGPRegressor(engine="cpu", **options).fit(X, y)
    local.save(tmp_path / "local.nngp", factor=factor)
    there = nngp.load(tmp_path / "local.nngp", engine=engine)
    np.testing.assert_allclose(there.predict(Xs), local.predict(Xs), rtol=1e-9)
    assert there.posterior_.problem.engine is engine


def test_saved_there_and_loaded_here_a_tile_at_a_time(engine, table, tmp_path, monkeypatch):
    X, y, Xs = table
    model = nngp.NNGPRegressor(engine=engine, selection=None, depth=2, noise_var=0.01).fit(X, y)
    fetch, put, events = type(engine).fetch, _tensors._plain_bytes, []

    def fetched(self, handle):
        events.append("fetched")
        return fetch(self, handle)

    def written(array):
        data = put(array)
        events.append("factor" if isinstance(array, _tensors.StoredArray) else "")
        return data

    with monkeypatch.context() as patch:
        patch.setattr(type(engine), "fetch", fetched)
        patch.setattr(_tensors, "_plain_bytes", written)
        model.save(tmp_path / "model.nngp")
    tiles = len(range(0, 700, engine.tile_size(700)))
    factor = tiles * (tiles + 1) // 2
    assert [event for event in events if event][-2 * factor :] == ["fetched", "factor"] * factor
    here = nngp.load(tmp_path / "model.nngp", engine="cpu")
    np.testing.assert_allclose(here.predict(Xs), model.predict(Xs), rtol=1e-9)
