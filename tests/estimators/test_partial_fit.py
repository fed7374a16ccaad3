"""More rows for a fitted model: the same as a fit on all of them with the same networks."""

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.normal(size=60)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])]
XS = RNG.normal(size=(9, 2))
GIVEN = {"depth": 1, "activation": "erf", "weight_var": 1.5, "bias_var": 0.1, "noise_var": 0.04}
# Scalings that do not depend on the rows: those of the first call stay.
OPTIONS = {**GIVEN, "selection": None, "input_scaling": "none"}
AMOUNTS = {**OPTIONS, "target_scaling": "none"}


def in_two_calls(model, answers, first=40, **more):
    parts = [{k: v[rows] for k, v in more.items()} for rows in (slice(first), slice(first, None))]
    model.partial_fit(X[:first], answers[:first], **parts[0])
    return model.partial_fit(X[first:], answers[first:], **parts[1])


@pytest.mark.parametrize(
    ("more", "outputs"),
    [
        ({}, 1),
        ({"sample_weight": RNG.uniform(0.5, 2, 60)}, 2),
        ({"noise_var": RNG.uniform(0, 0.3, 60)}, 1),
        ({"sample_weight": RNG.uniform(0.5, 2, 60), "noise_var": RNG.uniform(0, 0.3, 60)}, 2),
        ({"sample_weight": np.where(np.arange(60) < 40, 1.0, 0.5)}, 1),
    ],
    ids=["plain", "weights", "noise", "both", "weights later"],
)
def test_a_regressor(more, outputs):
    answers = Y if outputs == 1 else np.column_stack([Y, X[:, 0]])
    whole = nngp.NNGPRegressor(**AMOUNTS, target_transform="identity").fit(X, answers, **more)
    model = in_two_calls(clone_of(whole), answers, **more)
    assert model.posterior_.n == 60
    for a, b in zip(
        model.predict(XS, return_std=True), whole.predict(XS, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    np.testing.assert_allclose(model.left_out().std(), whole.left_out().std(), rtol=1e-9)


def clone_of(model):
    return type(model)(**model.get_params())


@pytest.mark.parametrize(
    ("likelihood", "class_weight"),
    [("regression", {"a": 2.5}), ("dirichlet", None), ("dirichlet", {"a": 2.5})],
)
def test_a_classifier(likelihood, class_weight):
    options = {**OPTIONS, "likelihood": likelihood, "class_weight": class_weight}
    model = in_two_calls(nngp.NNGPClassifier(**options), LABELS)
    whole = nngp.NNGPClassifier(**options).fit(X, LABELS)
    # The scale of one-hot targets is that of the first rows; means in their units do not change.
    scale = model.networks_[0].targets.spread[0] / whole.networks_[0].targets.spread[0]
    assert scale == pytest.approx(1.0, abs=0.1)
    noise = np.broadcast_to(model.posterior_.noise_var, 60)
    K = nngp.kernel(model.network_, X) + np.diag(noise)
    one_hot = np.eye(3)[np.searchsorted(["a", "b", "c"], LABELS)] - 1 / 3
    dense = nngp.kernel(model.network_, XS, X) @ np.linalg.solve(K, one_hot)
    np.testing.assert_allclose(model.predict_mean(XS), dense, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(XS), whole.predict_proba(XS), atol=0.1)
    assert model.likelihood_ == likelihood
    assert (model.predict(XS) == whole.predict(XS)).mean() > 0.8


def test_saved_in_between(tmp_path):
    model = nngp.NNGPRegressor(effort="fast", budget=6).fit(X[:40], Y[:40])
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    for one in (model, again):
        one.partial_fit(X[40:], Y[40:])
    np.testing.assert_array_equal(again.predict(XS), model.predict(XS))
    again.save(tmp_path / "more.nngp")
    loaded = nngp.load(tmp_path / "more.nngp")
    np.testing.assert_array_equal(loaded.predict(XS), model.predict(XS))


def test_the_first_model_is_not_changed():
    """A network that was taken out of the model before stays as it was."""
    model = nngp.NNGPRegressor(**AMOUNTS).fit(X[:40], Y[:40])
    before, mean = model.networks_[0], model.posterior_.mean(XS)
    model.partial_fit(X[40:], Y[40:])
    assert before.posterior.n == 40
    np.testing.assert_array_equal(before.posterior.mean(XS), mean)


def test_what_cannot_be_added():
    model = nngp.NNGPRegressor(**AMOUNTS).fit(X, Y)
    with pytest.raises(ValueError, match="y has the shape") as caught:
        model.partial_fit(X, np.column_stack([Y, Y]))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :1], Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.partial_fit(X, Y[:-1])
    classes = nngp.NNGPClassifier(**OPTIONS).fit(X, LABELS)
    with pytest.raises(ValueError, match="the class 'z', which the first call did not have"):
        classes.partial_fit(X[:2], ["a", "z"])
    balanced = nngp.NNGPClassifier(**OPTIONS, class_weight="balanced").fit(X, LABELS)
    with pytest.raises(ValueError, match="'balanced' needs all rows at once"):
        balanced.partial_fit(X, LABELS)
    with pytest.raises(ValueError, match="has no row of class 'z'"):
        nngp.NNGPClassifier(**OPTIONS).partial_fit(X, LABELS, classes=["a", "b", "c", "z"])


def test_the_range_seen_grows():
    """A row beyond the first ones is warned of before it was added, and not afterwards."""
    far = np.array([[40.0, 0.0]])
    model = nngp.NNGPRegressor(**AMOUNTS).fit(X, Y)
    with pytest.warns(nngp.errors.ExtrapolationWarning):
        model.predict(far)
    with pytest.warns(nngp.errors.ExtrapolationWarning):
        model.partial_fit(far, [0.0])
    model.predict(far)
    classes = nngp.NNGPClassifier(**OPTIONS).fit(X, LABELS)
    with pytest.warns(nngp.errors.ExtrapolationWarning):
        classes.partial_fit(far, ["a"])
    classes.predict(far)


def test_noise_that_varies_is_that_of_the_rows_that_come_later():
    """Weighted rows with known noise get (learned + known) / weight, as those of the first call."""
    y = np.sin(X[:, 0]) + np.where(X[:, 1] > 0, 1.0, 0.02) * RNG.normal(size=60)
    options = {"effort": "fast", "budget": 10, "target_transform": "identity"}
    model = nngp.NNGPRegressor(noise="heteroscedastic", **options)
    weights, known = RNG.uniform(0.5, 2, 60), RNG.uniform(0, 0.1, 60)
    model.fit(X, y, sample_weight=weights, noise_var=known)
    network = model.networks_[0]
    unit = network.targets.spread[0] ** 2

    def expected(points, weights, known):
        return (network.varying.noise_at(network.inputs(points)) + known / unit) / weights

    np.testing.assert_allclose(model.posterior_.noise_var, expected(X, weights, known), rtol=1e-9)
    model.partial_fit(X[:5] + 0.01, y[:5], sample_weight=weights[:5], noise_var=known[:5])
    later = expected(X[:5] + 0.01, weights[:5], known[:5])
    np.testing.assert_allclose(model.posterior_.noise_var[60:], later, rtol=1e-9)


def test_targets_that_are_not_positive_after_positive_ones():
    answers = np.exp(Y)
    model = nngp.NNGPRegressor(**GIVEN, effort="fast", budget=3, target_transform="log")
    model.fit(X, answers)
    before = model.predict(XS)
    with pytest.raises(ValueError, match="got -1, so call fit with all rows"):
        model.partial_fit(XS[:1], [-1.0])  # whose logarithm would be that of the least number
    np.testing.assert_array_equal(model.predict(XS), before)
    model = nngp.NNGPRegressor(**GIVEN, effort="fast", budget=3, target_transform="yeo-johnson")
    model.fit(X, answers)
    assert model.predict_quantile(XS, 1e-9).min() > 0
    model.partial_fit(XS[:1], [-1.0])
    assert model.predict_quantile(XS, 1e-9).min() < 0
    assert np.isfinite(model.log_density(XS[:1], [-1.0])).all()


def test_another_shape_of_targets_is_refused():
    model = nngp.NNGPRegressor(**AMOUNTS).fit(X, Y)
    with pytest.raises(ValueError, match=r"first call was \(n,\); pass y in the same shape"):
        model.partial_fit(XS, np.ones((9, 1)))
