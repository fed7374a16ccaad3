"""Whitening: the matrix is that of NumPy's covariance, the strength that of the highest evidence;
rows that have no direction are named."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nngp
from nngp.frames.scaling import InputScaling, learn_whitening
from nngp.frames.whitening import STRENGTHS, InputSpectrum

RNG = np.random.default_rng(0)
MIXED = RNG.normal(size=(80, 6)) @ RNG.normal(size=(6, 6)) + 3.0
NET = nngp.Architecture(2, "relu", 2.0, 0.1)


def by_numpy(X, strength, rows, weights=None):
    """Whitened rows by the singular values of the centred training rows."""
    mean = np.average(X, axis=0, weights=weights)
    w = np.ones(len(X)) if weights is None else weights
    rows_weighted = (X - mean) * np.sqrt(w / w.sum())[:, None]
    few = len(X) < X.shape[1]  # then some directions have no singular value
    _, s, Vt = np.linalg.svd(rows_weighted, full_matrices=few)
    values = np.zeros(X.shape[1])
    values[: len(s)] = s**2
    W = Vt.T @ np.diag((values + strength * values.mean()) ** -0.5) @ Vt
    out = (rows - mean) @ W
    return out / np.sqrt(np.mean(out**2, axis=1, keepdims=True))


TABLES = [
    MIXED,
    MIXED[:4],  # fewer rows than columns
    MIXED[:, :1],
    1e200 * MIXED,
    1e-200 * MIXED,
    np.column_stack([MIXED, np.full(80, 7.0)]),
    np.column_stack([MIXED[:, :2], 1e6 * MIXED[:, 2:]]),
]


def test_the_matrix_of_the_covariance():
    for strength in [1e-3, 0.1, 3.0]:
        for X in TABLES:
            new = X[:4] + 0.7 * (X[:1] - X[1:2])
            found = learn_whitening(X, strength)(new)
            scale = np.abs(X).max()
            np.testing.assert_allclose(found, by_numpy(X / scale, strength, new / scale), atol=1e-9)
            np.testing.assert_allclose(np.mean(found**2, axis=1), 1.0, rtol=1e-14)


def test_weights_are_copies():
    counts = np.arange(80) % 3 + 1
    weighted = learn_whitening(MIXED, 0.1, counts.astype(float))
    repeated = learn_whitening(np.repeat(MIXED, counts, axis=0), 0.1)
    np.testing.assert_allclose(weighted(MIXED), repeated(MIXED), rtol=0, atol=1e-12)
    np.testing.assert_allclose(weighted(MIXED), by_numpy(MIXED, 0.1, MIXED, counts), atol=1e-12)


def test_a_column_that_was_constant_is_ignored_later():
    X = np.column_stack([MIXED, np.full(80, 0.1)])
    new = X[:5].copy()
    new[:, -1] = 1e9
    np.testing.assert_array_equal(learn_whitening(X, 0.1)(new), learn_whitening(X, 0.1)(X[:5]))


def test_many_rows_are_the_rows():
    """The covariance is summed in parts."""
    X = np.random.default_rng(2).normal(size=(9000, 3)) @ MIXED[:3, :3]
    np.testing.assert_allclose(learn_whitening(X, 0.1)(X[:9]), by_numpy(X, 0.1, X[:9]), atol=1e-12)


AT_THE_MEAN = [
    ([[1.0, 2.0]], 0),
    ([[1.0, 2.0]] * 3, 0),
    ([[0.1], [0.2], [0.3]], 1),
    ([[1.0, 1.0], [3.0, -1.0], [2.0, 0.0], [2.0, 0.0]], 2),
]


def test_a_row_at_the_mean_has_no_direction():
    for X, row in AT_THE_MEAN:
        with pytest.raises(ValueError, match=f"row {row} equals the mean of the training inputs"):
            learn_whitening(np.array(X))
        with pytest.raises(ValueError, match="leave out such rows or use 'standardize'"):
            nngp.NNGPRegressor(input_scaling="whiten", selection=None).fit(X, np.arange(len(X)))


def test_a_new_row_at_the_mean():
    model = nngp.NNGPRegressor(input_scaling="whiten", selection=None).fit(MIXED, MIXED[:, 0])
    with pytest.raises(ValueError, match="row 1 equals the mean of the training inputs"):
        model.predict([MIXED[0], model.networks_[0].inputs.center])


def test_too_many_columns(monkeypatch):
    monkeypatch.setattr("nngp.frames.whitening.MOST_COLUMNS", 5)
    with pytest.raises(ValueError, match="takes at most 5 columns, and there are 6"):
        learn_whitening(MIXED)


@pytest.mark.parametrize("n", [60, 1200])
def test_the_fit_whitens_by_its_training_rows_alone(n):
    X = np.random.default_rng(3).normal(size=(n, 4)) @ MIXED[:4, :4]
    y = np.sin(X[:, 0])
    model = nngp.NNGPRegressor(
        network=NET,
        noise_var=0.01,
        input_scaling="whiten",
        whitening=0.2,
        target_transform="identity",
        calibrate=False,
        effort="fast",
    ).fit(X, y)
    new = X[:7] + 1.0
    posterior = nngp.condition(NET, by_numpy(X, 0.2, X), (y - y.mean()) / y.std(), noise_var=0.01)
    mean, variance = posterior.predict(by_numpy(X, 0.2, new))
    found, deviation = model.predict(new, return_std=True, noise=False)
    np.testing.assert_allclose(found, y.mean() + y.std() * mean, rtol=1e-8)
    np.testing.assert_allclose(deviation, y.std() * np.sqrt(variance), rtol=1e-6)
    one_by_one = np.concatenate([model.predict(row[None]) for row in new])
    np.testing.assert_allclose(one_by_one, model.predict(new), rtol=1e-10)
    assert model.whitening_ == 0.2


def common(n, small, seed=4):
    """Ten columns that share three sources; the targets depend on these, or on what is left."""
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=(n, 3)), rng.normal(size=(n, 10))
    X = shared @ rng.normal(size=(3, 10)) + 0.05 * own
    y = np.sin(own[:, 0]) if small else shared[:, 0] / np.linalg.norm(shared, axis=1)
    return X, y + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("network", "small"),
    [
        (None, True),
        (NET, False),
        pytest.param(None, False, marks=pytest.mark.slow),
        pytest.param(NET, True, marks=pytest.mark.slow),
    ],
)
def test_the_evidence_chooses_the_strength(network, small):
    X, y = common(100, small)
    model = nngp.NNGPRegressor(
        input_scaling="whiten",
        network=network,
        target_transform="identity",
        calibrate=False,
        effort="fast",
    ).fit(X, y)
    assert model.whitening_ == 0.01 if small else model.whitening_ >= 0.1
    fixed = {
        strength: nngp.NNGPRegressor(
            input_scaling="whiten",
            whitening=strength,
            network=model.network_,
            target_transform="identity",
            calibrate=False,
        ).fit(X, y)
        for strength in STRENGTHS
    }
    evidence = {strength: one.log_evidence_ for strength, one in fixed.items()}
    assert max(evidence, key=evidence.get) == model.whitening_
    assert model.log_evidence_ > evidence[model.whitening_] - 1.0


def test_what_was_tried_is_told():
    X, y = common(120, True)
    model = nngp.NNGPRegressor(input_scaling="whiten", effort="fast").fit(X, y)
    table = model.selection_
    rows = table["stage"] == "whitening"
    assert sorted(table["whitening"][rows]) == sorted(STRENGTHS)
    assert set(table["whitening"][table["stage"] == "kind"]) == {0.1}
    assert table["whitening"][table["chosen"]].tolist() == [model.whitening_]
    given = nngp.NNGPRegressor(input_scaling="whiten", whitening=0.5, effort="fast").fit(X, y)
    assert set(given.selection_["whitening"]) == {0.5}
    assert "whitening" not in nngp.NNGPRegressor(effort="fast").fit(X, y).selection_
    assert nngp.NNGPRegressor(selection=None).fit(X, y).whitening_ is None


@pytest.mark.parametrize("selection", ["loo", None])
def test_other_criteria(selection):
    X, y = common(80, True)
    model = nngp.NNGPClassifier(input_scaling="whiten", selection=selection, budget=25)
    model.fit(X, y > 0)
    assert model.whitening_ in (STRENGTHS if selection == "loo" else (0.1,))
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("kind", [nngp.NNGPRegressor, nngp.NNGPClassifier])
def test_the_same_bits_after_loading(tmp_path, kind):
    X, y = common(120, True)
    answers = y[:80] if kind is nngp.NNGPRegressor else y[:80] > 0
    model = kind(input_scaling="whiten", effort="fast", selection_size=60).fit(X[:80], answers)
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.whitening_ == model.whitening_
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(X[80:]), model.predict(X[80:]))
    assert again.selection_["whitening"].tolist() == model.selection_["whitening"].tolist()


@pytest.mark.slow
def test_images_gain_by_whitening():
    """Of digits with a gradient of light across them, which is what unit rows mostly see."""
    X, y = load_digits(return_X_y=True)
    light = np.random.default_rng(5).normal(size=(len(X), 2)) @ [[3.0] * 64, list(range(64))]
    X = X + 5.0 * light
    options = {"effort": "fast", "selection_size": 200, "likelihood": "regression"}
    plain, white = (
        nngp.NNGPClassifier(input_scaling=kind, **options)
        .fit(X[:400], y[:400])
        .score(X[400:], y[400:])
        for kind in ("unit", "whiten")
    )
    assert white > plain + 0.1


def test_one_decomposition_serves_all_strengths():
    spectrum = InputSpectrum.learn(MIXED)
    for strength in STRENGTHS:
        scaling = InputScaling.whitened(spectrum, strength)
        np.testing.assert_array_equal(scaling(MIXED), learn_whitening(MIXED, strength)(MIXED))
        matrix = spectrum.whitening(strength).matrix
        np.testing.assert_array_equal(matrix, matrix.T)
