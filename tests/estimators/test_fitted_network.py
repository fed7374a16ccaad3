"""A fitted network and what makes class probabilities of one: rows left out against refits, saved
values checked."""

import numpy as np
import pytest
from records import read_again

import nngp
from nngp.estimators.class_model import ClassModel
from nngp.estimators.fitted_network import ComputeSettings, FittedNetwork
from nngp.estimators.saved import SavedClassModel
from nngp.estimators.training_rows import TrainingRows
from nngp.frames.scaling import InputScaling
from nngp.predictive.dirichlet import Labels
from nngp.predictive.targets import TargetScaling
from nngp.selection import Hyperparameters

MACHINE = ComputeSettings("auto", "cpu", "cpu", False)
NET = nngp.Architecture(1, "erf", 1.5, 0.1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.exp(np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * RNG.normal(size=(30, 2)))
INDEX = np.digitize(Y[:, 0], [0.8, 1.4])


def network(rows=None, transform="identity", noise_var=0.1):
    rows = TrainingRows(X, Y) if rows is None else rows
    inputs = InputScaling.learn(rows.X, "standardize")
    targets = TargetScaling.learn(rows.Y, "standardize", transform)
    chosen = Hyperparameters(NET, noise_var, inputs, targets)
    return FittedNetwork.condition(chosen, rows, MACHINE)


def refit_without(found, row):
    """The same network and scalings, conditioned on all rows but one."""
    posterior, keep = found.posterior, np.arange(found.posterior.n) != row
    noise = posterior.noise_var
    return nngp.condition(
        NET,
        np.asarray(posterior.inputs)[keep],
        posterior.targets[keep],
        noise_var=noise[keep] if isinstance(noise, np.ndarray) else noise,
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_left_out_against_refits(weighted):
    weights = RNG.uniform(0.3, 3, 30) if weighted else None
    known = np.linspace(0, 1, 30) if weighted else None
    found = network(TrainingRows(X, Y, weights, known), noise_var=0.1)
    left = found.left_out(MACHINE)
    np.testing.assert_array_equal(left.rows, np.arange(30))
    noise = np.full(30, 0.1)
    if weighted:
        # Two outputs share the noise; what is known counts in the units of each.
        noise = noise + TrainingRows(X, Y, None, known).scaled_known_noise(found._chosen)
    for i in (0, 7, 29):
        again = refit_without(found, i)
        mean, variance = again.predict(np.asarray(found.posterior.inputs)[i : i + 1])
        np.testing.assert_allclose(left.mean[i], mean[0], rtol=1e-8)
        np.testing.assert_allclose(left.variance[i], variance[0] + noise[i], rtol=1e-8)
    z = (left.Y - left.mean) / np.sqrt(left.variance)[:, None]
    np.testing.assert_array_equal(left.standardized, z)


def test_some_rows_left_out_of_many():
    found = network()
    left = found.left_out(MACHINE, most=10)
    assert len(left.rows) == 10
    np.testing.assert_array_equal(left.rows, np.unique(left.rows))
    np.testing.assert_array_equal(left.Y, found.posterior.targets[left.rows])
    alone = found.on(left.rows, MACHINE).leave_one_out(noise=True)
    np.testing.assert_allclose(left.mean, alone.mean)


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_the_evidence_is_a_density_of_the_data(transform):
    """In other units it changes by the logarithm of the units."""
    small, large = network(transform=transform), network(TrainingRows(X, 1000 * Y), transform)
    assert small.log_evidence - large.log_evidence == pytest.approx(60 * np.log(1000), rel=1e-9)


def test_hyperparameters_are_counted():
    found = network()
    assert found.hyperparameters == 5  # two variances of two layers, and the noise


def test_more_rows_leave_the_first_as_it_is():
    found = network()
    more = found.updated(TrainingRows(X[:4] + 0.1, Y[:4]))
    assert (found.posterior.n, more.posterior.n) == (30, 34)
    assert more.weights is None
    weighted = found.updated(TrainingRows(X[:4] + 0.1, Y[:4], np.full(4, 0.5)))
    np.testing.assert_array_equal(weighted.weights, [*np.ones(30), *[0.5] * 4])
    np.testing.assert_allclose(weighted.posterior.noise_var, [*[0.1] * 30, *[0.2] * 4])


def labels(weights=None):
    return Labels(INDEX, np.ones(30) if weights is None else weights, 3)


def of_classes(weights=None):
    known = labels(weights)
    rows = TrainingRows(X, known.one_hot(), known.given_weights)
    inputs = InputScaling.learn(X, "standardize")
    chosen = Hyperparameters(NET, 0.1, inputs, TargetScaling.common(rows.Y))
    return FittedNetwork.condition(chosen, rows, MACHINE), known


@pytest.mark.parametrize("likelihood", ["auto", "regression", "dirichlet", "softmax"])
def test_a_class_model(likelihood):
    found, known = of_classes()
    model, left = ClassModel.learn(found, known, likelihood, MACHINE)
    table = model.probabilities(X)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert (table > 0).all()
    assert (table.argmax(axis=1) == INDEX).mean() > 0.8
    other = {"dirichlet"} if likelihood == "auto" else {likelihood}
    assert set(model.losses) == {"regression"} | other
    if likelihood == "auto":
        assert model.likelihood == min(model.losses, key=model.losses.get)
    else:
        assert model.likelihood == likelihood
    assert left.loss == pytest.approx(model.losses[model.likelihood])
    truth = left.table[np.arange(30), INDEX]
    np.testing.assert_allclose(np.exp(left.log_truth), truth)
    assert left.loss == pytest.approx(-np.log(truth).mean())


def test_a_class_model_in_a_file():
    found, known = of_classes(np.where(INDEX == 0, 2.5, 1.0))
    for likelihood in ("regression", "dirichlet", "softmax"):
        model, _ = ClassModel.learn(found, known, likelihood, MACHINE)
        saved = SavedClassModel.of(model)
        again = read_again(saved).restore(found, known)
        np.testing.assert_array_equal(again.probabilities(X), model.probabilities(X))
        assert (again.losses, again.link.scale) == (model.losses, model.link.scale)
        for changes in ({"scale": 0.0}, {"mixing": 1.5}, {"exponent": 11.0}):
            with pytest.raises(nngp.errors.ModelFileError, match="expected a finite number"):
                read_again(saved.link, changes)
        for changes in ({"other_loss": 1.0}, {"regression_loss": -1.0}):
            with pytest.raises(nngp.errors.ModelFileError):
                read_again(saved, changes)


def test_one_class_and_one_row_have_nothing_to_learn():
    found, _ = of_classes()
    alone = Labels(np.zeros(30, dtype=int), np.ones(30), 1)
    model, left = ClassModel.learn(found, alone, "auto", MACHINE)
    assert (left, model.losses, model.likelihood) == (None, {}, "regression")
