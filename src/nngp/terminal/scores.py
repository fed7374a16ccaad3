"""Scores of a model (on a table with targets, or leave-one-out) and a summary of what was fitted.

Names are those of the JSON output; `output.LABELS` has their wording for people.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp.architecture import Architecture, Network
from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.estimators.fitted_network import LEAVE_OUT
from nngp.estimators.saved import VERSION, SavedModel
from nngp.frames import Column, InputTable
from nngp.plots.fit_page import predicted_classes
from nngp.terminal.output import DataError, print_message
from nngp.terminal.target import Labels, Target

Model = NNGPRegressor | NNGPClassifier
LOG_EVIDENCE = {  # of all rows that were fitted, by the kind of model
    "NNGPRegressor": "log_evidence",
    "NNGPClassifier": "log_evidence_one_hot",
}
COVERAGE = 0.95
FEW_SCORED_ROWS = 100  # below, an accuracy of 90% has a standard error above 3%
WEAK_R2 = 0.05
STANDARD_ERRORS = 2.0  # of the largest class's share, that an accuracy must exceed it by
NOT_ESTIMATED = (
    f"nothing yet: leave-one-out needs a Cholesky factor and at most {LEAVE_OUT:,} rows; run nngp "
    "evaluate on other rows"
)
SHOWN_RELEVANCES = 8


def leave_one_out_scores(model: Model, answers: NDArray[Any]) -> dict[str, object]:
    """Scores of all training rows, each predicted from the others, and how they were estimated."""
    if isinstance(model, NNGPClassifier):
        return _class_estimates(model, answers)
    if model.report_.solver != "cholesky" or not 1 < model.posterior_.n <= LEAVE_OUT:
        return {"estimated_by": NOT_ESTIMATED}
    predictive = model.left_out()
    low, high = predictive.interval(COVERAGE)
    density = predictive.log_density(answers[:, None])[:, 0]
    interval = low[:, 0], high[:, 0]
    scores = _regression_scores(answers, predictive.mean()[:, 0], density, interval)
    return {**scores, "estimated_by": _leave_one_out(len(answers))}


def _class_estimates(model: NNGPClassifier, answers: NDArray[Any]) -> dict[str, object]:
    """The same for classes; the log loss is corrected for what was chosen on the same rows."""
    try:
        found = predicted_classes(model, None, answers)
    except ValueError:  # a single class, or a single row
        return {"estimated_by": NOT_ESTIMATED}
    return {
        "accuracy": found.accuracy,
        "log_loss": model.loss_estimate_,
        "calibration_error": found.calibration_error,
        "estimated_by": _leave_one_out(len(found.rows)),
    }


def weak_signal(scores: Mapping[str, object], answers: NDArray[Any]) -> str | None:
    """A sentence if the columns hardly predict the target, with what to try; None otherwise."""
    r2, accuracy = scores.get("r2"), scores.get("accuracy")
    if isinstance(r2, float) and r2 < WEAK_R2:
        found = f"leave-one-out R² {r2:.2f}"
    elif isinstance(accuracy, float):
        largest = float(np.unique(answers, return_counts=True)[1].max() / len(answers))
        error = np.sqrt(largest * (1 - largest) / len(answers))
        if largest == 1 or accuracy > largest + STANDARD_ERRORS * error:
            return None
        found = f"leave-one-out accuracy {accuracy:.1%}, and the largest class has {largest:.1%}"
    else:
        return None
    return (
        f"the columns hardly predict the target ({found}): add columns that matter or more rows, "
        "check the target for errors, or compare with other methods"
    )


def _leave_one_out(count: int) -> str:
    few = "; so few rows leave these figures uncertain" if count < FEW_SCORED_ROWS else ""
    return f"leave-one-out: each of {count:,} rows predicted from the others{few}"


def table_scores(
    model: Model, target: Target, X: InputTable, answers: Column
) -> dict[str, float | None]:
    """Scores of predictions for a table with known targets."""
    if isinstance(model, NNGPClassifier):
        labels = target.labels(answers)
        _check_labels(model, labels)
        found = predicted_classes(model, X, labels)
        return {
            "accuracy": found.accuracy,
            "log_loss": found.log_loss,
            "calibration_error": found.calibration_error,
        }
    mean, y = model.predict(X), target.amounts(answers)
    with warnings.catch_warnings():  # `predict` has just given these warnings
        warnings.simplefilter("ignore")
        interval, density = model.predict_interval(X, COVERAGE), model.log_density(X, y)
    return _regression_scores(y, mean, density, interval)


def _check_labels(model: NNGPClassifier, labels: Labels) -> None:
    if (labels.dtype.kind in "US") != (model.classes_.dtype.kind in "USO"):
        known = ", ".join(map(str, model.classes_[:5]))
        raise DataError(f"labels such as '{labels[0]}' are unlike those in training: {known}")
    unknown = int((~np.isin(labels, model.classes_)).sum())
    if unknown:
        print_message(f"{unknown} row(s) have a class that training did not; they count as wrong")


def _regression_scores(
    y: Array, mean: Array, density: Array, interval: tuple[Array, Array]
) -> dict[str, float | None]:
    missed, spread = y - mean, float(np.mean((y - y.mean()) ** 2))
    return {
        "rmse": float(np.sqrt(np.mean(missed**2))),
        "r2": 1 - float(np.mean(missed**2)) / spread if spread > 0 else None,
        "coverage_95": float(np.mean((interval[0] < y) & (y < interval[1]))),
        "log_likelihood": float(density.mean()),
    }


def network_summary(model: Model) -> dict[str, object]:
    """The network that was chosen, its noise, and the transform of the target."""
    out = {**network_facts(model.network_), "noise_var": model.noise_var_}
    transform = getattr(model, "target_transform_", "identity")
    return out if transform == "identity" else {**out, "target_transform": transform}


def network_facts(net: Network) -> dict[str, object]:
    """The parameters of an `Architecture`, the text of another network."""
    if not isinstance(net, Architecture):
        return {"network": repr(net)}
    return {
        "activation": net.activation.name,
        "depth": net.as_dict()["depth"],
        "weight_var": net.weight_var,
        "bias_var": net.bias_var,
    }


def fit_summary(model: Model) -> dict[str, object]:
    """Other choices and findings of the fit, for `nngp inspect`."""
    report = model.report_
    out: dict[str, object] = {
        "inputs": report.d,
        **_choices(model),
        "networks_tried": int(np.sum(model.selection_.get("evaluations", 0))),
    }
    if report.solver == "cholesky":
        out[LOG_EVIDENCE[model._kind]] = model.log_evidence_
    else:
        out |= {"solver": report.solver, "iterations": report.iterations}
    relevance, features = model.relevance_, model.columns_.features if model.columns_ else []
    if relevance.min() < 1:  # inputs differ
        strongest = np.argsort(-relevance, kind="stable")[:SHOWN_RELEVANCES]
        out["relevance"] = {features[j]: round(float(relevance[j]), 4) for j in strongest}
    return out


def _choices(model: Model) -> dict[str, object]:
    """Maps of columns, the floor of the noise, and the comparison with trees."""
    out: dict[str, object] = {}
    maps = getattr(model, "column_maps_", None)
    if maps is not None:
        out["column_maps"] = [f"{name}: {how}" for name, how in maps if how != "identity"] or "none"
    if getattr(model, "noise_floor_", None) is not None:
        out["noise_floor"] = model.noise_floor_
    trees = getattr(model, "trees_", None)
    if trees is not None:
        out["trees"] = trees.sentence
    return out


def facts_of(saved: SavedModel) -> dict[str, object]:
    """Facts about a saved model."""
    notes, columns, best = saved.notes, saved.columns, saved.networks[0]
    evidence = saved.log_evidence  # none without a factor
    summary = notes.get("summary")
    trees = saved.fit.trees
    return {
        "kind": saved.kind,
        "format": VERSION,
        "target": notes.get("target", "(not from a table)"),
        **({} if evidence is None else {LOG_EVIDENCE[saved.kind]: evidence}),
        **(summary if isinstance(summary, dict) else {}),
        **({} if trees is None else {"trees": trees.sentence}),
        **best.posterior.network.as_dict(),
        "noise_var": best.noise_var,
        "factor in file": best.posterior.has_factor,
        "columns": columns.used if columns else [],
        "kinds of columns": columns.kinds if columns else {},
        "remarks": [*columns.cautions, *columns.remarks] if columns else [],
    }
