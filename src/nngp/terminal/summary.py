"""What a fit found, for people: printed by `nngp fit`, kept in the model for `nngp inspect`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nngp._fields import Fields
from nngp.architecture import Architecture, Network
from nngp.errors import ModelFileError
from nngp.estimators import NNGPClassifier
from nngp.estimators.trees import TreeComparison
from nngp.frames import Columns
from nngp.terminal.scores import LOG_EVIDENCE, Model


def _network(net: Network) -> dict[str, object]:
    """The numbers of a chain, the text of another network."""
    if not isinstance(net, Architecture):
        return {"network": repr(net)}
    return {
        "activation": net.activation.name,
        "depth": net.as_dict()["depth"],
        "weight_var": net.weight_var,
        "bias_var": net.bias_var,
    }


def summary_of(model: Model) -> dict[str, object]:
    """The network, and the cost of its choice."""
    net, report = model.network_, model.report_
    out: dict[str, object] = {
        "task": "classification" if isinstance(model, NNGPClassifier) else "regression",
        "rows": report.n,
        "inputs": report.d,
        **_network(net),
        "noise_var": model.noise_var_,
        **_choices(model),
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


def _choices(model: Model) -> dict[str, object]:
    """What was done to columns and target, as far as the estimator chose it."""
    out: dict[str, object] = {}
    maps = getattr(model, "column_maps_", None)
    if maps is not None:
        out["column maps"] = [f"{name}: {how}" for name, how in maps if how != "identity"] or "none"
    for fact, name in (("target transform", "target_transform_"), ("noise floor", "noise_floor_")):
        if getattr(model, name, None) is not None:
            out[fact] = getattr(model, name)
    trees = getattr(model, "trees_", None)
    if trees is not None:
        out["trees"] = trees.sentence
    return out


def facts_of(header: Mapping[str, Any], columns: Columns | None) -> dict[str, object]:
    """What the header of a model file says of it."""
    notes, fitted, best = header["notes"], header["fitted"], header["networks"]["0"]
    posterior = best["posterior"]
    evidence = fitted["log_evidence"]  # none without a factor
    name = LOG_EVIDENCE.get(header["kind"], "log evidence")
    summary, trees = notes.get("summary"), fitted.get("trees")
    if trees is not None:
        fields = Fields(trees, "its comparison with trees", ModelFileError)
        trees = TreeComparison.from_saved(fields).sentence
    return {
        "kind": header["kind"],
        "format": header["version"],
        "target": notes.get("target", "(not from a table)"),
        **({} if evidence is None else {name: evidence}),
        **(summary if isinstance(summary, dict) else {}),
        **({} if trees is None else {"trees": trees}),
        **posterior["architecture"],
        "noise_var": best["noise_var"],
        "factor in file": posterior["factor"],
        "columns": columns.used if columns else [],
        "kinds of columns": columns.kinds if columns else {},
        "remarks": [*columns.cautions, *columns.remarks] if columns else [],
    }
