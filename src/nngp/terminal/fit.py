"""`nngp fit`: a table to a model in a file."""

import warnings

import numpy as np

from nngp.errors import ColumnWarning
from nngp.frames import Columns, InputTable
from nngp.terminal.engines import engine_of
from nngp.terminal.forecast import announce
from nngp.terminal.handover import TASKS, check_parameters, parameters_for
from nngp.terminal.options import FitOptions, TargetKind
from nngp.terminal.output import DataError, print_message, print_result
from nngp.terminal.rows import aside, check_aside, training_rows
from nngp.terminal.scores import leave_one_out_scores
from nngp.terminal.summary import summary_of
from nngp.terminal.tables import (
    check_not_input,
    check_writable,
    default_output,
    read_table,
)
from nngp.terminal.target import learn_target


def fit(options: FitOptions) -> None:
    """Read the table, choose a network, condition it on every row, write the model."""
    with engine_of(options) as engine:
        check_parameters(options, engine)
        output = default_output(options.output, "model.nngp")
        check_writable(output, create=True)
        check_not_input(output, [options.train])
        table = read_table(options.train, options)
        target, classes = learn_target(table, options.target, options.task)
        task = TargetKind.classification if classes else TargetKind.regression
        model = TASKS[task](
            **parameters_for(task, options, engine), progress=options.progress or None
        )
        check_aside(table, options)
        known = training_rows(target.known(table), options, classes=classes)
        rows, inputs = known.table, _inputs(known.table, options)
        column = rows.column(target.name)
        answers = target.labels(column) if classes else target.amounts(column)
        columns, repeated = _learn_columns(inputs), _repeated(rows)
        shape, outputs = (len(rows), len(columns.features)), len(np.unique(answers))
        announce(model, shape, outputs if classes else 1)
        model.fit(inputs, answers, **known.told)
        facts = {**summary_of(model), "repeated rows": repeated}
        facts |= leave_one_out_scores(model, answers[known.fitted])
        notes = {**target.as_notes(), "aside": aside(options), "summary": facts}
        model.save(output, factor=options.factor, notes=notes)
        title = f"{output}, {output.stat().st_size / 1e6:.1f} MB"
        print_result(title, {"model": str(output), **facts}, options.as_json)


def _inputs(rows: InputTable, options: FitOptions) -> InputTable:
    """The columns to learn from."""
    inputs = rows.without([options.target, *aside(options)])
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
