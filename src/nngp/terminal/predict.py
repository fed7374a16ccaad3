"""`nngp predict`, `nngp evaluate` and `nngp inspect`: the commands that read a saved model."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nngp.errors import ModelFileError
from nngp.estimators import NNGPClassifier, load
from nngp.estimators.model_file import read_header
from nngp.frames import Column, Columns, InputTable
from nngp.frames.saved import texts
from nngp.linsolve import Engine
from nngp.terminal.engines import engine_of
from nngp.terminal.options import EvaluateOptions, InspectOptions, PredictOptions
from nngp.terminal.output import (
    DataError,
    UsageError,
    print_json,
    print_message,
    print_result,
    suggestion,
)
from nngp.terminal.scores import Model, table_scores
from nngp.terminal.summary import facts_of
from nngp.terminal.tables import (
    STDIN,
    TABLES,
    check_not_input,
    check_writable,
    column_of,
    read_table,
    write_table,
)
from nngp.terminal.target import Target

UNNAMED = "prediction"  # of a target that was an array in Python


@dataclass(frozen=True)
class SavedModel:
    """A model from a file, its target if it was fitted to a column, and the columns that were set
    aside then: dropped, weights, noise."""

    model: Model
    target: Target | None
    aside: tuple[str, ...] = ()

    def inputs(self, rows: InputTable, besides: Iterable[str] = ()) -> InputTable:
        """The table without columns that were no inputs in training."""
        others = {*self.aside, *besides, *([self.target.name] if self.target else [])}
        return rows.without(others - set(self.model.feature_names_in_))


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
        rows = read_table(options.table, options)
        kept = [column_of(rows, name) for name in _names(options.keep)]
        target = saved.target.name if saved.target else UNNAMED
        known = saved.inputs(rows, (column.name for column in kept))
        columns = _predictions(saved.model, target, known, options.interval)
        columns = _beside(kept, columns)
        if as_json:
            lines = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            print_json({"predictions": lines}, lambda value: value)
        if output is not None or not as_json:
            write_table(columns, output)
        if output is not None:
            print_message(f"{len(rows)} predictions written to {output}")


def evaluate(options: EvaluateOptions) -> None:
    """Print the scores of predictions for a table with answers."""
    with engine_of(options) as engine:
        saved = _load(options, engine)
        if saved.target is None:
            raise DataError(f"{options.model} was saved from Python and knows no target")
        table, name = read_table(options.table, options), saved.target.name
        if name not in table.names:
            source = "the input" if options.table == STDIN else options.table
            near = suggestion(name, table.names)
            raise DataError(f"{source} has no column '{name}' to compare with{near}")
        target = saved.target.for_table(table)
        rows = target.known(table)
        inputs = saved.inputs(rows)
        scores = table_scores(saved.model, target, inputs, rows.column(name))
        title = f"{options.model} on {len(rows)} rows of {options.table}"
        print_result(title, scores, options.as_json)


def inspect(options: InspectOptions) -> None:
    """Print the facts in a model's header."""
    header, columns, _ = _read(options.model)
    facts = {
        **facts_of(header, columns),
        "megabytes": round(options.model.stat().st_size / 1e6, 3),
    }
    print_result(str(options.model), facts, options.as_json)


def _load(options: PredictOptions | EvaluateOptions, engine: str | Engine) -> SavedModel:
    """Load a model that knows its columns."""
    path = options.model
    header, columns, target = _read(path)
    if columns is None or not columns.named:
        raise DataError(f"{path} was saved from Python and knows no columns; use nngp.load there")
    model = load(path, engine=engine, progress=options.progress or None)
    return SavedModel(model, target, texts(header["notes"].get("aside", [])))


def _read(path: Path) -> tuple[dict[str, Any], Columns | None, Target | None]:
    """The header of a saved model, with its columns and target if it has any."""
    header = read_header(path)
    try:
        encoder = header["fitted"]["columns"]
        columns = None if encoder is None else Columns.from_dict(encoder)
        texts(header["notes"].get("aside", []))
        return header, columns, Target.from_notes(header["notes"])
    except (ValueError, TypeError, KeyError) as cause:
        raise ModelFileError(
            f"{path} is damaged (of its columns, {cause}); get a fresh copy or fit the model again"
        ) from None


def _names(options: list[str] | None) -> list[str]:
    """Names of columns, each option holding one or several with commas."""
    names = [name.strip() for option in options or [] for name in option.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _predictions(
    model: Model, target: str, rows: InputTable, interval: float
) -> dict[str, list[object]]:
    """Columns of the output table."""
    if isinstance(model, NNGPClassifier):
        table = model.predict_proba(rows)
        best = model.classes_[table.argmax(axis=1)].tolist()
        names = [f"{target}_p_{label}" for label in model.classes_]
        return {target: best, **dict(zip(names, table.T.tolist(), strict=True))}
    mean, std = model.predict(rows, return_std=True)
    with warnings.catch_warnings():  # what is to say of these rows has just been said
        warnings.simplefilter("ignore")
        lower, upper = model.predict_interval(rows, interval)
    heads = (target, *(f"{target}_{what}" for what in ("std", "lower", "upper")))
    return {n: v.tolist() for n, v in zip(heads, (mean, std, lower, upper), strict=True)}


def _beside(kept: list[Column], columns: dict[str, list[object]]) -> dict[str, list[object]]:
    """Columns that are copied, then those of predictions; UsageError if a name is in both."""
    both = [column.name for column in kept if column.name in columns]
    if both:
        raise UsageError(f"--keep {both[0]} is also a column of predictions; leave it out")
    return {column.name: _copied(column) for column in kept} | columns


def _copied(column: Column) -> list[object]:
    return [
        None if gap else value
        for value, gap in zip(column.values.tolist(), column.missing.tolist(), strict=True)
    ]
