"""The check whether trees would do better: its figures, its verdict, its place in a file."""

import numpy as np
import pytest
from records import read_again
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier

import nngp
from nngp.estimators.trees import compare_with_trees

RNG = np.random.default_rng(0)
X = RNG.integers(0, 6, size=(120, 3)).astype(float)
STEPS = np.where(X[:, 0] > 2, 5.0, 0.0) + np.where(X[:, 1] > 3, 2.0, 0.0)
Y = STEPS + 0.1 * RNG.normal(size=120)


def test_trees_win_where_their_errors_are_clearly_smaller():
    """A table of steps, predicted no better than by one number."""
    left_out = np.full(120, Y.mean())
    found = compare_with_trees(X, Y, left_out, classes=False)
    assert found.trees_win
    assert found.network == pytest.approx(np.std(Y), rel=1e-12)
    assert (found.rows, found.inputs, found.few_valued) == (120, 3, 3)
    assert "trees predict this table better, where 3 of 3 inputs have at most 20" in found.sentence
    with pytest.warns(nngp.errors.TreesWarning, match="compare with gradient boosting"):
        found.warn(stacklevel=1)


def test_trees_do_not_win_against_the_truth():
    found = compare_with_trees(X, Y, STEPS, classes=False)
    assert not found.trees_win
    assert found.deviations < 0
    found.warn(stacklevel=1)  # says nothing, or the test fails


def test_figures_are_those_of_scikit_learn():
    """Errors and their difference, computed here from the same trees."""
    left_out = 0.9 * STEPS
    found = compare_with_trees(X, Y, left_out, classes=False)
    size = np.abs(Y - np.median(Y)).max()
    forest = ExtraTreesRegressor(100, bootstrap=True, oob_score=True, random_state=0)
    trees = forest.fit(X, (Y - np.median(Y)) / size).oob_prediction_ * size + np.median(Y)
    own, theirs = (left_out - Y) ** 2, (trees - Y) ** 2
    if found.method == "randomized trees":
        assert found.trees == pytest.approx(np.sqrt(theirs.mean()), rel=1e-6)
        z = (own - theirs).mean() / np.sqrt((own - theirs).var(ddof=1) / 120)
        assert found.deviations == pytest.approx(z, rel=1e-4)
    else:
        assert found.trees < np.sqrt(theirs.mean())
    assert found.network == pytest.approx(np.sqrt(own.mean()), rel=1e-12)


def test_labels():
    labels = np.where(STEPS > 4, "dear", "cheap")
    wrong = np.where(np.arange(120) % 3 == 0, "cheap", labels)
    found = compare_with_trees(X, labels, wrong, classes=True)
    errors = []
    for kind in (ExtraTreesClassifier, RandomForestClassifier):
        forest = kind(100, bootstrap=True, oob_score=True, random_state=0).fit(X, labels)
        best = forest.oob_decision_function_.argmax(axis=1)
        errors.append((forest.classes_[best] != labels).mean())
    assert found.trees == min(errors)
    assert found.network == (wrong != labels).mean()
    assert found.trees_win
    assert not compare_with_trees(X, labels, labels, classes=True).trees_win


def test_any_units_give_the_same_verdict():
    """Trees see ranks only, and no square overflows."""
    left_out = 0.9 * STEPS
    found = compare_with_trees(X, Y, left_out, classes=False)
    far = compare_with_trees(X * 1e300, Y * 2.0**600, left_out * 2.0**600, classes=False)
    assert far.deviations == found.deviations
    assert far.trees == found.trees * 2.0**600


def test_nothing_to_compare():
    for rows, inputs, scale in [(49, 3, 1), (4001, 3, 1), (60, 201, 1), (60, 3, 0)]:
        X = RNG.normal(size=(rows, inputs))
        assert compare_with_trees(X, scale * X[:, 0], X[:, 0], classes=False) is None


def test_the_figures_come_back_from_a_file():
    found = compare_with_trees(X, Y, STEPS, classes=False)
    assert read_again(found) == found
    for name, wrong in {
        "rows": 3,
        "few_valued": 4,
        "measure": "R²",
        "method": "oak",
        "network": -1.0,
        "trees": "nan",
        "deviations": None,
    }.items():
        with pytest.raises(nngp.errors.ModelFileError):
            read_again(found, {name: wrong})


def test_weights_of_classes_are_not_compared():
    """A model that finds a rare class makes more errors than trees that never name it."""
    labels = (np.quantile(Y, 0.9) < Y).astype(int)
    assert nngp.NNGPClassifier(budget=2).fit(X, labels).trees_ is not None
    assert nngp.NNGPClassifier(budget=2, class_weight="balanced").fit(X, labels).trees_ is None


@pytest.mark.filterwarnings("ignore::nngp.errors.TreesWarning")
@pytest.mark.parametrize(("rows", "networks"), [(400, 1), (120, 3)])
def test_trees_are_compared_with_the_model_that_the_user_gets(rows, networks, monkeypatch):
    """All its rows and networks, with their weights, as `left_out` has them."""
    monkeypatch.setattr("nngp.estimators.trees.MOST_ROWS", 300)  # of labels: no limit here
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 3))
    y = np.exp(np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=rows))
    model = nngp.NNGPRegressor(n_networks=networks, budget=6, selection_size=100).fit(X, y)
    error = np.sqrt(np.mean((model.left_out().mean()[:, 0] - y) ** 2))
    assert (model.trees_.rows, model.trees_.network) == (rows, pytest.approx(error, rel=1e-9))
