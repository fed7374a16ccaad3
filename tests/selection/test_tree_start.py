"""The start from trees: few of many inputs that matter only together."""

import numpy as np
import pytest

import nngp
from nngp.selection import stages
from nngp.selection.map_search import MIN_RELEVANCE, relevances_of_trees

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (600, 24))
TRUTH = np.prod(X[:, :3], axis=1) * 27**0.5  # no input, and no pair of them, says anything alone
Y = TRUTH[:300] + 0.05 * RNG.normal(size=300)
OPTIONS = {
    "depth": 1,
    "activation": "erf",
    "column_maps": "identity",
    "target_transform": "identity",
    "calibrate": False,
}


def error(model):
    return float(np.sqrt(np.mean((model.predict(X[300:]) - TRUTH[300:]) ** 2)))


@pytest.fixture
def starts(monkeypatch):
    """Relevances that trees found, as the search asks for them."""
    found = []

    def noted(*arguments):
        found.append(relevances_of_trees(*arguments))
        return found[-1]

    monkeypatch.setattr(stages, "relevances_of_trees", noted)
    return found


def test_what_an_ascent_from_equal_relevances_misses_is_found(starts, monkeypatch):
    model = nngp.NNGPRegressor(**OPTIONS, budget=100).fit(X[:300], Y)
    assert len(starts) == 1
    assert error(model) < 0.2
    assert set(np.argsort(-model.relevance_)[:3]) == {0, 1, 2}
    monkeypatch.setattr(stages, "MANY", 25)  # one more than there are
    plain = nngp.NNGPRegressor(**OPTIONS, budget=100).fit(X[:300], Y)
    assert len(starts) == 1
    assert error(plain) > 0.9  # the deviation of the targets is 1
    assert model.log_evidence_ > plain.log_evidence_ + 100


def test_where_trees_are_not_asked(starts):
    for inputs, more in (
        (X[:30, :12], {"effort": "fast"}),
        (X[:30, :11], {}),  # few inputs
        (X[:30, :12], {"relevance": np.ones(12)}),
    ):
        nngp.NNGPRegressor(**OPTIONS, budget=60, **more).fit(inputs, Y[:30])
    assert starts == []
    nngp.NNGPRegressor(**OPTIONS, budget=60).fit(X[:30, :12], Y[:30])
    assert len(starts) == 1  # as they are otherwise


def test_relevances_of_groups_and_weights():
    groups = np.repeat(np.arange(8), 3)
    y = X[:, [0]] + X[:, [1]]
    found = relevances_of_trees(X, y, groups, None)
    assert found.mean() == pytest.approx(1.0)
    assert np.ptp(found.reshape(8, 3), axis=1).max() == 0  # one for each group
    assert found.argmax() < 3
    assert found.min() >= MIN_RELEVANCE * found.max() * (1 - 1e-12)
    # Rows without a weight say nothing: those in which another input decides.
    both = np.concatenate([y[:300], X[300:, [23]]])
    weights = np.where(np.arange(600) < 300, 1.0, 0.0)
    assert relevances_of_trees(X, both, np.arange(24), weights)[23] < 0.1
    assert relevances_of_trees(X, both, np.arange(24), None)[23] > 1
    np.testing.assert_array_equal(relevances_of_trees(X, np.ones((600, 1)), groups, None), 1.0)
