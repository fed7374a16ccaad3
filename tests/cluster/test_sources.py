"""Workers load their own rows: from files, dask arrays, or with the tasks."""

import numpy as np
import pytest
from clusters import check_same, fit

import nngp
from nngp.gram.cluster.inputs import ClusterInputs, _stamp


@pytest.fixture
def engine(client):
    return nngp.DaskEngine(client, 150)


@pytest.fixture(scope="module")
def problem(problem):
    """Few points: where the rows come from does not depend on how many there are."""
    return problem._replace(X=problem.X[:500], Y=problem.Y[:500])


@pytest.fixture(scope="module")
def local(problem):
    return fit(problem, "cpu")


def test_a_npy_file(engine, problem, local, tmp_path):
    np.save(tmp_path / "X.npy", problem.X)
    posterior = fit(problem._replace(X=tmp_path / "X.npy"), engine)
    check_same(posterior, local, problem.Xs)


def test_a_npy_file_without_a_cluster(problem, local, tmp_path):
    np.save(tmp_path / "X.npy", problem.X)
    check_same(fit(problem._replace(X=str(tmp_path / "X.npy")), "cpu"), local, problem.Xs)


@pytest.mark.slow
def test_a_zarr_array(engine, problem, local, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "X.zarr", shape=problem.X.shape, dtype="f8")
    array[:] = problem.X
    check_same(fit(problem._replace(X=tmp_path / "X.zarr"), engine), local, problem.Xs)


def test_a_dask_array(engine, problem, local):
    import dask.array as da

    X = da.from_array(problem.X, chunks=(317, 5))
    check_same(fit(problem._replace(X=X), engine), local, problem.Xs)


@pytest.mark.filterwarnings("error:Sending large graph")
def test_a_large_array_travels_in_pieces(engine):
    X = np.random.default_rng(0).standard_normal((260, 9000))  # 19 MB
    with engine.run() as run:
        for array in (X, X[:3], X[:1]):
            assert np.array_equal(run.fetch(run.put(array)), array)
    rows = ClusterInputs.of(engine, X)
    assert np.array_equal(rows, X)


def test_too_many_test_points_at_a_time(engine, problem, monkeypatch):
    small = problem._replace(X=problem.X[:200], Y=problem.Y[:200])
    posterior = fit(small, engine)
    monkeypatch.setattr("nngp.gram.cluster.inputs.MAX_SENT_BYTES", 8 * 12 * 50)
    assert posterior.mean(problem.Xs[:50]).shape == (50, 3)
    with pytest.raises(MemoryError, match="pass at most 50 at a time"):
        posterior.mean(problem.Xs[:51])


def test_integers_become_float64(engine, tmp_path):
    X = np.random.default_rng(0).integers(0, 3, size=(300, 7)).astype(np.uint8)
    np.save(tmp_path / "X.npy", X)
    net, y = nngp.Architecture(2), X[:, 0] / 3.0
    ours = nngp.condition(net, tmp_path / "X.npy", y, noise_var=1e-2, engine=engine)
    local = nngp.condition(net, X.astype(float), y, noise_var=1e-2, engine="cpu")
    check_same(ours, local, X[:9].astype(float))


@pytest.mark.slow
def test_one_feature_in_a_file_of_one_dimension(engine, tmp_path):
    x = np.random.default_rng(0).normal(size=330)
    np.save(tmp_path / "x.npy", x[:300])
    net, y, noise = nngp.Architecture(2), np.sin(x), {"noise_var": 1e-2}
    ours = nngp.condition(net, tmp_path / "x.npy", y[:300], engine=engine, solver="cg", **noise)
    ours.update(x[300:, None], y[300:])  # tiles that have rows of both
    local = nngp.condition(net, x[:, None], y, engine="cpu", **noise)
    np.testing.assert_allclose(ours.mean(x[:9, None]), local.mean(x[:9, None]), atol=1e-6)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.__setitem__((450, 3), np.nan), r"X holds nan \(row 450, column 3\)"),
        (lambda X: X.__setitem__((0, 0), 1e300), "overflow"),
    ],
)
def test_bad_rows_are_found_by_the_workers(engine, problem, tmp_path, spoil, message):
    X = problem.X.copy()
    spoil(X)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=message):
        fit(problem._replace(X=tmp_path / "X.npy"), engine)


def test_a_file_that_is_not_there_or_no_array(engine, problem, tmp_path):
    with pytest.raises(ValueError, match="cannot be read by the workers"):
        fit(problem._replace(X=tmp_path / "none.npy"), engine)
    (tmp_path / "text.npy").write_text("hello")
    with pytest.raises(ValueError, match="cannot be read by the workers"):
        fit(problem._replace(X=tmp_path / "text.npy"), engine)
    with pytest.raises(ValueError, match=r"\.npy or \.zarr"):
        fit(problem._replace(X=tmp_path / "data.csv"), engine)
    np.save(tmp_path / "empty.npy", np.zeros((0, 6)))
    with pytest.raises(ValueError, match="X is empty"):
        fit(problem._replace(X=tmp_path / "empty.npy"), engine)


def test_a_file_that_changes_is_noticed(engine, problem, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, problem.X)
    posterior = fit(problem._replace(X=path), engine)
    np.save(path, problem.X[::-1])
    engine.client.restart_workers(list(engine.client.nthreads()))
    with pytest.raises(ValueError, match="was changed while it was in use"):
        posterior.mean(problem.Xs)


def test_a_zarr_array_that_changes_is_noticed(engine, problem, tmp_path):
    zarr = pytest.importorskip("zarr")
    array = zarr.create_array(tmp_path / "X.zarr", shape=problem.X.shape, dtype="f8")
    array[:] = problem.X
    before = _stamp(str(tmp_path / "X.zarr"))
    array[:] = problem.X[::-1]
    assert _stamp(str(tmp_path / "X.zarr")) != before


def test_shapes_must_agree(engine, problem):
    with pytest.raises(ValueError, match="must agree"):
        fit(problem._replace(Y=problem.Y[:-1]), engine)
    with pytest.raises(ValueError, match="12"):
        fit(problem, engine).mean(np.ones((3, 5)))


def test_nothing_is_scattered_and_no_matrix_is_gathered(engine, problem, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("scattered")

    monkeypatch.setattr(type(engine.client), "scatter", refuse)
    sizes, fetch = [], type(engine).fetch

    def watched(self, handle):
        found = fetch(self, handle)
        sizes.append(getattr(found, "size", 0))
        return found

    monkeypatch.setattr(type(engine), "fetch", watched)
    fit(problem, engine).predict(problem.Xs)
    assert max(sizes) <= 500 * 4  # a vector for each target and one for the constant
