"""The part about invariances: names, scores, and what is said of stored runs."""

import math

import numpy as np
import pytest

import nngp
from nngp import images
from nngp_paper import datasets
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results, read_parts
from nngp_paper.parts import invariance, parts_named
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope
from nngp_paper.shared.invariances import ScaledImages, Variant, scores

NET = nngp.Architecture(3, "relu", 1.6, 0.1)
HEAD = nngp.Architecture(16, "relu", 2.0, 0.0)
SHAPE = (32, 32, 3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", NET),
        ("whitened", NET),
        ("flips", nngp.Invariant(NET, images.flips(SHAPE))),
        (
            "whitened, flips, shifts 4",
            nngp.Invariant(NET, [images.flips(SHAPE), images.shifts(4, SHAPE)]),
        ),
        ("rotations", nngp.Invariant(NET, images.rotations(SHAPE, degrees=10))),
        ("rotations 15", nngp.Invariant(NET, images.rotations(SHAPE, degrees=15))),
        (
            "shifts 1, head 16",
            nngp.WithHead(
                nngp.Invariant(NET, images.shifts(1, SHAPE)),
                nngp.Architecture(16, "relu", 2.0, 0.0),
            ),
        ),
    ],
)
def test_names_say_what_is_averaged(name, expected):
    variant = Variant.named(name, "cifar10")
    assert repr(variant.network(NET)) == repr(expected)
    assert variant.strength == (0.1 if "whitened" in name else None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mirrors", "'mirrors' is no word for an invariance"),
        ("shifts", "'shifts' is no word"),
        ("flips 3", "'flips 3' is no word"),
        ("", "'' is no word"),
        ("shifts 1, head 0", "'head 0' is no word"),
        ("whitened, head", "nothing to put it on"),
    ],
)
def test_names_that_mean_nothing(name, words):
    with pytest.raises(ValueError, match=words):
        Variant.named(name, "mnist")


def test_scores_are_those_of_the_posterior():
    data = datasets.split("digits", 100)
    found = scores(ScaledImages(data), Variant.named("shifts 1", "digits"), NET, "cpu")
    net = nngp.Invariant(NET, images.shifts(1, (8, 8)))
    Y = data.targets(data.labels)
    posterior = nngp.condition(net, data.X, Y, noise_var=found["noise_var"], engine="cpu")
    right = posterior.mean(data.X_test).argmax(axis=1) == data.labels_test
    assert found["accuracy"] == right.mean()
    assert found["test"] == len(right)
    assert found["products"] == 25
    assert 0 < found["log_loss"] < math.log(10)
    assert 0 <= found["calibration_error"] < 0.2


def test_whitening_is_learned_on_training_images():
    data = datasets.split("digits", 300)
    whiten = ScaledImages(data).scaling(0.01)
    X = whiten(data.X)
    np.testing.assert_allclose((X * X).mean(axis=1), 1.0)
    before, after = (np.linalg.eigvalsh(np.cov(Z.T)).max() for Z in (data.X, X))
    assert after < before / 2
    assert np.linalg.eigvalsh(np.cov(whiten(data.X_test).T)).max() > after  # those it did not see


def test_small_training_sets_are_studied():
    study = invariance.study(Scope("cifar10", (100, 2000, 45_000)))
    assert {config["train"] for config in study.configs} == {100, 2000}
    assert {config["variant"] for config in study.configs} == {"plain", "flips", "flips, shifts 1"}
    assert {config["train"] for config in invariance.study(Scope("mnist", (5000,))).configs} == {
        5000
    }


def stored(store, accuracies, dataset="mnist"):
    """Runs with these accuracies by variant and number of training images."""
    shared = {"dataset": dataset, "test": 10_000, **invariance.network_for(dataset)}
    for (variant, train), accuracy in accuracies.items():
        (key,) = store.declare("invariance", [{**shared, "train": train, "variant": variant}])
        result = {"accuracy": accuracy, "log_loss": 1 - accuracy, "calibration_error": 0.01}
        store.finish(key, result, seconds=1.0)


def test_what_is_said_of_stored_runs(tmp_path):
    accuracies = {("plain", 100): 0.75, ("plain", 50_000): 0.98}
    accuracies |= {("shifts 1", 100): 0.8, ("shifts 1", 50_000): 0.99, ("rotations", 60_000): 0.995}
    accuracies |= {("whitened, shifts 1", 100): 0.9, ("shifts 1, head", 100): 0.9}
    with RunStore(tmp_path / "runs.db") as store:
        stored(store, accuracies)
        stored(store, {("plain", 100): 0.2}, "cifar10")
        (shown,) = read_parts(parts_named(["invariance"]), store, Scope("mnist", (100, 1000)))
    names = [curve.name for curve in shown.data.curves]
    assert names == ["plain", "shifts 1", "rotations", "shifts 1, head", "whitened, shifts 1"]
    assert "100 images: accuracy 75.00% plain and 80.00% with shifts 1" in shown.finding
    assert "the best is rotations with 60,000 images: 99.50%, log loss 0.005" in shown.finding
    assert shown.verdict.word == "supported"
    said = "removes 20.00% (100 images) to 50.00% (50,000 images) of the errors; at 2 of 2 sizes"
    assert said in shown.verdict.reason
    for narrow in (False, True):
        path = tmp_path / f"{narrow}.png"
        shown.part.draw(shown.data, path, narrow=narrow)
        assert path.stat().st_size > 10_000


def test_gains_by_chance_are_not_counted(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        stored(store, {("plain", 100): 0.75, ("flips", 100): 0.755, ("plain", 200): 0.8})
        results = Results(store, Scope("mnist", (100,)))
        found = invariance.verdict(invariance.read(results))
        assert found.word == "not supported"
        assert "at 0 of 1 sizes" in found.reason


def test_one_size_and_no_errors(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        stored(store, {("plain", 100): 1.0, ("shifts 1", 100): 1.0})
        (shown,) = read_parts(parts_named(["invariance"]), store, Scope("mnist", (100,)))
    assert shown.finding.count("100 images: accuracy") == 1
    assert shown.verdict.word == "not supported"
    assert shown.verdict.reason.count("(100 images)") == 1


def test_of_two_runs_the_one_with_more_test_images_counts(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        stored(store, {("plain", 100): 0.75, ("shifts 1", 100): 0.8})
        few = {"dataset": "mnist", "test": 100, **invariance.network_for("mnist")}
        (key,) = store.declare("invariance", [{**few, "train": 100, "variant": "plain"}])
        store.finish(key, {"accuracy": 0.1, "log_loss": 1.0, "calibration_error": 0.0}, seconds=1.0)
        data = invariance.read(Results(store, Scope("mnist", (100,))))
    assert [point.accuracy for point in data.plain.points] == [0.75]


def test_nothing_was_measured(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        scope = Scope("mnist", (100,))
        with pytest.raises(
            NothingMeasuredError, match="no finished run of 'invariance' with the plain"
        ):
            invariance.read(Results(store, scope))
        stored(store, {("plain", 100): 0.75})
        found = invariance.verdict(invariance.read(Results(store, scope)))
        assert found.word == "not measured"
