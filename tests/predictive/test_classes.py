"""Likelihoods of the classifier: against refits, dense solutions and other quadratures."""

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, stats

import nngp
from nngp.predictive import dirichlet, one_hot_link
from nngp.predictive.dirichlet import DirichletProcess, DirichletSetting, Labels
from nngp.predictive.expected_softmax import expected_softmax
from nngp.predictive.one_hot_link import LinkSearch, OneHotLink
from nngp.predictive.probability import above_zero, largest_probability

NET = nngp.Architecture(2, "erf", 2.0, 0.3)
SETTING = DirichletSetting(3.0, 0.02)


def blobs(n=90, seed=0):
    """Three overlapping classes, of which the last is small."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [n // 2, n - n // 2 - n // 10, n // 10])
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [2, 0], [0, 2.5]])[y], y


def process(X, y, weights=None):
    weights = np.ones(len(y)) if weights is None else weights
    return DirichletProcess(nngp.kernel(NET, X), Labels(y, weights, 3), SETTING)


def at(model, X, Xs):
    return model.predict(nngp.kernel(NET, Xs, X), nngp.kernel_diag(NET, Xs))


def test_the_largest_of_unequal_gaussians():
    """Against adaptive quadrature."""
    rng = np.random.default_rng(0)
    mean, deviation = 2 * rng.normal(size=(4, 5)), np.exp(rng.uniform(-0.8, 0.8, size=(4, 5)))
    table = largest_probability(mean, deviation**2)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    for row, m, s in zip(table, mean, deviation, strict=True):
        for k in range(5):

            def integrand(t, k=k, m=m, s=s):
                below = stats.norm.cdf((t - np.delete(m, k)) / np.delete(s, k))
                return stats.norm.pdf(t, m[k], s[k]) * np.prod(below)

            ends = m[k] - 12 * s[k], m[k] + 12 * s[k]
            exact, _ = integrate.quad(integrand, *ends, epsabs=1e-13, limit=500)
            assert row[k] == pytest.approx(exact, abs=1e-10)
    coarse = largest_probability(mean, deviation**2, step=0.5)
    np.testing.assert_allclose(coarse, table, atol=1e-3)
    equal = largest_probability(mean, np.ones((4, 5)))
    np.testing.assert_allclose(equal, largest_probability(mean, np.ones(4)), atol=1e-13)


def test_work_of_searches_with_many_classes(monkeypatch):
    """Rows times classes bound the rows that judge a setting, and whether variances differ."""
    X, y = blobs()
    order = np.random.default_rng(0).permutation(len(y))
    kernels = [(np.arange(len(y)), nngp.kernel(NET, X[order]))]
    labels, sizes = Labels(y[order], np.ones(len(y)), 3), []
    monkeypatch.setattr(dirichlet, "JUDGED", 100)
    monkeypatch.setattr(
        dirichlet, "expected_softmax", lambda m, v: sizes.append(m.size) or expected_softmax(m, v)
    )
    dirichlet.find_setting(kernels, labels)
    assert set(sizes) == {99}
    monkeypatch.setattr(one_hot_link, "UNEQUAL", 269)
    monkeypatch.setattr(
        one_hot_link,
        "largest_probability",
        lambda m, v, step: sizes.append(v.ndim) or largest_probability(m, v, step),
    )
    mean = np.eye(3)[labels.index] + np.random.default_rng(1).normal(size=(90, 3))
    search = LinkSearch(mean, np.ones(90), labels.index, labels.weights)
    assert search.best(labels.frequencies).exponent == 0
    assert set(sizes) == {99, 1}


def softmax_mean(mean, variance):
    """E[softmax] exactly: softmax is the chance that a logit with Gumbel noise is the largest, so
    it is an integral of products of distribution functions, each an integral over one Gaussian."""
    z = np.linspace(-9, 9, 601)
    weight = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    wide = 9 * np.sqrt(variance.max())
    u = np.arange(mean.max() - wide - 8, mean.max() + wide + 40, 0.1)
    gap = u[:, None, None] - mean[:, None] - np.sqrt(variance)[:, None] * z
    gap = np.maximum(gap, -6.0)  # beyond, nothing is left
    below = np.exp(-np.exp(-gap)) @ weight
    density = np.exp(-gap - np.exp(-gap)) @ weight
    others = [np.prod(np.delete(below, k, axis=1), axis=1) for k in range(len(mean))]
    return (density * np.stack(others, axis=1)).sum(axis=0) * 0.1


def test_the_expectation_of_softmax():
    """Narrow, usual and wide Gaussians; small probabilities are as exact as large ones."""
    for classes, size in [(2, 1.0), (3, 0.0), (4, 0.02), (7, 1.0), (3, 20.0)]:
        rng = np.random.default_rng(classes)
        mean = 3 * rng.normal(size=(2, classes))
        variance = size * np.exp(rng.normal(size=(2, classes)))
        table = expected_softmax(mean, variance)
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
        exact = [softmax_mean(m, v) for m, v in zip(mean, variance, strict=True)]
        np.testing.assert_allclose(table, exact, rtol=1e-9 if size >= 1 else 2e-6)
        alone = expected_softmax(mean[1:], variance[1:])
        np.testing.assert_allclose(table[1:], alone, rtol=1e-12)


def test_the_expectation_of_softmax_at_extreme_means_and_variances():
    mean = np.array([[0.0, 0.0, 0.0], [1e3, 0.0, -1e3], [0.0, 0.0, 0.0], [1e8, 1e8, -1e8]])
    variance = np.array([[0.0] * 3, [1.0, 0.0, 4.0], [1e300] * 3, [0.0, 0.0, 1e-300]])
    table = above_zero(expected_softmax(mean, variance))
    expected = [[1 / 3] * 3, [1, 0, 0], [1 / 3] * 3, [0.5, 0.5, 0]]
    np.testing.assert_allclose(table, expected, atol=1e-7)
    assert (table > 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)


def test_all_classes_from_one_inverse():
    """Against a dense solution for each class with its own diagonal."""
    X, y = blobs()
    rng = np.random.default_rng(1)
    Xs, weights = rng.normal(size=(12, 2)), rng.uniform(0.3, 3.0, size=len(y))
    mean, variance = at(process(X, y, weights), X, Xs)
    K, cross, prior = nngp.kernel(NET, X), nngp.kernel(NET, Xs, X), nngp.kernel_diag(NET, Xs)
    total = np.bincount(y, weights) + 1
    for k in range(3):
        alpha = np.where(y == k, 1.02, 0.02)
        noise = np.log(1 / alpha + 1)
        target = np.log(alpha) - noise / 2
        average = np.mean([np.log(a) - np.log(1 / a + 1) / 2 for a in (1.02, 0.02, 0.02)])
        center = np.log(total[k]) - np.log(total).mean() + average
        A = 3.0 * K + np.diag(noise / weights)
        np.testing.assert_allclose(
            mean[:, k], 3.0 * cross @ np.linalg.solve(A, target - center) + center, rtol=1e-9
        )
        explained = 9.0 * np.einsum("ij,ji->i", cross, np.linalg.solve(A, cross.T))
        np.testing.assert_allclose(variance[:, k], 3.0 * prior - explained, rtol=1e-8)


def test_leave_one_out_is_a_refit():
    X, y = blobs(40)
    model = process(X, y)
    mean, variance = model.leave_one_out()
    for i in (0, 22, 39):
        rest = np.arange(40) != i
        again = process(X[rest], y[rest])
        again._center = model._center  # the prior mean has seen all labels
        again._weights = np.column_stack([again._solve(k) for k in range(3)])
        one, spread = at(again, X[rest], X[i : i + 1])
        np.testing.assert_allclose(mean[i], one[0], rtol=1e-8)
        np.testing.assert_allclose(variance[i], spread[0], rtol=1e-8)


def test_a_weight_of_two_is_the_row_twice():
    X, y = blobs(40)
    weights = 1.0 + (np.arange(40) % 3 == 0)
    twice = np.repeat(np.arange(40), weights.astype(int))
    weighted, repeated = process(X, y, weights), process(X[twice], y[twice])
    Xs = np.random.default_rng(0).normal(size=(9, 2))
    for ours, theirs in zip(at(weighted, X, Xs), at(repeated, X[twice], Xs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    first = np.concatenate([[0], np.cumsum(weights.astype(int))[:-1]])
    for ours, theirs in zip(weighted.leave_one_out(), repeated.leave_one_out(), strict=True):
        np.testing.assert_allclose(ours, theirs[first], rtol=1e-7)


@pytest.mark.parametrize("likelihood", ["regression", "dirichlet"])
def test_weights_of_the_estimator(likelihood):
    """By copies and by row-wise noise: one answer."""
    X, y = blobs()
    weights = 1.0 + (np.arange(len(y)) % 4 == 0)
    options = {"selection": None, "noise_var": 0.2, "likelihood": likelihood}
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    by_copies = nngp.NNGPClassifier(**options, input_scaling="none").fit(X[twice], y[twice])
    same = nngp.NNGPClassifier(**options, input_scaling="none").fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(same.predict_proba(X), by_copies.predict_proba(X))
    # A hair off a whole number goes another way.
    noisy = nngp.NNGPClassifier(**options, input_scaling="none").fit(
        X, y, sample_weight=weights * (1 + 1e-12)
    )
    assert np.ndim(noisy.posterior_.noise_var) == 1
    np.testing.assert_allclose(noisy.predict_proba(X), by_copies.predict_proba(X), atol=1e-5)


def test_class_weights():
    X, y = blobs(200)
    options = {"budget": 10, "depth": 1, "activation": "erf"}
    plain = nngp.NNGPClassifier(**options).fit(X, y)
    balanced = nngp.NNGPClassifier(**options, class_weight="balanced").fit(X, y)
    by_label = {k: 200 / (3 * (y == k).sum()) for k in range(3)}
    same = nngp.NNGPClassifier(**options, class_weight=by_label).fit(X, y)
    assert (balanced.predict(X) == 2).sum() > (plain.predict(X) == 2).sum()
    np.testing.assert_allclose(balanced.predict_proba(X), same.predict_proba(X), rtol=1e-9)
    for wrong in ("some", {0: -1.0}, {7: 1.0}, [1, 2]):
        with pytest.raises(ValueError, match="class_weight"):
            nngp.NNGPClassifier(**options, class_weight=wrong).fit(X, y)
    for wrong in (np.ones(3), np.zeros(200), -np.ones(200), np.full(200, np.nan)):
        with pytest.raises(ValueError, match="sample_weight"):
            nngp.NNGPClassifier(**options).fit(X, y, sample_weight=wrong)


def test_tables_and_decisions():
    for likelihood in ["regression", "dirichlet"]:
        for classes in [2, 3]:
            X, y = blobs()
            X, y = X[y < classes], y[y < classes]
            model = nngp.NNGPClassifier(selection=None, likelihood=likelihood).fit(X, y)
            table = model.predict_proba(X)
            np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
            assert (table > 0).all()
            np.testing.assert_array_equal(model.predict(X), table.argmax(axis=1))
            np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), table)
            decision = model.decision_function(X)
            if classes == 2:
                assert decision.shape == (len(X),)
                np.testing.assert_array_equal(decision > 0, model.predict(X) == 1)
            else:
                np.testing.assert_array_equal(decision.argmax(axis=1), model.predict(X))


def test_the_choice_of_the_likelihood():
    X, y = blobs(120)
    with pytest.raises(ValueError, match="likelihood must be one of"):
        nngp.NNGPClassifier(likelihood="poisson").fit(X, y)
    model = nngp.NNGPClassifier(selection=None).fit(X, y)
    losses = model.left_out_loss_
    assert model.likelihood_ == min(losses, key=losses.get)
    assert set(losses) == {"regression", "dirichlet"}
    for name in losses:
        alone = nngp.NNGPClassifier(selection=None, likelihood=name).fit(X, y)
        assert alone.likelihood_ == name
        assert alone.left_out_loss_[name] == losses[name]
        if name == model.likelihood_:
            np.testing.assert_array_equal(alone.predict_proba(X), model.predict_proba(X))


def test_the_link_recovers_what_made_the_labels():
    """Labels drawn from a known link: its scale and mixing are found; without mixing, none is."""
    rng = np.random.default_rng(0)
    mean, variance = rng.normal(size=(3000, 3)), np.ones(3000)
    frequencies = np.array([0.6, 0.3, 0.1])
    for mixing in (0.0, 0.2):
        true = OneHotLink(frequencies, 0.25, 0.0, mixing)
        table = true(mean, variance)
        labels = (rng.random(3000)[:, None] > np.cumsum(table, axis=1)).sum(axis=1)
        found = LinkSearch(mean, variance, labels, np.ones(3000)).best(frequencies)
        assert found.exponent == 0
        assert found.scale == pytest.approx(0.25, rel=0.25)
        assert found.mixing == pytest.approx(mixing, abs=0.05)


def test_a_class_that_is_never_predicted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.array(["usual"] * 56 + ["rare"] * 4)
    with pytest.warns(
        nngp.errors.NeverPredictedWarning, match=r"60 held-out rows, .* class 'rare' \(4 rows\)"
    ):
        model = nngp.NNGPClassifier(budget=5, depth=1).fit(X, y)
    assert (model.predict(X) == "usual").all()


@pytest.mark.parametrize(
    ("likelihood", "weighted", "factor"),
    [
        *(("regression", False, True), ("regression", True, False)),
        *(("dirichlet", True, True), ("softmax", True, False)),
    ],
)
def test_saved(tmp_path, likelihood, weighted, factor):
    X, y = blobs()
    y = np.array(["a", "b", "c"])[y]
    model = nngp.NNGPClassifier(
        selection=None, likelihood=likelihood, class_weight={"c": 3.5} if weighted else None
    ).fit(X, y)
    path = Path(tmp_path, "model.nngp")
    model.save(path, factor=factor)
    again = nngp.load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.get_params()["class_weight"] == model.class_weight
    assert again.likelihood_ == likelihood
    assert again.left_out_loss_ == model.left_out_loss_
    assert again.noise_var_ == model.noise_var_
