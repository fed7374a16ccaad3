"""Invariances: the one that the data have is chosen, at the evidence that brute force finds; those
that are given are used; predictions do not change under them."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import load_digits

import nngp
from nngp import images
from nngp.selection.families import image_size, name_of

SHAPE = (4, 5)
FAST = {"effort": "fast", "target_transform": "identity", "calibrate": False}
NET = nngp.Architecture(2, "relu", 1.5, 0.2)


def scenes(n, seed=0):
    """Images of 4 x 5 pixels, each with a pattern of its own."""
    return np.random.default_rng(seed).normal(size=(n, 20))


def mirrored(X):
    return X.reshape(-1, *SHAPE)[:, :, ::-1].reshape(len(X), -1)


def symmetric_targets(X, noise=0.05):
    """Products of neighbouring columns of an image and its mirror image."""
    both = X.reshape(-1, *SHAPE) + X.reshape(-1, *SHAPE)[:, :, ::-1]
    y = (both[:, 0, 0] * both[:, 1, 1]) / np.einsum("ij,ij->i", X, X) ** 0.5
    return y + noise * np.random.default_rng(1).normal(size=len(X))


def test_symmetric_targets_make_flips():
    X = scenes(250)
    y = symmetric_targets(X)
    model = nngp.NNGPRegressor(invariance="auto", image_shape=SHAPE, **FAST).fit(X, y)
    assert model.invariance_ == (images.flips(SHAPE),)
    table = model.selection_
    tried = table["invariance"][table["stage"] == "invariance"].tolist()
    assert tried == ["", "flips", "flips, vertical_flips", "flips, shifts(1)"]
    assert table["invariance"][table["chosen"]].tolist() == ["flips"]
    plain = nngp.NNGPRegressor(input_scaling="unit", **FAST).fit(X, y)
    assert plain.invariance_ == ()
    new = scenes(400, seed=2)
    truth = symmetric_targets(new, noise=0.0)
    errors = [np.mean((one.predict(new) - truth) ** 2) for one in (model, plain)]
    assert errors[0] < 0.8 * errors[1]
    np.testing.assert_allclose(model.predict(mirrored(new)), model.predict(new), rtol=1e-9)


@pytest.mark.slow
def test_digits_are_shifted_and_not_mirrored():
    X, y = load_digits(return_X_y=True)
    options = {"effort": "fast", "likelihood": "regression", "selection_size": 600}
    model = nngp.NNGPClassifier(invariance="auto", **options).fit(X[:300], y[:300])
    assert [name_of((one,)) for one in model.invariance_] == ["shifts(1)"]
    evidence = dict(
        zip(model.selection_["invariance"], model.selection_["log_evidence"], strict=True)
    )
    assert evidence["flips"] < evidence[""] < evidence["shifts(1)"]
    plain = nngp.NNGPClassifier(input_scaling="unit", **options).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > plain.score(X[300:], y[300:])


def test_labels_that_a_flip_changes_make_none():
    """Which side an object is on: the mirror image has the other label."""
    X = scenes(200)
    X[np.arange(200), np.arange(200) % 2 * 4 + 5] += 4.0
    labels = np.array(["left", "right"])[np.arange(200) % 2]
    model = nngp.NNGPClassifier(
        invariance="auto", image_shape=SHAPE, effort="fast", likelihood="regression"
    ).fit(X, labels)
    assert "flips" not in [one.label for one in model.invariance_]


def brute_kernel(net, X, family):
    """The mean over all pairs of transformations."""
    moved = [one(X) for one in family.elements(X.shape[1])]
    pairs = [
        wg * wh * nngp.kernel(net, g, h)
        for g, wg in zip(moved, family.weights, strict=True)
        for h, wh in zip(moved, family.weights, strict=True)
    ]
    return sum(pairs)


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_evidence_is_that_of_brute_force(weighted):
    n = 301
    X = scenes(n)
    X[200:] = X[:101]  # seen twice, so that the noise is known
    y = symmetric_targets(X, noise=0.2)
    weights = np.where(np.arange(n) < 4, 2.0, 1.0) if weighted else None  # too many for copies
    model = nngp.NNGPRegressor(invariance="auto", image_shape=SHAPE, depth=2, **FAST)
    model.fit(X, y, sample_weight=weights)
    table, net = model.selection_, model.network_
    net = getattr(net, "network", net)
    row = table["invariance"] == "flips"
    weights_of_layers = table["weight_var"][table["stage"] == "last"][0]
    biases = table["bias_var"][table["stage"] == "last"][0]
    base = nngp.Architecture(2, net.activation, weights_of_layers, biases)
    K = brute_kernel(base, nngp.normalize(X), images.flips(SHAPE))
    w = np.ones(n) if weights is None else weights
    mean = np.average(y, weights=w)
    spread = np.sqrt(np.average((y - mean) ** 2, weights=w))
    targets = (y - mean) / spread

    def loss(theta):
        noise, scale = np.exp(theta)
        S = scale * (K + noise * np.diag(1 / w))
        value = multivariate_normal(np.zeros(n), S, allow_singular=True).logpdf(targets)
        # Copies of a row: their mean has the density above, their differences this.
        value += 0.5 * ((1 - w) * np.log(2 * np.pi * noise * scale) - np.log(w)).sum()
        return 0.5 * (np.log(noise * scale / 0.1) / 3) ** 2 - value

    best = minimize(loss, [-2.0, 0.0], method="Nelder-Mead")
    found = table["log_evidence"][row][0] + w.sum() * np.log(spread)
    assert abs(n * table["score"][row][0] + best.fun) < 0.1
    noise = np.exp(best.x.sum())
    prior = -0.5 * (np.log(noise / 0.1) / 3) ** 2
    assert abs(found + best.fun + prior) < 0.1
    np.testing.assert_allclose(table["noise_var"][row][0], noise, rtol=0.05)


def test_given_families_are_used_as_they_are():
    X = scenes(80)
    y = symmetric_targets(X)
    family = images.flips(SHAPE, probability=0.3)
    model = nngp.NNGPRegressor(
        invariance=family,
        selection=None,
        depth=2,
        weight_var=1.5,
        bias_var=0.2,
        activation="relu",
        noise_var=0.01,
        **FAST,
    ).fit(X, y)
    assert model.invariance_ == (family,)
    assert model.network_ == nngp.Invariant(NET, family)
    U, new = nngp.normalize(X), scenes(10, seed=3)
    posterior = nngp.condition(
        nngp.Invariant(NET, family), U, (y - y.mean()) / y.std(), noise_var=0.01
    )
    expected = y.mean() + y.std() * posterior.mean(nngp.normalize(new))
    np.testing.assert_allclose(model.predict(new), expected, rtol=1e-9)


@pytest.mark.parametrize("selection", ["evidence", "loo"])
def test_given_families_with_a_chosen_network(selection):
    X = scenes(80)
    y = symmetric_targets(X)
    model = nngp.NNGPRegressor(
        invariance=images.flips(), image_shape=SHAPE, selection=selection, budget=60, **FAST
    ).fit(X, y)
    assert model.invariance_ == (images.flips(SHAPE),)
    np.testing.assert_allclose(model.predict(mirrored(X)), model.predict(X), rtol=1e-7)
    spent = nngp.NNGPRegressor(invariance=images.flips(SHAPE), budget=1, **FAST).fit(X, y)
    assert spent.invariance_ == (images.flips(SHAPE),)


def test_given_families_with_a_given_network():
    X = scenes(80)
    y = symmetric_targets(X)
    options = {**FAST, "noise_var": 0.02}
    both = nngp.NNGPRegressor(network=NET, invariance=images.flips(SHAPE), **options).fit(X, y)
    one = nngp.NNGPRegressor(network=nngp.Invariant(NET, images.flips(SHAPE)), **options).fit(X, y)
    np.testing.assert_array_equal(both.predict(X), one.predict(X))
    assert one.invariance_ == both.invariance_ == (images.flips(SHAPE),)
    noisy = nngp.NNGPRegressor(network=NET, invariance=images.flips(SHAPE), **FAST).fit(X, y)
    U = nngp.normalize(X)
    net, Y = nngp.Invariant(NET, images.flips(SHAPE)), (y - y.mean()) / y.std()
    evidence = [
        nngp.condition(net, U, Y, noise_var=noise).log_evidence
        for noise in np.geomspace(1e-4, 2.0, 60)
    ]
    in_units_of_y = max(evidence) - len(y) * np.log(y.std())
    assert noisy.log_evidence_ > in_units_of_y - 0.05  # with a scale of the outputs as well


def test_variances_that_were_given_stay():
    """Only the noise moves then, to where it is best for the network as it is."""
    X = scenes(120)
    y = symmetric_targets(X)
    given = {"depth": 2, "activation": "relu", "weight_var": 1.5, "bias_var": 0.2}
    model = nngp.NNGPRegressor(invariance="auto", image_shape=SHAPE, **given, **FAST).fit(X, y)
    assert model.network_ == nngp.Invariant(NET, images.flips(SHAPE))
    U, Y = nngp.normalize(X), (y - y.mean()) / y.std()

    def evidence(noise):
        return nngp.condition(model.network_, U, Y, noise_var=noise).log_evidence

    best = max(map(evidence, np.geomspace(1e-4, 2.0, 60)))
    assert evidence(model.noise_var_) > best - 0.1
    fixed = nngp.NNGPRegressor(
        invariance="auto", image_shape=SHAPE, noise_var=0.03, **given, **FAST
    ).fit(X, y)
    assert fixed.noise_var_ == 0.03
    assert fixed.invariance_ == model.invariance_


def test_several_networks_get_one_invariance():
    X = scenes(150)
    y = symmetric_targets(X)
    model = nngp.NNGPRegressor(
        invariance="auto", image_shape=SHAPE, n_networks=2, effort="normal", selection_size=150
    ).fit(X, y)
    families = {one.network.transformations for one in model.networks_}
    assert families == {(images.flips(SHAPE),)}


def test_whitened_images_are_averaged_too():
    X = scenes(120)
    y = symmetric_targets(X)
    model = nngp.NNGPRegressor(
        invariance=images.flips(SHAPE), input_scaling="whiten", whitening=1.0, **FAST
    ).fit(X, y)
    white = model.networks_[0].inputs(X)
    mean = model.posterior_.mean(white)
    np.testing.assert_allclose(model.posterior_.mean(mirrored(white)), mean, rtol=1e-9)


def test_more_rows_can_be_added():
    X = scenes(100)
    y = symmetric_targets(X)
    options = {"invariance": images.flips(SHAPE), "selection": None, **FAST}
    model = nngp.NNGPRegressor(**options).fit(X[:80], y[:80]).partial_fit(X[80:], y[80:])
    whole = nngp.condition(
        model.network_,
        nngp.normalize(X),
        model.networks_[0].targets(y[:, None]),
        noise_var=model.noise_var_,
    )
    new = nngp.normalize(scenes(5, seed=4))
    np.testing.assert_allclose(model.posterior_.mean(new), whole.mean(new), rtol=1e-8)


@pytest.mark.filterwarnings("ignore::nngp.errors.NeverPredictedWarning")  # a small budget
@pytest.mark.parametrize("invariance", ["auto", [images.flips(), images.shifts(1)]])
def test_the_same_after_loading(tmp_path, invariance):
    X = scenes(90)
    y = symmetric_targets(X) > 0
    model = nngp.NNGPClassifier(
        invariance=invariance, image_shape=SHAPE, effort="fast", budget=40
    ).fit(X, y)
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.get_params() == model.get_params()
    assert again.invariance_ == model.invariance_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for name, column in model.selection_.items():
        assert column.tolist() == again.selection_[name].tolist()
    assert clone(again).get_params() == model.get_params()


def test_images_with_dark_corners_can_be_loaded(tmp_path):
    """Pixels that are zero in all training images: the row of least values has no direction."""
    X = np.abs(scenes(40))
    X[np.arange(40), np.arange(40) % 20] = 0.0
    model = nngp.NNGPRegressor(input_scaling="unit", selection=None).fit(X, X[:, 0])
    model.save(tmp_path / "model.nngp")
    np.testing.assert_array_equal(nngp.load(tmp_path / "model.nngp").predict(X), model.predict(X))


def test_a_function_of_your_own_can_be_used_and_not_saved(tmp_path):
    X = scenes(60)
    model = nngp.NNGPRegressor(invariance=mirrored, selection=None).fit(X, symmetric_targets(X))
    np.testing.assert_allclose(model.predict(mirrored(X)), model.predict(X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"cannot be (saved|written to a file)"):
        model.save(tmp_path / "model.nngp")


def test_a_few_points_choose_nothing():
    X = scenes(4)
    with pytest.warns(nngp.errors.FewDataWarning):
        model = nngp.NNGPRegressor(invariance="auto", image_shape=SHAPE).fit(X, X[:, 0])
    assert model.invariance_ == ()


def test_the_budget_is_kept():
    X = scenes(80)
    options = {"invariance": "auto", "image_shape": SHAPE, "depth": 1, **FAST}
    whole = nngp.NNGPRegressor(**options).fit(X, symmetric_targets(X)).selection_
    needed = whole["evaluations"].sum()
    for budget in (10, needed - 3, needed - 2, needed - 1):
        some = nngp.NNGPRegressor(**options, budget=budget).fit(X, symmetric_targets(X)).selection_
        assert some["evaluations"].sum() <= budget
        tried = (some["stage"] == "invariance").sum()
        assert tried < (whole["stage"] == "invariance").sum()


def test_the_evidence_of_the_fit_is_that_of_the_choice():
    """The scale of the kernel went into the last layer."""
    X = scenes(120)
    y = symmetric_targets(X)
    options = {"image_shape": SHAPE, "invariance": images.flips()}
    regressor = nngp.NNGPRegressor(**options, **FAST).fit(X, y)
    classifier = nngp.NNGPClassifier(**options, effort="fast").fit(X, y > 0)
    for model in (regressor, classifier):
        chosen = model.selection_["log_evidence"][model.selection_["chosen"]]
        assert model.selection_["stage"][model.selection_["chosen"]] == ["invariance"]
        np.testing.assert_allclose(model.log_evidence_, chosen[0], rtol=1e-6)


def test_shapes_of_images():
    assert image_size((3, 32, 30)) == image_size((32, 30, 3)) == (32, 30, 3)
    assert image_size((28, 20)) == (28, 20, 1)
    X = np.random.default_rng(0).normal(size=(60, 24))
    for shape in ((4, 3, 2), (2, 4, 3)):
        model = nngp.NNGPRegressor(invariance="auto", image_shape=shape, **FAST)
        tried = set(model.fit(X, X[:, 0]).selection_["invariance"])
        assert {"flips", "colour_order"} <= tried
    square = nngp.NNGPRegressor(invariance="auto", **FAST).fit(X[:, :16], X[:, 0])
    assert {"rotations", "shifts(1)"} <= set(square.selection_["invariance"])


def test_the_counted_work_has_all_products():
    n, shape = 50_000, (28, 28)
    plain, chosen, given = (
        nngp.NNGPClassifier(input_scaling="unit", invariance=one)._forecast(
            (n, 784), 10, classes=True
        )
        for one in (None, "auto", images.shifts(2, shape))
    )
    assert chosen.choice > given.choice > plain.choice
    factors = [one.phases["factor"] for one in (plain, given, chosen)]
    assert factors[2] > factors[1] > 2 * factors[0]


def test_progress_of_a_fit_with_an_invariance():
    X = scenes(80)
    steps = []
    nngp.NNGPRegressor(
        invariance=images.flips(SHAPE), progress=steps.append, budget=20, **FAST
    ).fit(X, symmetric_targets(X))
    done = [step.done for step in steps if step.phase == "choose the network"]
    assert done == sorted(done)
    assert done[-1] == 1.0


WRONG = {
    "no square": (
        {"invariance": "auto"},
        "20 columns are no square image; pass image_shape=\\(height, width\\)",
    ),
    "another shape": (
        {"invariance": "auto", "image_shape": (3, 5)},
        "images of image_shape=\\(3, 5\\) have 15 numbers, and X has 20",
    ),
    "no shape": ({"invariance": "auto", "image_shape": 20}, "image_shape: "),
    "four axes": (
        {"invariance": "auto", "image_shape": (1, 2, 2, 5)},
        "image_shape: shape must be \\(height, width\\)",
    ),
    "a word": ({"invariance": "flips"}, "invariance must be None, 'auto', or families"),
    "a number": ({"invariance": 3}, "transformations must be families"),
    "families of other images": (
        {"invariance": images.flips((28, 28))},
        "images of shape \\(28, 28\\) have 784 numbers, and X has 20",
    ),
    "standardized": (
        {"invariance": images.flips(SHAPE), "input_scaling": "standardize"},
        "input_scaling='standardize' gives each column a scale of its own",
    ),
    "a sphere": (
        {"invariance": "auto", "image_shape": SHAPE, "input_scaling": "sphere"},
        "use 'unit', 'whiten' or 'none'",
    ),
    "relevances": (
        {"invariance": images.flips(SHAPE), "relevance": np.ones(20)},
        "relevance gives each column a scale of its own",
    ),
    "learned relevances": (
        {"invariance": images.flips(SHAPE), "relevance": True, "input_scaling": "none"},
        "no invariance and no network=",
    ),
    "twice": (
        {"invariance": images.flips(SHAPE), "network": nngp.Invariant(NET, images.flips(SHAPE))},
        "the network is invariant already",
    ),
    "chosen for a network": (
        {"invariance": "auto", "image_shape": SHAPE, "network": NET},
        "invariance='auto' is chosen by evidence",
    ),
    "chosen by nothing": (
        {"invariance": "auto", "image_shape": SHAPE, "selection": None},
        "or pass families such as",
    ),
    "chosen at infinite depth": (
        {"invariance": "auto", "image_shape": SHAPE, "depth": math.inf},
        "a network of finite depth",
    ),
}


def test_what_cannot_be_is_said():
    for case in WRONG:
        options, sentence = WRONG[case]
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            nngp.NNGPRegressor(**options).fit(scenes(20), np.arange(20.0))
        assert "\n" not in str(caught.value)


def training_images(name, folder, n):
    datasets = pytest.importorskip("nngp_paper.datasets")
    found = datasets.load(name, folder, download=False)
    return found.train_images[:n].reshape(n, -1) / 255.0, found.train_labels[:n]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "shape", "flipped"),
    [
        ("mnist", "mnist.npz", (28, 28), False),
        pytest.param(
            *("cifar10", "cifar10/test_batch.npz", (32, 32, 3), True), marks=pytest.mark.deep
        ),
    ],
)
def test_real_images(data_folder, monkeypatch, name, file, shape, flipped):
    """Digits are not mirrored; things are, and keep their label."""
    monkeypatch.setattr("nngp.selection.families.LARGEST_SHIFT", 1)  # time
    X, y = training_images(name, data_folder(file), 1000)
    model = nngp.NNGPClassifier(
        invariance="auto",
        image_shape=shape,
        likelihood="regression",
        effort="fast",
        selection_size=2000,
    ).fit(X, y)
    labels = [one.label for one in model.invariance_]
    assert ("flips" in labels) == flipped
    assert "shifts" in labels
    assert not {"vertical_flips", "rotations"} & set(labels)
    plain = nngp.NNGPClassifier(input_scaling="unit", likelihood="regression", effort="fast")
    right = [(one.left_out().argmax(axis=1) == y).mean() for one in (model, plain.fit(X, y))]
    assert right[0] > right[1] + 0.01
