"""The variants of the CIFAR-10 rows are what they say, on random images; no data are needed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nngp
from nngp_paper import datasets

RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8)
TEST = RNG.integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)
LABELS = RNG.permutation(np.repeat(np.arange(10), 5000))
NET = nngp.Architecture(2, "relu", 1.5, 0.3)


@pytest.fixture(scope="module")
def table():
    return nngp.curves.LookupTable("relu", n_g=51, n_v=21, n_c=100, s_max=5.0, u_max=10.0)


@pytest.fixture
def images():
    names = tuple("0123456789")
    return datasets.Images("made", TRAIN, LABELS[:40], TEST, LABELS[40:70], names)


def problem(name, images):
    """The inputs of a variant, with all 40 images in order unless it draws them."""
    from dataclasses import replace

    from ablation_runs import Problem
    from ablation_variants import VARIANTS

    variant = replace(VARIANTS[name], choose=lambda labels, n: np.arange(n))
    return Problem.of(variant, images, 40)


def test_the_reference_has_images_of_mean_zero_and_variance_one(images):
    found = problem("reference", images)
    rows = TEST.reshape(30, -1).astype(float)
    assert_allclose(found.X_test, (rows - rows.mean(1)[:, None]) / rows.std(1)[:, None], atol=1e-12)
    assert_allclose(found.X.mean(axis=1), 0, atol=1e-12)


def test_images_that_are_not_centred_keep_their_direction(images):
    found = problem("not centred", images).X
    rows = TRAIN.reshape(40, -1).astype(float)
    norms = np.sqrt((rows**2).mean(axis=1))
    assert_allclose(found, rows / norms[:, None], rtol=1e-12)
    assert found.mean(axis=1).min() > 0.5


@pytest.mark.parametrize("name", ["channels first", "pixels 0 to 1"])
def test_order_of_channels_and_scale_of_pixels_leave_the_gram_matrix(name, images):
    reference, found = problem("reference", images), problem(name, images)
    assert np.allclose(reference.X, found.X) == (name != "channels first")
    assert_allclose(nngp.kernel(NET, found.X), nngp.kernel(NET, reference.X), rtol=1e-12)
    assert_allclose(found.X_test @ found.X.T, reference.X_test @ reference.X.T, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "axes"), [("channels standardised", (0, 1, 2)), ("pixels standardised", (0,))]
)
def test_statistics_are_those_of_the_training_images(name, axes):
    from ablation_variants import VARIANTS

    (step,) = VARIANTS[name].steps
    train, test = step(TRAIN, TEST)
    assert_allclose(train.mean(axis=axes), 0, atol=1e-12)
    assert_allclose(train.std(axis=axes), 1, rtol=1e-12)
    mean, deviation = TRAIN.mean(axis=axes), TRAIN.std(axis=axes)
    assert_allclose(test * deviation + mean, TEST, atol=1e-9)


def test_pictures():
    import ablation_images as im

    assert_array_equal(im.middle(24)(TRAIN), TRAIN[:, 4:28, 4:28])
    assert_array_equal(im.every(4)(TRAIN)[:, 1, 2], TRAIN[:, 4, 8])
    assert_allclose(im.means_of(4)(TRAIN)[:, 1, 2], TRAIN[:, 4:8, 8:12].mean(axis=(1, 2)))
    grey = im.luminance(np.full((1, 2, 2, 3), 7.0))
    assert_allclose(grey, np.full((1, 2, 2, 1), 7.0))
    mirrored, same = im.flipped(TRAIN, TEST)
    turned = [np.array_equal(a, b[:, ::-1]) for a, b in zip(mirrored, TRAIN, strict=True)]
    kept = [np.array_equal(a, b) for a, b in zip(mirrored, TRAIN, strict=True)]
    assert same is TEST
    assert np.logical_xor(turned, kept).all()
    assert 5 < sum(turned) < 35
    wrapped, _ = im.overflowing(TRAIN, TEST)
    assert_array_equal(wrapped, (TRAIN.astype(int) - round(TRAIN.mean())) % 256)


def test_windows_are_parts_of_their_images():
    import ablation_images as im

    windows, middle = im.shifted_windows(30)(TRAIN, TEST)
    assert_array_equal(middle, TEST[:, 1:31, 1:31])
    for window, image in zip(windows, TRAIN, strict=True):
        places = [image[y : y + 30, x : x + 30] for y in range(3) for x in range(3)]
        assert any(np.array_equal(window, place) for place in places)


def test_choices_of_images():
    import ablation_images as im

    first, last = im.first_of_each_class(LABELS, 500), im.beyond_the_first(LABELS, 500)
    assert first.max() < 45_000
    assert last.min() >= 5000
    for choose in (im.first_of_each_class, im.beyond_the_first, im.at_random(1)):
        rows = choose(LABELS, 500)
        assert len(set(rows.tolist())) == 500
        assert_array_equal(np.bincount(LABELS[rows]), np.full(10, 50))
    for label in range(10):
        assert_array_equal(first[LABELS[first] == label], np.flatnonzero(label == LABELS)[:50])
    drawn = im.with_replacement()(LABELS, 500)
    assert set(drawn.tolist()) < set(first.tolist())
    assert len(drawn) == 500
    assert 0.55 < len(set(drawn.tolist())) / 500 < 0.7  # 1 - 1/e
    assert len(im.eight_ninths(LABELS, 45_000)) == 40_000
    assert not np.array_equal(im.at_random(1)(LABELS, 500), im.at_random(2)(LABELS, 500))


def test_the_dense_kernel_is_the_table(table, images):
    from ablation_dense import DenseKernel

    X = problem("reference", images).X
    exact = table.kernel(X, depth=2, weight_var=1.5, bias_var=0.3)
    found = DenseKernel(NET, table, "float64", False).block(X, X)
    assert_allclose(found, exact, rtol=1e-9)
    low = DenseKernel(NET, table, "float64", True).block(X, X)
    inside = ~np.eye(40, dtype=bool)
    assert_allclose(low[inside], exact[inside], rtol=1e-9)
    assert (np.diag(low) < np.diag(exact) * (1 - 1e-7)).all()
    single = DenseKernel(NET, table, "float32", False).block(*[X.astype(np.float32)] * 2)
    assert single.dtype == np.float32
    assert 1e-9 < np.abs(single - exact).max() < 1e-4


def test_the_dense_mean_is_that_of_a_solve_and_says_its_noise(table, images):
    from ablation_dense import DenseKernel

    found, kernel = problem("reference", images), DenseKernel(NET, table, "float64", False)
    Y = np.eye(10)[found.labels]
    mean, noise = kernel.predict(found.X, Y, found.X_test, 1e-10)
    K = kernel.block(found.X, found.X)
    expected = kernel.block(found.X_test, found.X) @ np.linalg.solve(K + noise * np.eye(40), Y)
    assert_allclose(mean, expected, atol=1e-8)
    assert noise == 1e-10
    twice = np.concatenate([found.X, found.X])
    _, noise = DenseKernel(NET, table, "float32", False).predict(
        twice, np.concatenate([Y, Y]), found.X_test, 1e-10
    )
    assert noise > 1e-9  # equal rows: float32 has no factor before the ladder was climbed


def test_a_result_is_recorded_once(tmp_path):
    from ablation_runs import Record

    path = tmp_path / "record.json"
    run = {"variant": "reference", "train": 100, "activation": "relu", "accuracy": 0.25}
    Record(path).add([run], ["first"])
    record = Record(path)
    assert ("reference", 100, "relu") in record
    assert ("reference", 100, "tanh") not in record
    record.add([{**run, "accuracy": 0.5}, {**run, "train": 200}], ["first", "second"])
    again = Record(path)
    assert [(r["train"], r["accuracy"]) for r in again.runs] == [(100, 0.25), (200, 0.25)]
    assert again.commands == ["first", "second"]


def test_differences_and_spread():
    from ablation_summary import differences, spread, text

    runs = [
        {"variant": name, "train": 100, "activation": "relu", "paper": 0.3, "accuracy": accuracy}
        for name, accuracy in (
            ("a", 0.32),
            ("random 1", 0.3),
            ("random 2", 0.31),
            ("random 3", 0.32),
        )
    ]
    runs.append(
        {"variant": "a", "train": 5000, "activation": "tanh", "paper": 0.4, "accuracy": 0.36}
    )
    runs.append({"variant": "b", "train": 100, "activation": "relu", "paper": 0.3, "error": "no"})
    found = {d.variant: d for d in differences(runs)}
    assert "b" not in found
    assert found["a"].mean() == pytest.approx(-1)
    assert found["a"].mean(most=1000) == pytest.approx(2)
    assert found["a"].rms() == pytest.approx(np.sqrt(10))
    assert spread(runs) == {100: pytest.approx(1)}  # 5,000 was drawn once only
    assert found["a"].beyond_chance({100: 0.5}) == pytest.approx(2 / (0.5 * np.sqrt(2)))
    assert np.isnan(found["a"].beyond_chance({}))
    assert "2.00" in text(runs)
