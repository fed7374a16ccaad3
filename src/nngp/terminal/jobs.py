"""What the commands do."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from nngp._files import replaced
from nngp.architecture import Architecture
from nngp.gram import kernel as kernel_matrix, normalize as normalized, plan_kernel
from nngp.linsolve import choose_engine
from nngp.plots import need_matplotlib
from nngp.plots.phases import phases
from nngp.predictors import NNGPClassifier, NNGPRegressor, load
from nngp.predictors.model_file import read_header
from nngp.terminal.columns import Columns
from nngp.terminal.results import left_out, predictions, propagation_facts, scores, summary
from nngp.terminal.speech import DataError, UsageError, answer, say
from nngp.terminal.tables import (
    PICTURES,
    READERS,
    check_writable,
    column_of,
    read_table,
    try_writing,
    write_table,
)
from nngp.terminal.target import as_amounts, as_labels, is_class, known_rows
from nngp.terminal.task import Task


def fit(
    train: Path,
    target: str,
    output: Path,
    task: Task,
    drop: list[str],
    parameters: dict[str, Any],
    factor: bool,
    as_json: bool,
) -> None:
    """Table to model."""
    check_writable(output)
    _check_apart(output, train)
    _check_parameters(parameters)
    rows = known_rows(read_table(train), target)
    classes = is_class(rows[target], task)
    answers = as_labels(rows[target]) if classes else as_amounts(rows[target])
    for name in drop:
        column_of(rows, name)
    if target in drop:
        raise UsageError(f"'{target}' is the target, so it cannot be dropped")
    columns = Columns.learn(rows.drop([target, *drop]))
    X, _ = columns.encode(rows)
    _say_all(columns.remarks)
    kind = NNGPClassifier if classes else NNGPRegressor
    model = kind(**parameters, progress=_progress()).fit(X, answers)
    told = summary(model, columns.features) | left_out(model, answers)
    notes = {
        "target": target,
        "columns": columns.as_dict(),
        "summary": told,
    }
    model.save(output, factor=factor, notes=notes)
    size = output.stat().st_size / 1e6
    answer(f"{output}, {size:.1f} MB", {"model": str(output), **told}, as_json)


def predict(
    path: Path, table: Path, output: Path | None, interval: float, engine: Any, as_json: bool
) -> None:
    """Model and table to predictions."""
    if output is not None:
        check_writable(output, tuple(READERS))
        _check_apart(output, path, table)
    if not 0 < interval < 1:
        raise UsageError(f"--interval must be between 0 and 1, got {interval}")
    model, notes = _loaded(path, engine)
    encoder = Columns.from_dict(notes["columns"])
    X, remarks = encoder.encode(read_table(table, _texts(encoder)))
    _say_all(remarks)
    columns = predictions(model, notes["target"], X, interval)
    if as_json:
        each = zip(*columns.values(), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in each]
        print(json.dumps({"predictions": rows}, allow_nan=False))
    if output is not None or not as_json:
        write_table(columns, output)
    if output is not None:
        say(f"{len(X)} predictions written to {output}")


def evaluate(path: Path, table: Path, engine: Any, as_json: bool) -> None:
    """Model and table with answers to scores."""
    model, notes = _loaded(path, engine)
    encoder = Columns.from_dict(notes["columns"])
    labels = [notes["target"]] if _has_text_labels(model) else []
    rows = known_rows(read_table(table, [*_texts(encoder), *labels]), notes["target"])
    X, remarks = encoder.encode(rows)
    _say_all(remarks)
    found = scores(model, X, rows[notes["target"]])
    answer(f"{path} on {rows.height} rows of {table}", found, as_json)


def inspect(path: Path, as_json: bool) -> None:
    """What a model is, from its header."""
    header = read_header(path)
    notes, posterior = header["notes"], header["posterior"]
    columns = notes.get("columns", {"numbers": [], "texts": [], "remarks": []})
    rows = {
        "kind": header["kind"],
        "format": header["version"],
        "target": notes.get("target", "(not from a table)"),
        **notes.get("summary", {}),
        **posterior["architecture"],
        "noise_var": posterior["noise_var"],
        "factor in file": posterior["factor"],
        "columns": [column["name"] for column in (*columns["numbers"], *columns["texts"])],
        "remarks": columns["remarks"],
        "megabytes": round(path.stat().st_size / 1e6, 3),
    }
    answer(str(path), rows, as_json)


def kernel(
    table: Path, net: Architecture, normalize: bool, output: Path | None, as_json: bool
) -> None:
    """Table of numbers to kernel matrix."""
    if output is not None:
        check_writable(output, (".npy", *READERS))
    data = read_table(table)
    for column in data:
        if not column.dtype.is_numeric():
            raise DataError(f"column '{column.name}' holds {column.dtype}, not numbers")
    X = data.cast(pl.Float64).to_numpy()
    X = normalized(X) if normalize else X
    K, plan = kernel_matrix(net, X), plan_kernel(net, X)
    if output is not None and output.suffix == ".npy":
        with replaced(output) as part:
            np.save(part, K)
    elif output is not None or not as_json:
        write_table({f"k{j}": K[:, j] for j in range(len(K))}, output)
    facts = {
        **net.as_dict(),
        "points": len(K),
        "method": plan.method,
        "reason": plan.reason,
        "smallest": float(K.min()),
        "largest": float(K.max()),
    }
    if output is not None or as_json:
        answer(f"kernel of {table}", facts, as_json)


def phase(
    activation: str,
    weight_var: float | None,
    bias_var: float,
    output: Path,
    table: Path | None,
    as_json: bool,
) -> None:
    """Activation to a picture of how signals propagate, and its numbers."""
    check_writable(output, PICTURES)
    try_writing(output.parent)
    if table is not None:
        check_writable(table, tuple(READERS))
        try_writing(table.parent)
    net = network(1, activation, 1.0 if weight_var is None else weight_var, bias_var)
    need_matplotlib()
    from nngp.plots.phases_figure import draw_phases

    try:
        data = phases(net.activation, weight_var, bias_var)
    except ValueError as error:  # all it takes is options
        raise UsageError(str(error)) from None
    with replaced(output) as part:
        draw_phases(data, part)
        if table is not None:
            write_table(data.diagram.columns(), table)
    files = {"picture": output} | ({} if table is None else {"table": table})
    answer(f"signal propagation, {activation}", files | propagation_facts(data), as_json)


def network(*description: Any) -> Architecture:
    """The network that options describe."""
    try:
        return Architecture(*description)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def number(option: str, text: str, whole: bool = False) -> Any:
    """The value of an option that is a number or auto."""
    if text == "auto":
        return text
    try:
        return int(text) if whole and text != "inf" else float(text)
    except ValueError:
        kind = "a whole number, inf" if whole else "a number"
        raise UsageError(f"{option} must be {kind} or auto, got '{text}'") from None


def _check_parameters(parameters: dict[str, Any]) -> None:
    """Options that cannot be, before a table is read."""
    try:
        choose_engine(parameters["engine"], 0)
        model = NNGPRegressor(**parameters)
        model._check_parameters(1)
        model._candidates()
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _check_apart(output: Path, *inputs: Path) -> None:
    """Refuse to write over what is read."""
    for path in inputs:
        if output.exists() and path.exists() and output.samefile(path):
            raise UsageError(f"the output {output} is the input; choose another name")


def _texts(columns: Columns) -> list[str]:
    return [column.name for column in columns.texts]


def _has_text_labels(model: Any) -> bool:
    return isinstance(model, NNGPClassifier) and model.classes_.dtype.kind in "UO"


def _loaded(path: Path, engine: Any) -> tuple[Any, dict[str, Any]]:
    notes = read_header(path)["notes"]
    if "columns" not in notes:
        raise DataError(f"{path} was saved from Python and knows no columns; use nngp.load there")
    return load(path, engine=engine, progress=_progress()), notes


def _progress() -> bool:
    """A bar wherever somebody is looking."""
    return sys.stderr.isatty()


def _say_all(remarks: list[str]) -> None:
    for remark in remarks:
        say(remark)
