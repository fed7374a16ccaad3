"""Options of all commands: one frozen dataclass a command, whose docstring is its help.

A command line has the fields of its own class first, then those of the classes it extends; a
field that is declared again stays where the most basic class has it. Nothing heavy is imported
here, so that `--help` answers at once.
"""

# ruff: noqa: RUF009 (`option` and `argument` give fields, not defaults)

from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from typer import Argument, Option

from nngp.estimators.parameters import ClassifierParameters, RegressorParameters, parameters_of

OUT = ("--out", "--output", "-o")
MODEL, TABLE = (
    "A model written by nngp fit.",
    "A .csv, .tsv, .txt, .parquet or .xlsx file, or - for stdin.",
)
ENGINE = "auto, cpu or gpu."
PROGRESS = "Show progress without a terminal, too: a line every ten seconds."
PICTURE = "A .svg, .png or .pdf file. By default none with --json, otherwise"
# Panels of the help, in the order of their first option.
# Those of the estimators' parameters are in the table of `nngp.estimators.parameters`.
RESULT, ROWS, READING, MACHINE = "Result", "Rows and columns", "Reading the table", "Machine"


def option(default: object, help: str, *names: str, panel: str = "Options", **more: Any) -> Any:
    """A field that is an option of the command line, shown in a panel of its help."""
    given = Option(*names, help=help, rich_help_panel=panel, **more)
    return field(default=default, metadata={"typer": given})


@dataclass(frozen=True)
class EstimatorOption:
    """The parameter of an estimator that an option sets, and what its text is: a word, or a number
    (whole or not) beside words; `words` are texts that stand for other values."""

    name: str
    number: Literal["", "any", "whole"] = ""
    words: tuple[tuple[str, object], ...] = ()


def estimator_options(kind: type) -> dict[str, EstimatorOption]:
    """The options of a command that are parameters of an estimator."""
    return {one.name: one.metadata["option"] for one in fields(kind) if "option" in one.metadata}


def argument(help: str, **more: Any) -> Any:
    """A field that is an argument of the command line; required unless it has a `default`."""
    default = {"default": more.pop("default")} if "default" in more else {}
    return field(**default, metadata={"typer": Argument(help=help, **more)})


class TargetKind(StrEnum):
    """Kind of a target column: numbers, classes, or whichever it looks like."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The option of every command that has a result."""

    as_json: bool = option(False, "Print one JSON object, for programs.", "--json", panel=RESULT)


@dataclass(frozen=True, kw_only=True)
class ComputeOptions(OutputOptions):
    """The machine that computes: this one, its GPU, or a cluster."""

    engine: str = option("auto", ENGINE, panel=MACHINE)
    cluster: str | None = option(
        None, "Compute on a Dask cluster: its scheduler, tcp://HOST:8786.", panel=MACHINE
    )
    tile: int | None = option(
        None, "With --cluster: the largest number of rows of a tile.", min=1, panel=MACHINE
    )
    tile_store: Path | None = option(
        None, "With --cluster: a folder that all workers see, to resume from.", panel=MACHINE
    )


@dataclass(frozen=True, kw_only=True)
class TableOptions(OutputOptions):
    """How a table of text is read."""

    encoding: str | None = option(
        None, "Encoding of text: utf-8, latin-1, cp1252, utf-16, ...", panel=READING
    )
    sep: str | None = option(
        None, "Separator: a character, tab, ... Detected by default.", panel=READING
    )
    decimal: str | None = option(
        None, "Decimal mark where the table is ambiguous, as in 1,234: . or ,", panel=READING
    )


def _parameter_fields() -> list[tuple[str, Any, Any]]:
    """A field for each parameter that has an option in the estimators' own tables."""
    out = {}
    for kind in (RegressorParameters, ClassifierParameters):
        defaults = {one.name: one.default for one in fields(kind)}
        for name, one in parameters_of(kind).items():
            if (given := one.option) is None:
                continue
            texts = {str(value): text for text, value in given.words}
            default = texts.get(str(defaults[name]), defaults[name])
            metadata = {
                "typer": Option(help=given.help, rich_help_panel=given.panel),
                "option": EstimatorOption(name, given.number, given.words),
            }
            made = field(default=default, metadata=metadata)
            out[name] = (given.name or name, given.type, made)
    return list(out.values())


ParameterOptions: Any = make_dataclass(
    "ParameterOptions", _parameter_fields(), bases=(OutputOptions,), frozen=True, kw_only=True
)


@dataclass(frozen=True, kw_only=True)
class FitOptions(ParameterOptions, ComputeOptions, TableOptions):
    """Fit a table: choose a network, condition it on every row, write the model to a file."""

    train: Path = argument(TABLE)
    target: str = field(
        metadata={
            "typer": Option("--target", "-t", help="The column to predict.", rich_help_panel=ROWS)
        }
    )
    output: Path | None = option(
        None, "The model; model.nngp by default.", "--output", "-o", panel=RESULT
    )
    report: Path | None = option(
        None, "Also write an .html page: scores, charts, worst rows.", panel=RESULT
    )
    task: TargetKind = option(
        TargetKind.auto, "Kind of the target; auto looks at its values.", panel=ROWS
    )
    drop: list[str] | None = option(None, "A column to ignore (repeatable).", panel=ROWS)
    weights: str | None = option(
        None, "A column with a weight for each row: 2 counts twice, 0 not at all.", panel=ROWS
    )
    noise_column: str | None = option(
        None, "A column with the noise variance of each row's target.", panel=ROWS
    )
    factor: bool = option(True, "Keep the Cholesky factor in the file (4 n² bytes).", panel=RESULT)
    progress: bool = option(False, PROGRESS, "--progress", panel=MACHINE)


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ComputeOptions, TableOptions):
    """Predict every row: mean, standard deviation and interval, or class and probabilities."""

    model: Path = argument(MODEL)
    table: Path = argument(TABLE)
    output: Path | None = option(
        None, "A table (.csv, .tsv, .parquet, .xlsx); CSV on stdout by default.", "--output", "-o",
        panel=RESULT,
    )  # fmt: skip
    interval: float = option(0.95, "Probability of the interval.", panel=RESULT)
    keep: list[str] | None = option(
        None, "Columns of the table to copy: names, separated by commas.", panel=RESULT
    )
    progress: bool = option(False, PROGRESS, "--progress", panel=MACHINE)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(ComputeOptions, TableOptions):
    """Compare predictions with the target column of another table."""

    model: Path = argument(MODEL)
    table: Path = argument(TABLE)
    progress: bool = option(False, PROGRESS, "--progress", panel=MACHINE)


@dataclass(frozen=True, kw_only=True)
class PlotOptions(ComputeOptions, TableOptions):
    """Draw predictions for a table that has the target column: intervals, or reliability."""

    model: Path = argument(MODEL)
    table: Path = argument(TABLE)
    output: Path | None = option(
        None,
        "A .png, .svg or .pdf picture, or an .html page with all charts; by default a .png "
        "named after the model.",
        *OUT,
        panel=RESULT,
    )
    progress: bool = option(False, PROGRESS, "--progress", panel=MACHINE)


@dataclass(frozen=True, kw_only=True)
class InspectOptions(OutputOptions):
    """Show what a saved model is, without loading its arrays."""

    model: Path = argument(MODEL)


@dataclass(frozen=True, kw_only=True)
class KernelOptions(TableOptions):
    """Compute the kernel matrix of a table of numbers."""

    table: Path = argument(TABLE)
    depth: str = option("3", "Hidden layers, or inf.")
    activation: str = option("relu", "relu, erf, tanh, gelu, ...")
    weight_var: float = option(1.6, "Variance of weights times fan-in.")
    bias_var: float = option(0.1, "Variance of biases.")
    network: Path | None = option(
        None, "Instead of these: a .json file with the as_dict() of a network of any shape."
    )
    ntk: bool = option(False, "The neural tangent kernel of the network.", "--ntk")
    normalize: bool = option(False, "First normalize each row to x·x/d = 1.")
    output: Path | None = option(
        None, "A .npy, .csv, .parquet or .xlsx file; stdout by default.", *OUT, panel=RESULT
    )


@dataclass(frozen=True, kw_only=True)
class PhaseOptions(OutputOptions):
    """Draw signal propagation: phase diagram, depth scales, correlation maps, networks in them."""

    name: str = argument("relu, erf, tanh, gelu, ...", metavar="[ACTIVATION]", default="tanh")
    activation: str | None = option(None, "The activation, as an option.")
    weight_var: float | None = option(
        None, "Weight variance of the network drawn; by default of three across the critical line."
    )
    bias_var: float = option(0.1, "Bias variance of the networks drawn.")
    output: Path | None = option(None, f"{PICTURE} phase-ACTIVATION.svg.", *OUT, panel=RESULT)
    table: Path | None = option(
        None, "Also write the diagram to a .csv, .tsv, .parquet or .xlsx file.", panel=RESULT
    )


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """Fit, predict, evaluate and draw, on a table that comes with this package."""

    folder: Path = option(Path("demo"), "A folder for tables and pictures.")
