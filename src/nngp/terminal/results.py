"""What commands tell of a model: its network, its predictions, its scores, its phase."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from nngp.plots.phases import Phases
from nngp.predictors import NNGPClassifier
from nngp.predictors.calibration import expected_calibration_error
from nngp.terminal.speech import DataError, say
from nngp.terminal.target import as_amounts, as_labels

Array = NDArray[np.float64]
LEFT_OUT = 4000  # rows up to which fit judges itself by leaving each out
HALF = float(ndtri(0.975))  # half of a 95% interval, in deviations
LEAST = 1e-15  # probability that a class counts as at least


def summary(model: Any, features: list[str]) -> dict[str, Any]:
    """The network and how it was found."""
    net, report = model.architecture_, model.report_
    out = {
        "task": "classification" if isinstance(model, NNGPClassifier) else "regression",
        "rows": report.n,
        "inputs": report.d,
        "activation": net.activation.name,
        "depth": net.as_dict()["depth"],
        "weight_var": net.weight_var,
        "bias_var": net.bias_var,
        "noise_var": model.noise_var_,
        "networks tried": int(np.sum(model.selection_.get("evaluations", 0))),
    }
    if report.solver == "cholesky":
        out["log evidence"] = model.posterior_.log_evidence
    else:
        out |= {"solver": report.solver, "iterations": report.iterations}
    relevance = model.relevance_
    if relevance.min() < 1:  # inputs differ
        strongest = np.argsort(-relevance, kind="stable")[:8]
        out["relevance"] = {features[j]: round(float(relevance[j]), 4) for j in strongest}
    return out


def left_out(model: Any, answers: Any) -> dict[str, Any]:
    """How well each row is predicted by the others: a score without a test set."""
    if model.report_.solver != "cholesky" or not 1 < model.posterior_.n <= LEFT_OUT:
        return {}
    found = model.posterior_.leave_one_out(noise=True)
    mean = model._target_scaling.undo(found.mean)
    if isinstance(model, NNGPClassifier):
        right = model.classes_[mean.argmax(axis=1)] == answers
        return {"leave-one-out accuracy": float(right.mean())}
    std = np.sqrt(found.variance) * model._target_scaling.spread
    scores = _regression_scores(answers, mean[:, 0], std)
    return {f"leave-one-out {name}": value for name, value in scores.items()}


def predictions(model: Any, target: str, X: Array, interval: float) -> dict[str, Any]:
    """Columns of the output table."""
    if isinstance(model, NNGPClassifier):
        table = model.predict_proba(X)
        best = model.classes_[table.argmax(axis=1)].tolist()
        names = [f"{target}_p_{label}" for label in model.classes_]
        return {target: best, **dict(zip(names, table.T.tolist(), strict=True))}
    mean, std = model.predict(X, return_std=True)
    half = float(ndtri(0.5 + interval / 2)) * std
    return {
        target: mean.tolist(),
        f"{target}_std": std.tolist(),
        f"{target}_lower": (mean - half).tolist(),
        f"{target}_upper": (mean + half).tolist(),
    }


def scores(model: Any, X: Array, answers: pl.Series) -> dict[str, Any]:
    """How predictions compare with what happened."""
    if isinstance(model, NNGPClassifier):
        return _class_scores(model, X, answers)
    mean, std = model.predict(X, return_std=True)
    return _regression_scores(as_amounts(answers), mean, std)


def propagation_facts(data: Phases) -> dict[str, Any]:
    """The networks of a picture of phases; depth scales are in layers."""
    return {
        "activation": data.diagram.activation,
        "critical weight_var": data.critical_weight_var,
        "networks": [
            {
                "weight_var": net.weight_var,
                "bias_var": net.bias_var,
                "phase": net.phase,
                "variance": net.variance,
                "correlation": net.correlation,
                "chi": net.chi,
                "xi_q": net.depth_scales[0],
                "xi_c": net.depth_scales[1],
            }
            for net in data.networks
        ],
    }


def _class_scores(model: Any, X: Array, answers: pl.Series) -> dict[str, Any]:
    labels = as_labels(answers)
    if (labels.dtype.kind in "US") != (model.classes_.dtype.kind in "USO"):
        raise DataError(
            f"column '{answers.name}' holds {answers.dtype}, unlike the labels in training: "
            f"{', '.join(map(str, model.classes_[:5]))}"
        )
    strange = int((~np.isin(labels, model.classes_)).sum())
    if strange:
        say(f"{strange} row(s) have a class that training did not; they count as wrong")
    table = model.predict_proba(X)
    right = model.classes_[table.argmax(axis=1)] == labels
    own = ((model.classes_ == labels[:, None]) * table).sum(axis=1)
    return {
        "accuracy": float(right.mean()),
        "log loss": float(-np.log(np.maximum(own, LEAST)).mean()),
        "expected calibration error": expected_calibration_error(table.max(axis=1), right),
    }


def _regression_scores(y: Array, mean: Array, std: Array) -> dict[str, float | None]:
    missed, spread = y - mean, float(np.mean((y - y.mean()) ** 2))
    standard = missed / std
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * standard**2
    return {
        "RMSE": float(np.sqrt(np.mean(missed**2))),
        "R²": 1 - float(np.mean(missed**2)) / spread if spread > 0 else None,
        "log likelihood": float(density.mean()),
        "inside 95% interval": float(np.mean(np.abs(standard) < HALF)),
    }
