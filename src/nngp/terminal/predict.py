"""`nngp predict`, `nngp evaluate` and `nngp inspect`: the commands that read a saved model."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri

from nngp.linsolve import Engine
from nngp.predictors import NNGPClassifier, load
from nngp.predictors.model_file import read_header
from nngp.terminal.columns import Columns
from nngp.terminal.engines import engine_of
from nngp.terminal.options import EvaluateOptions, InspectOptions, PredictOptions
from nngp.terminal.output import (
    DataError,
    UsageError,
    print_json,
    print_message,
    print_result,
)
from nngp.terminal.scores import LOG_EVIDENCE, Model, table_scores
from nngp.terminal.tables import TABLES, check_not_input, check_writable, read_table, write_table
from nngp.terminal.target import known_rows


@dataclass(frozen=True)
class SavedModel:
    """A model from a file, and the columns it was fitted to."""

    model: Model
    target: str
    columns: Columns

    def read(self, table: Path, *labels: str) -> pl.DataFrame:
        """A table, whose text columns and labels are read as text."""
        return read_table(table, [*(column.name for column in self.columns.texts), *labels])

    def encode(self, rows: pl.DataFrame) -> NDArray[np.float64]:
        """The inputs as numbers; remarks on them are printed."""
        X, remarks = self.columns.encode(rows)
        print_message(*remarks)
        return X


def predict(options: PredictOptions) -> None:
    """Write predictions for every row of a table."""
    with engine_of(options) as engine:
        output, as_json = options.output, options.as_json
        if output is not None:
            check_writable(output, TABLES, create=True)
            check_not_input(output, [options.model, options.table])
        if not 0 < options.interval < 1:
            raise UsageError(f"--interval must be between 0 and 1, got {options.interval}")
        saved = _load(options, engine)
        X = saved.encode(saved.read(options.table))
        columns = _predictions(saved.model, saved.target, X, options.interval)
        if as_json:
            rows = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            print_json({"predictions": rows}, lambda value: value)
        if output is not None or not as_json:
            write_table(columns, output)
        if output is not None:
            print_message(f"{len(X)} predictions written to {output}")


def evaluate(options: EvaluateOptions) -> None:
    """Print the scores of predictions for a table with answers."""
    with engine_of(options) as engine:
        saved = _load(options, engine)
        labels = [saved.target] if _has_text_labels(saved.model) else []
        table = saved.read(options.table, *labels)
        if saved.target not in table.columns:
            raise DataError(f"{options.table} has no column '{saved.target}' to compare with")
        rows = known_rows(table, saved.target)
        scores = table_scores(saved.model, saved.encode(rows), rows[saved.target])
        title = f"{options.model} on {rows.height} rows of {options.table}"
        print_result(title, scores, options.as_json)


def inspect(options: InspectOptions) -> None:
    """Print the facts in a model's header."""
    header = read_header(options.model)
    notes, posterior = header["notes"], header["posterior"]
    evidence = header["fitted"].get("log_evidence")  # none without a factor
    columns = notes.get("columns", {"numbers": [], "texts": [], "remarks": []})
    facts = {
        "kind": header["kind"],
        "format": header["version"],
        "target": notes.get("target", "(not from a table)"),
        **({} if evidence is None else {LOG_EVIDENCE[header["kind"]]: evidence}),
        **notes.get("summary", {}),
        **posterior["architecture"],
        "noise_var": posterior["noise_var"],
        "factor in file": posterior["factor"],
        "columns": [column["name"] for column in (*columns["numbers"], *columns["texts"])],
        "remarks": columns["remarks"],
        "megabytes": round(options.model.stat().st_size / 1e6, 3),
    }
    print_result(str(options.model), facts, options.as_json)


def _load(options: PredictOptions | EvaluateOptions, engine: str | Engine) -> SavedModel:
    path, notes = options.model, read_header(options.model)["notes"]
    if "columns" not in notes:
        raise DataError(f"{path} was saved from Python and knows no columns; use nngp.load there")
    model = load(path, engine=engine, progress=options.progress or None)
    columns = Columns.from_dict(notes["columns"])
    model._column_names = columns.features
    return SavedModel(model, notes["target"], columns)


def _has_text_labels(model: Model) -> bool:
    return isinstance(model, NNGPClassifier) and model.classes_.dtype.kind in "UO"


def _predictions(
    model: Model, target: str, X: NDArray[np.float64], interval: float
) -> dict[str, list[object]]:
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
