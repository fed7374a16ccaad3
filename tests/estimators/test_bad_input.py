"""Bad input: each case raises an error with one sentence that names the fault."""

import numpy as np
import pytest

import nngp

X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
INF = X.copy()
INF[3, 1] = np.inf
Regressor, Classifier = nngp.NNGPRegressor, nngp.NNGPClassifier

FIT = {
    "infinity in X": (Regressor, {}, INF, y, "contains infinity"),
    "nan in y": (Regressor, {}, X, np.where(y == 3, np.nan, y), "contains NaN"),
    "no rows": (Regressor, {}, X[:0], y[:0], "0 sample"),
    "no columns": (Regressor, {}, X[:, :0], y, "0 feature"),
    "a table without columns": (Regressor, {}, {}, y, "X has no columns; pass a table"),
    "one dimension": (Regressor, {}, X[:, 0], y, "Reshape your data"),
    "three dimensions": (Regressor, {}, X[None], y, "dim 3"),
    "lengths differ": (Regressor, {}, X, y[:-1], "inconsistent numbers of samples"),
    "text in X": (
        Regressor,
        {},
        np.array([["a"], ["b"]]),
        y[:2],
        "X must hold real numbers and holds text",
    ),
    "continuous labels": (Classifier, {}, X, y + 0.5, "Unknown label type"),
    "complex X": (Regressor, {}, X * 1j, y, "Complex data not supported"),
    "depth in words": (Regressor, {"depth": "deep"}, X, y, "depth must be a number or 'auto'"),
    "negative depth": (Regressor, {"depth": -1}, X, y, "depth must be a whole number"),
    "half a layer": (Regressor, {"depth": 1.5}, X, y, "depth must be a whole number"),
    "unknown activation": (Regressor, {"activation": "rleu"}, X, y, "did you mean: relu"),
    "negative variance": (Regressor, {"weight_var": -1.0}, X, y, "weight_var must be"),
    "negative noise": (Regressor, {"noise_var": -1.0}, X, y, "noise_var must be a number >= 0"),
    "layers without depth": (Regressor, {"bias_var": [1.0, 2.0]}, X, y, "need a depth"),
    "too many layers": (
        Regressor,
        {"depth": 2, "bias_var": [1.0, 2.0]},
        X,
        y,
        "bias_var has 2 values",
    ),
    "unknown scaling": (Regressor, {"input_scaling": "big"}, X, y, "input_scaling must be one of"),
    "unknown target": (Regressor, {"target_scaling": "x"}, X, y, "target_scaling must be one of"),
    "unknown selection": (Regressor, {"selection": "cv"}, X, y, "selection must be one of"),
    "no budget": (Regressor, {"budget": 0}, X, y, "budget must be a whole number"),
    "selection on one": (Regressor, {"selection_size": 1}, X, y, "selection_size must be"),
    "relevance too short": (
        Regressor,
        {"relevance": [1.0]},
        X,
        y,
        "relevance must be .* 3",
    ),
    "relevance on a sphere": (
        Regressor,
        {"relevance": True, "input_scaling": "unit"},
        X,
        y,
        "relevance=True needs",
    ),
    "whitening too weak": (
        Regressor,
        {"input_scaling": "whiten", "whitening": 0.0},
        X,
        y,
        "whitening must be 'auto' or a number from 1e-08 to 1e\\+08, got 0.0",
    ),
    "whitening of a word": (
        Regressor,
        {"input_scaling": "whiten", "whitening": "much"},
        X,
        y,
        "whitening must be 'auto' or a number",
    ),
    "whitening without its scaling": (
        Regressor,
        {"whitening": 0.1},
        X,
        y,
        "whitening=0.1 is the strength of input_scaling='whiten', and input_scaling is 'auto'",
    ),
    "relevances of mixtures": (
        Regressor,
        {"input_scaling": "whiten", "relevance": [1.0, 1.0, 0.0]},
        X,
        y,
        "input_scaling='whiten' mixes the columns",
    ),
    "learned relevances of mixtures": (
        Regressor,
        {"input_scaling": "whiten", "relevance": True},
        X,
        y,
        "relevance=True needs",
    ),
    "zero row on a sphere": (
        Regressor,
        {"input_scaling": "unit"},
        np.vstack([X[1:], np.zeros(3)]),
        y,
        "row 11 is zero",
    ),
    "unknown engine": (Regressor, {"engine": "tpu"}, X, y, "engine must be"),
    "squares overflow": (
        Regressor,
        {"input_scaling": "none"},
        X * 1e200,
        y,
        "overflows",
    ),
}


def test_fit():
    for case in FIT:
        kind, parameters, data, answers, sentence = FIT[case]
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            kind(**parameters).fit(data, answers)
        assert "\n\n" not in str(caught.value)


def test_sparse():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Regressor().fit(sparse.csr_array(X), y)


PREDICT = {
    "other width": (X[:, :2], "expecting 3 features"),
    "infinity": (INF, "contains infinity"),
    "no rows": (X[:0], "0 sample"),
    "one point as a vector": (X[0], "Reshape your data"),
}


@pytest.mark.parametrize(("kind", "answers"), [(Regressor, y), (Classifier, y > 5)])
def test_predict(kind, answers):
    model = kind(selection=None).fit(X, answers)
    for data, sentence in PREDICT.values():
        with pytest.raises(ValueError, match=sentence):
            model.predict(data)


def test_wrong_arguments_of_predictions():
    model = Regressor(selection=None).fit(X, y)
    with pytest.raises(ValueError, match="cannot both"):
        model.predict(X, return_std=True, return_cov=True)
    for coverage in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            model.predict_interval(X, coverage)
    with pytest.raises(ValueError, match="q must be between 0 and 1, got 50"):
        model.predict_quantile(X, 50)
    with pytest.raises(ValueError, match=r"q must be between 0 and 1, got \[\]"):
        model.predict_quantile(X, [])
    with pytest.raises(TypeError, match="coverage must be one number, got list"):
        model.predict_interval(X, [0.5, 0.9])


TARGETS = {
    "one number": (1.0, r"shape \(\) and X has 12 rows, each with 1 output"),
    "too few": (y[:3], r"shape \(3,\) and X has 12 rows"),
    "several outputs": (np.column_stack([y, y]), r"shape \(12, 2\) and X has 12 rows"),
    "a gap": (np.where(np.arange(12) == 3, np.nan, y), "y holds NaN, which has no density"),
}


def test_targets_without_a_density():
    model = Regressor(selection=None).fit(X, y)
    for answers, sentence in TARGETS.values():
        with pytest.raises(ValueError, match=sentence):
            model.log_density(X, answers)


def test_unusual_data_can_be_fitted():
    """Constant columns, constant targets, duplicates, columns of very different size."""
    strange = np.column_stack([np.full(12, 7.0), X[:, 0] * 1e250, X[:, 1] * 1e-250, X[:, 2]])
    with pytest.warns(nngp.errors.DuplicateRowsWarning, match="12 of 24 rows repeat another row"):
        model = Regressor(budget=10).fit(np.vstack([strange, strange]), np.tile(y, 2))
    mean, std = model.predict(strange, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    moved = strange.copy()
    moved[:, 0] = -1000.0  # a column that was constant says nothing later either
    np.testing.assert_array_equal(model.predict(moved), model.predict(strange))
    with pytest.warns(nngp.errors.FewDataWarning, match="all targets are equal"):
        flat = Regressor(budget=10).fit(X, np.full(12, 3.0))
    np.testing.assert_allclose(flat.predict(X), 3.0, atol=1e-6)


def test_too_little_memory(monkeypatch):
    monkeypatch.setattr("nngp._machine.available_memory", lambda: 10_000)
    rng = np.random.default_rng(0)
    with pytest.raises(MemoryError, match="GB"):
        Regressor(selection=None).fit(rng.normal(size=(3000, 2)), rng.normal(size=3000))


def test_rows_without_a_target_are_named():
    for estimator in [nngp.NNGPRegressor(), nngp.NNGPClassifier()]:
        some = np.where(np.arange(12) < 4, np.nan, 1.0)[::-1]
        with pytest.raises(
            ValueError, match=r"y contains NaN in 4 of 12 rows \(the first is row 8\)"
        ):
            estimator.fit(X, some)
