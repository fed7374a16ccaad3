"""Options of all commands: one frozen dataclass a command, whose docstring is its help.

A command line has the fields of its own class first, then those of the classes it extends; a
field that is declared again stays where the most basic class has it. Nothing heavy is imported
here, so that `--help` answers at once.
"""

# ruff: noqa: RUF009 (`option` and `argument` give fields, not defaults)

from collections.abc import Hashable
from dataclasses import dataclass, field, fields, make_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from typer import Argument, Option

from nngp.estimators.parameters import (
    ClassifierParameters,
    Option as ParameterOption,
    RegressorParameters,
    parameters_of,
)

OUT = ("--out", "--output", "-o")
MODEL, TABLE = (
    "A model written by nngp fit.",
    "A .csv, .tsv, .txt or .parquet file, or - for stdin.",
)
ENGINE = "auto, cpu or gpu."
PROGRESS = "Also without a terminal: a line every ten seconds."
PICTURE = "A .svg, .png or .pdf file. By default none with --json, else"


def option(default: object, help: str, *names: str, **more: Any) -> Any:
    """A field that is an option of the command line."""
    return field(default=default, metadata={"typer": Option(*names, help=help, **more)})


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

    as_json: bool = option(False, "Print one JSON object, for programs.", "--json")


@dataclass(frozen=True, kw_only=True)
class EngineOptions(OutputOptions):
    """The choice of a device."""

    engine: str = option("auto", ENGINE)


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(OutputOptions):
    """Work on a Dask cluster."""

    cluster: str | None = option(None, "Compute on a Dask cluster: its scheduler, tcp://HOST:8786.")
    tile: int | None = option(None, "With --cluster: rows of a tile, at most.", min=1)
    tile_store: Path | None = option(
        None, "With --cluster: a folder that all workers see, to go on from."
    )


@dataclass(frozen=True, kw_only=True)
class ComputeOptions(EngineOptions, ClusterOptions):
    """The machine that computes: this one, its GPU, or a cluster."""


@dataclass(frozen=True, kw_only=True)
class TableOptions(OutputOptions):
    """How a table of text is read."""

    encoding: str | None = option(None, "Of a table of text: utf-8, latin-1, cp1252, utf-16, ...")
    sep: str | None = option(None, "What separates values: a character, tab, ... Found by itself.")
    decimal: str | None = option(
        None, "The decimal mark where the table leaves it open, as 1,234 does: . or ,"
    )


class EstimatorOption(NamedTuple):
    """A parameter of an estimator, and the option that sets it."""

    name: str
    option: ParameterOption

    def default(self, value: object) -> object:
        """The option's default, as a text where it is one."""
        texts = {given: text for text, given in self.option.words}
        return texts.get(value, value) if isinstance(value, Hashable) else value


def _estimator_options() -> list[tuple[str, Any, Any]]:
    """A field of the options for each parameter that has one, from the estimators' own tables."""
    out = {}
    for kind in (RegressorParameters, ClassifierParameters):
        defaults = {one.name: one.default for one in fields(kind)}
        for name, one in parameters_of(kind).items():
            if one.option is not None:
                given = EstimatorOption(name, one.option)
                metadata = {"typer": Option(help=one.option.help), "option": given}
                made = field(default=given.default(defaults[name]), metadata=metadata)
                out[name] = (one.option.name or name, one.option.type, made)
    return list(out.values())


EstimatorOptions: Any = make_dataclass(
    "EstimatorOptions", _estimator_options(), bases=(OutputOptions,), frozen=True, kw_only=True
)


@dataclass(frozen=True, kw_only=True)
class FitOptions(EstimatorOptions, ComputeOptions, TableOptions):
    """Fit a table: choose a network, condition it on every row, write the model to a file."""

    train: Path = argument(TABLE)
    target: str = field(metadata={"typer": Option("--target", "-t", help="The column to predict.")})
    output: Path | None = option(
        None, "Where the model goes; model.nngp by default.", "--output", "-o"
    )
    task: TargetKind = option(TargetKind.auto, "What the target is; auto looks at it.")
    drop: list[str] | None = option(None, "A column to ignore.")
    weights: str | None = option(
        None, "A column with a weight for each row: 2 is the row twice, 0 leaves it out."
    )
    noise_column: str | None = option(
        None, "A column with the variance of each row's target, in the target's units squared."
    )
    factor: bool = option(True, "Keep the Cholesky factor in the file (4 n² bytes).")
    progress: bool = option(False, PROGRESS, "--progress")


def handed_parameters(kind: type) -> dict[str, EstimatorOption]:
    """The options of a command that are parameters of an estimator."""
    return {one.name: one.metadata["option"] for one in fields(kind) if "option" in one.metadata}


@dataclass(frozen=True, kw_only=True)
class PredictOptions(ComputeOptions, TableOptions):
    """Predict every row: mean, deviation and interval, or class and probabilities."""

    model: Path = argument(MODEL)
    table: Path = argument(TABLE)
    output: Path | None = option(None, "A table; CSV on stdout by default.", "--output", "-o")
    interval: float = option(0.95, "Probability of the interval.")
    keep: list[str] | None = option(None, "Columns of the table to copy: names, with commas.")
    progress: bool = option(False, PROGRESS, "--progress")


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(ComputeOptions, TableOptions):
    """Compare predictions with the target column of another table."""

    model: Path = argument(MODEL)
    table: Path = argument(TABLE)
    progress: bool = option(False, PROGRESS, "--progress")


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
        None, "Instead of these four: a .json file with the as_dict() of a network of any shape."
    )
    ntk: bool = option(False, "The tangent kernel of the network.", "--ntk")
    normalize: bool = option(False, "First scale each row to x·x/d = 1.")
    output: Path | None = option(
        None, "A .npy, .csv or .parquet file; stdout by default.", "--output", "-o"
    )


@dataclass(frozen=True, kw_only=True)
class PhaseOptions(OutputOptions):
    """Draw how signals propagate: phases, depth scales, maps and flows of networks in them."""

    name: str = argument("relu, erf, tanh, gelu, ...", metavar="[ACTIVATION]", default="tanh")
    activation: str | None = option(None, "The same as an option.")
    weight_var: float | None = option(
        None, "Of the network drawn; by default three across the critical line."
    )
    bias_var: float = option(0.1, "Of the networks drawn.")
    output: Path | None = option(None, f"{PICTURE} phase-tanh.svg, say.", *OUT)
    table: Path | None = option(None, "Also write the diagram to a .csv, .tsv or .parquet file.")


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The whole job on data that come with scikit-learn: fit, predict, evaluate, pictures."""

    folder: Path = option(Path("demo"), "Where tables and pictures go.")
