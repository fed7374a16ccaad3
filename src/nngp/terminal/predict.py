"""`nngp predict`, `nngp evaluate`, `nngp plot` and `nngp inspect`: the commands that read a saved
model."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nngp._records import reading
from nngp.errors import ModelFileError
from nngp.estimators import NNGPClassifier
from nngp.estimators.loading import restored
from nngp.estimators.saved import SavedModel, read_model
from nngp.frames import Column, InputTable
from nngp.linsolve import Engine
from nngp.plots.fit_page import fit_report
from nngp.plots.uncertainty import intervals, reliability
from nngp.terminal.estimator_options import engine_of
from nngp.terminal.options import (
    EvaluateOptions,
    InspectOptions,
    PlotOptions,
    PredictOptions,
)
from nngp.terminal.output import (
    DataError,
    UsageError,
    print_json,
    print_message,
    print_result,
    suggestion,
)
from nngp.terminal.scores import Model, facts_of, table_scores
from nngp.terminal.tables import (
    PICTURES,
    STDIN,
    TABLES,
    check_not_input,
    check_writable,
    column_of,
    picture_file,
    read_table,
    write_table,
)
from nngp.terminal.target import Target

UNNAMED = "prediction"  # of a target that was an array in Python


@dataclass(frozen=True)
class LoadedModel:
    """A model from a file, its target if it was fitted to a column, and the columns that were set
    aside then: dropped, weights, noise."""

    model: Model
    target: Target | None
    aside: tuple[str, ...] = ()

    def inputs(self, rows: InputTable, besides: Iterable[str] = ()) -> InputTable:
        """The table without columns that were not inputs in training."""
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
        saved, target, rows, inputs = _with_targets(options, engine)
        scores = table_scores(saved.model, target, inputs, rows.column(target.name))
        title = f"{options.model} on {options.table}"
        print_result(title, {"rows": len(rows), **scores}, as_json=options.as_json)


def plot(options: PlotOptions) -> None:
    """Draw predictions for a table with answers: a picture, or a page with all of them."""
    with engine_of(options) as engine:
        asked = options.output or Path(f"{options.model.stem}.png")
        path = picture_file(asked, "", False, (*PICTURES, ".html"))
        saved, target, rows, inputs = _with_targets(options, engine)
        model, column, title = saved.model, rows.column(target.name), f"{options.model.name} on "
        answers = (
            target.labels(column) if isinstance(model, NNGPClassifier) else target.amounts(column)
        )
        assert path is not None
        if path.suffix == ".html":
            title += options.table.name
            fit_report(model, inputs, answers, path, held_out=True, title=title)
        elif isinstance(model, NNGPClassifier):
            reliability(model, inputs, answers, path)
        else:
            intervals(model, inputs, answers, path)
        facts = {"picture": str(path), "rows": len(rows)}
        print_result(f"{options.model} on {options.table}", facts, as_json=options.as_json)


def _with_targets(
    options: EvaluateOptions | PlotOptions, engine: str | Engine
) -> tuple[LoadedModel, Target, InputTable, InputTable]:
    """A saved model, its target, the rows of a table whose targets are known, and their inputs."""
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
    return saved, target, rows, saved.inputs(rows)


def inspect(options: InspectOptions) -> None:
    """Print the facts in a model's header."""
    saved, _, _ = _read(options.model)
    facts = {**facts_of(saved), "megabytes": round(options.model.stat().st_size / 1e6, 3)}
    print_result(str(options.model), facts, as_json=options.as_json)


def _load(
    options: PredictOptions | EvaluateOptions | PlotOptions, engine: str | Engine
) -> LoadedModel:
    """Load a model that knows its columns."""
    path = options.model
    saved, target, aside = _read(path)
    if saved.columns is None or not saved.columns.named:
        raise DataError(f"{path} was saved from Python and knows no columns; use nngp.load there")
    model = restored(path, saved, engine, options.progress or None)
    return LoadedModel(model, target, aside)


def _read(path: Path) -> tuple[SavedModel, Target | None, tuple[str, ...]]:
    """A saved model, with its target and the columns that were set aside, if it has any."""
    saved = read_model(path)
    aside = saved.notes.get("aside", [])
    with reading(path):
        if not isinstance(aside, list) or not all(isinstance(name, str) for name in aside):
            raise ModelFileError(f"the columns set aside are {aside!r}")
        return saved, Target.from_notes(saved.notes), tuple(aside)


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
        raise UsageError(f"--keep {both[0]} is also a column of predictions; remove it")
    return {column.name: _copied(column) for column in kept} | columns


def _copied(column: Column) -> list[object]:
    return [
        None if gap else value
        for value, gap in zip(column.values.tolist(), column.missing.tolist(), strict=True)
    ]
