"""`nngp fit`: a table to a model in a file."""

import warnings
from typing import Any

import numpy as np

from nngp.errors import ColumnWarning
from nngp.linsolve import Engine, choose_engine
from nngp.predictors import NNGPClassifier, NNGPRegressor
from nngp.predictors.columns import Columns, InputTable
from nngp.terminal.engines import engine_of
from nngp.terminal.forecast import announce
from nngp.terminal.options import FitOptions
from nngp.terminal.output import DataError, UsageError, print_message, print_result, usage_errors
from nngp.terminal.parsing import number
from nngp.terminal.scores import LOG_EVIDENCE, Model, leave_one_out_scores
from nngp.terminal.tables import check_not_input, check_writable, column_of, read_table
from nngp.terminal.target import learn_target


def fit(options: FitOptions) -> None:
    """Read the table, choose a network, condition it on every row, write the model."""
    with engine_of(options) as engine:
        parameters = _parameters(options, engine)
        check_writable(options.output, create=True)
        check_not_input(options.output, [options.train])
        _check_parameters(parameters)
        table = read_table(options.train, options)
        target, classes = learn_target(table, options.target, options.task)
        rows = target.known(table)
        column, inputs = rows.column(target.name), _inputs(rows, options)
        answers = target.labels(column) if classes else target.amounts(column)
        columns = _learn_columns(rows, inputs)
        kind = NNGPClassifier if classes else NNGPRegressor
        model = kind(**parameters, progress=options.progress or None)
        shape, outputs = (len(rows), len(columns.features)), len(np.unique(answers))
        announce(model, shape, outputs if classes else 1, agreed=options.yes)
        model.fit(inputs, answers)
        facts = _summary(model) | leave_one_out_scores(model, answers)
        notes = {**target.as_notes(), "summary": facts}
        model.save(options.output, factor=options.factor, notes=notes)
        title = f"{options.output}, {options.output.stat().st_size / 1e6:.1f} MB"
        print_result(title, {"model": str(options.output), **facts}, options.as_json)


def _parameters(options: FitOptions, engine: str | Engine) -> dict[str, Any]:
    """Keyword arguments of the estimator."""
    return {
        "depth": number("--depth", options.depth, whole=True),
        "activation": options.activation,
        "weight_var": number("--weight-var", options.weight_var),
        "bias_var": number("--bias-var", options.bias_var),
        "noise_var": number("--noise-var", options.noise_var),
        "input_scaling": options.input_scaling,
        "selection": None if options.selection == "none" else options.selection,
        "budget": options.budget,
        "solver": options.solver,
        "engine": engine,
        "random_state": options.seed,
    }


def _check_parameters(parameters: dict[str, Any]) -> None:
    """Raise UsageError for options that cannot be used, before a table is read."""
    with usage_errors():
        choose_engine(parameters["engine"], 0)
        model = NNGPRegressor(**parameters)
        model._check_parameters(1)
        model._candidates()


def _inputs(rows: InputTable, options: FitOptions) -> InputTable:
    """The columns to learn from."""
    dropped = options.drop or []
    for name in dropped:
        column_of(rows, name)
    if options.target in dropped:
        raise UsageError(f"'{options.target}' is the target, so it cannot be dropped")
    inputs = rows.without([options.target, *dropped])
    if not inputs.columns:
        raise DataError(f"no column is left to learn from: there is only '{options.target}'")
    return inputs


def _learn_columns(rows: InputTable, inputs: InputTable) -> Columns:
    """Learn how columns are read, and print that and how many rows are repeated, before the work
    begins."""
    columns = Columns.learn(inputs)
    print_message(*columns.left_out, *columns.remarks)
    warnings.simplefilter("ignore", ColumnWarning)  # they are what was just printed
    texts = [column.texts.tolist() for column in rows.columns]
    repeated = len(rows) - len(set(zip(*texts, strict=True)))
    if repeated:
        print_message(f"{repeated} row(s) repeat another row in every column")
    return columns


def _summary(model: Model) -> dict[str, object]:
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
