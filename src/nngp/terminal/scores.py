"""Scores of a model: on a table with answers, and on its own rows by leaving each out."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.estimators.fitted_network import LEAVE_OUT
from nngp.frames import Column, InputTable
from nngp.predictive.calibration import expected_calibration_error
from nngp.terminal.output import DataError, print_message
from nngp.terminal.target import Labels, Target

Model = NNGPRegressor | NNGPClassifier
LOG_EVIDENCE = {  # of all rows that were fitted, by the kind of model
    "NNGPRegressor": "log evidence",
    "NNGPClassifier": "log evidence of one-hot targets",
}
COVERAGE = 0.95
LEAST = 1e-15  # probability that a class counts as at least


def leave_one_out_scores(model: Model, answers: NDArray[Any]) -> dict[str, float | None]:
    """Scores of each row that the model has, predicted from the others: without a test set."""
    if model.report_.solver != "cholesky" or not 1 < model.posterior_.n <= LEAVE_OUT:
        return {}
    if isinstance(model, NNGPClassifier):
        right = model.classes_[model.left_out().argmax(axis=1)] == answers
        return {"leave-one-out accuracy": float(right.mean())}
    left_out = model.left_out()
    low, high = left_out.interval(COVERAGE)
    mean = left_out.mean()[:, 0]
    density = left_out.log_density(answers[:, None])[:, 0]
    scores = _regression_scores(answers, mean, density, (low[:, 0], high[:, 0]))
    return {f"leave-one-out {name}": value for name, value in scores.items()}


def table_scores(
    model: Model, target: Target, X: InputTable, answers: Column
) -> dict[str, float | None]:
    """Scores of predictions compared with the answers."""
    if isinstance(model, NNGPClassifier):
        return _class_scores(model, X, target.labels(answers))
    mean, y = model.predict(X), target.amounts(answers)
    with warnings.catch_warnings():  # what is to say of these rows has just been said
        warnings.simplefilter("ignore")
        interval, density = model.predict_interval(X, COVERAGE), model.log_density(X, y)
    return _regression_scores(y, mean, density, interval)


def _class_scores(model: NNGPClassifier, X: InputTable, labels: Labels) -> dict[str, float | None]:
    if (labels.dtype.kind in "US") != (model.classes_.dtype.kind in "USO"):
        known = ", ".join(map(str, model.classes_[:5]))
        raise DataError(f"labels such as '{labels[0]}' are unlike those in training: {known}")
    unknown = int((~np.isin(labels, model.classes_)).sum())
    if unknown:
        print_message(f"{unknown} row(s) have a class that training did not; they count as wrong")
    table = model.predict_proba(X)
    right = model.classes_[table.argmax(axis=1)] == labels
    own = ((model.classes_ == labels[:, None]) * table).sum(axis=1)
    return {
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(np.maximum(own, LEAST)).mean()),
        "expected calibration error": expected_calibration_error(table.max(axis=1), right),
    }


def _regression_scores(
    y: Array, mean: Array, density: Array, interval: tuple[Array, Array]
) -> dict[str, float | None]:
    missed, spread = y - mean, float(np.mean((y - y.mean()) ** 2))
    return {
        "RMSE": float(np.sqrt(np.mean(missed**2))),
        "R²": 1 - float(np.mean(missed**2)) / spread if spread > 0 else None,
        "log likelihood per row": float(density.mean()),
        "inside 95% interval": float(np.mean((interval[0] < y) & (y < interval[1]))),
    }
