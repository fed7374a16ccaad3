"""What a fit found, for people: printed by `nngp fit`, kept in the model for `nngp inspect`."""

import numpy as np

from nngp.predictors import NNGPClassifier
from nngp.terminal.scores import LOG_EVIDENCE, Model


def summary_of(model: Model) -> dict[str, object]:
    """The network, and the cost of its choice."""
    net, report = model.architecture_, model.report_
    out: dict[str, object] = {
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
        out[LOG_EVIDENCE[model._kind]] = model.log_evidence_
    else:
        out |= {"solver": report.solver, "iterations": report.iterations}
    relevance, features = model.relevance_, model.columns_.features if model.columns_ else []
    if relevance.min() < 1:  # inputs differ
        strongest = np.argsort(-relevance, kind="stable")[:8]
        out["relevance"] = {features[j]: round(float(relevance[j]), 4) for j in strongest}
    return out
