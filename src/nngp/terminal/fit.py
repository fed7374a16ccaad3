"""`nngp fit`: a table to a model in a file."""

import warnings
from pathlib import Path

import numpy as np

from nngp.errors import ColumnWarning
from nngp.frames import Columns, InputTable
from nngp.terminal.estimator_options import (
    TASKS,
    announce_memory,
    check_parameters,
    engine_of,
    parameters_for,
)
from nngp.terminal.options import FitOptions, TargetKind
from nngp.terminal.output import DataError, UsageError, print_message, print_result
from nngp.terminal.scores import fit_summary, leave_one_out_scores, network_summary, weak_signal
from nngp.terminal.tables import (
    check_not_input,
    check_writable,
    default_output,
    read_table,
)
from nngp.terminal.target import (
    check_set_aside,
    learn_target,
    set_aside,
    training_rows,
)


def fit(options: FitOptions) -> None:
    """Read the table, choose a network, condition it on every row, write the model."""
    with engine_of(options) as engine:
        check_parameters(options, engine)
        output = default_output(options.output, "model.nngp")
        _check_outputs(output, options)
        table = read_table(options.train, options)
        target, classes = learn_target(table, options.target, options.task)
        task = TargetKind.classification if classes else TargetKind.regression
        model = TASKS[task](
            **parameters_for(task, options, engine), progress=options.progress or None
        )
        check_set_aside(table, options)
        known = training_rows(target.known(table), options, classes=classes)
        rows, inputs = known.table, _inputs(known.table, options)
        column = rows.column(target.name)
        answers = target.labels(column) if classes else target.amounts(column)
        columns, repeated = _learn_columns(inputs), _repeated(rows)
        outputs = len(np.unique(answers)) if classes else 1
        announce_memory(model, (len(rows), len(columns.features)), outputs)
        model.fit(inputs, answers, **known.arguments)
        scores = {
            "task": str(task),
            "rows": model.report_.n,
            **leave_one_out_scores(model, answers[known.fitted]),
        }
        if weak := weak_signal(scores, answers[known.fitted]):
            print_message(weak)
        network, rest = network_summary(model), fit_summary(model)
        rest["repeated_rows"] = repeated
        notes = {
            **target.as_notes(),
            "aside": set_aside(options),
            "summary": scores | network | rest,
        }
        model.save(output, factor=options.factor, notes=notes)
        if options.report is not None:
            from nngp.plots.fit_page import fit_report

            title = f"{options.train.name}: {target.name}"
            fitted = inputs.rows(known.fitted)
            fit_report(model, fitted, answers[known.fitted], options.report, title=title)
            print_message(f"report written to {options.report}")
        size = f"{output.stat().st_size / 1e6:.1f} MB"
        print_result(
            f"{output}, {size}: {target.name} from {len(columns.used)} columns",
            scores,
            network,
            as_json=options.as_json,
            json_only={"model": str(output), **rest},
        )


def _check_outputs(output: Path, options: FitOptions) -> None:
    """Raise UsageError where the model or the report could not be written."""
    check_writable(output, create=True)
    check_not_input(output, [options.train])
    if options.report is not None:
        check_writable(options.report, (".html", ".htm"), create=True)
        check_not_input(options.report, [options.train])
        if options.solver == "cg":
            raise UsageError(
                "--report needs leave-one-out predictions, which --solver cg does not have; use "
                "nngp plot MODEL OTHER.csv -o report.html"
            )


def _inputs(rows: InputTable, options: FitOptions) -> InputTable:
    """The columns to learn from."""
    inputs = rows.without([options.target, *set_aside(options)])
    if not inputs.columns:
        raise DataError(f"no column is left to learn from: there is only '{options.target}'")
    return inputs


def _learn_columns(inputs: InputTable) -> Columns:
    """Learn how columns are read, and print that before the work begins."""
    columns = Columns.learn(inputs)
    print_message(*columns.cautions, *columns.remarks)
    warnings.simplefilter("ignore", ColumnWarning)  # they are what was just printed
    return columns


def _repeated(rows: InputTable) -> int:
    """The number of rows that repeat another one; printed if there are any."""
    texts = [column.texts.tolist() for column in rows.columns]
    repeated = len(rows) - len(set(zip(*texts, strict=True)))
    if repeated:
        print_message(f"{repeated} row(s) repeat another row in every column")
    return repeated
