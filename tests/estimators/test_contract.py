"""The estimators keep scikit-learn's contract: its own checks, its tools, its kinds of input."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_estimator,
    check_sample_weight_equivalence_on_dense_data,
    estimator_checks_generator,
)

import nngp

MODELS = {"regressor": nngp.NNGPRegressor, "classifier": nngp.NNGPClassifier}
# Checks that may be skipped, and why; there is no check that may fail.
SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API to be set for the whole process"}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def small(seed=0, n=30, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=n)


def answers_for(model, y):
    return np.where(y > 0, "yes", "no") if model is nngp.NNGPClassifier else y


def check_all(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert not failed
    assert skipped <= set(SKIPPED)
    assert len(results) > 40
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    assert "check_sample_weight_equivalence_on_dense_data" in passed


# Some checks fit one point or one class, some have labels that nothing can be learned of, repeat
# rows, or have targets that are steps.
CAUTIONS = ("FewData", "NeverPredicted", "DuplicateRows", "Trees", "Leakage", "NoSignal")
cautions = pytest.mark.filterwarnings(*(f"ignore::nngp.errors.{name}Warning" for name in CAUTIONS))


@cautions
def test_check_estimator(model):
    quick = {} if model is nngp.NNGPRegressor else {"likelihood": "regression"}
    check_all(model(selection=None, **quick))


@pytest.mark.slow
@cautions
def test_check_estimator_with_a_search(model):
    check_all(model(budget=4, effort="fast"))


@pytest.mark.deep
@cautions
@pytest.mark.parametrize("effort", ["normal", "thorough"])
def test_check_estimator_with_everything_else_at_its_default(model, effort):
    check_all(model(effort=effort))


def test_the_checks_would_notice():
    class Forgetful(nngp.NNGPRegressor):
        def fit(self, X, y):
            super().fit(X, y)
            return

    def run():
        for estimator, check in estimator_checks_generator(Forgetful(selection=None)):
            check(estimator)

    with pytest.raises(AssertionError):
        run()


def test_tools(model):
    X, y = small(n=40)
    y = answers_for(model, y)
    pipeline = make_pipeline(StandardScaler(), model(budget=5, depth=1, activation="erf"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7
    search = GridSearchCV(model(selection=None), {"depth": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["depth"] in (1, 2)
    twin = clone(model(depth=3, relevance=False))
    assert twin.depth == 3
    assert twin.relevance is False


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(model, library):
    frames = pytest.importorskip(library)
    X, y = small()
    y = answers_for(model, y)
    table = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    fitted = model(selection=None).fit(table, y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.n_features_in_ == 3
    plain = model(selection=None).fit(X, y)
    np.testing.assert_array_equal(fitted.predict(table), plain.predict(X))
    shuffled = table[["b", "a", "c"]] if library == "pandas" else table.select("b", "a", "c")
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(shuffled)


def test_set_output_of_a_transformer_before_us(model):
    pytest.importorskip("pandas")
    X, y = small()
    scaler = StandardScaler().set_output(transform="pandas")
    fitted = make_pipeline(scaler, model(selection=None)).fit(X, answers_for(model, y))
    assert fitted[-1].feature_names_in_.tolist() == ["x0", "x1", "x2"]


def test_few_points(model):
    for n in (1, 2, 3, 4, 5):
        X, y = small(n=n)
        with pytest.warns(nngp.errors.FewDataWarning) if n < 5 else nullcontext():
            fitted = model(effort="fast").fit(X, answers_for(model, y))
        assert fitted.predict(X).shape == (n,)
        if model is nngp.NNGPRegressor:
            mean, std = fitted.predict(X + 1.0, return_std=True)
            assert np.isfinite(mean).all()
            assert (std > 0).all()
        else:
            np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)


def test_after_a_failed_fit(model):
    X, y = small()
    y = answers_for(model, y)
    broken = model(depth=-1)
    with pytest.raises(ValueError, match="depth"):
        broken.fit(X, y)
    with pytest.raises(NotFittedError):
        broken.predict(X)
    with pytest.raises(NotFittedError):
        (broken.sample_y if model is nngp.NNGPRegressor else broken.predict_variance)(X)


def test_string_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = nngp.NNGPClassifier(budget=20).fit(X[::2], names[::2])
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(X[1::2], names[1::2]) > 0.93


def test_many_outputs():
    X, Y = make_regression(60, 4, n_targets=3, noise=10.0, random_state=0)
    model = nngp.NNGPRegressor(budget=20).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (60, 3)
    _, cov = model.predict(X[:5], return_cov=True)
    assert cov.shape == (5, 5, 3)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov).T), std[:5], rtol=1e-6)
    assert model.sample_y(X[:5], 7).shape == (5, 3, 7)


def test_the_same_twice(model):
    X, y = small(n=60)
    y = answers_for(model, y)
    first, second = (model(budget=40, selection_size=30).fit(X, y) for _ in range(2))
    assert first.network_ == second.network_
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    other = model(budget=40, selection_size=30, random_state=1).fit(X, y)
    assert other.network_ != first.network_


@cautions
@pytest.mark.parametrize("kind", [nngp.NNGPRegressor, nngp.NNGPClassifier])
@pytest.mark.parametrize(
    "parameters",
    [
        {"effort": "fast"},
        pytest.param({"effort": "thorough"}, marks=pytest.mark.slow),
        {"n_networks": 3},
    ],
    ids=str,
)
def test_weights_are_copies_however_much_is_searched(kind, parameters):
    """In any order of the rows: the check of scikit-learn at 1e-7, then to rounding."""
    check_sample_weight_equivalence_on_dense_data(kind.__name__, kind(**parameters))
    if "n_networks" in parameters or kind is nngp.NNGPClassifier:
        return  # their shares come from held-out rows, whose rounding depends on the order
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(15, 3)), rng.integers(0, 3, 15), rng.integers(0, 4, 15)
    order = rng.permutation(15)
    model = kind(**parameters).fit(X.repeat(weights, axis=0), y.repeat(weights))
    other = kind(**parameters).fit(X[order], y[order], sample_weight=weights[order])
    method = "predict_proba" if kind is nngp.NNGPClassifier else "predict"
    both = [getattr(one, method)(X) for one in (model, other)]
    np.testing.assert_allclose(*both, rtol=1e-10, atol=1e-12)
