"""What a fit found, for people: printed by `nngp fit`, kept in the model for `nngp inspect`."""

import numpy as np

from nngp.architecture import Architecture, Network
from nngp.estimators import NNGPClassifier
from nngp.estimators.saved import VERSION, SavedModel
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
