"""Options of all commands: one frozen dataclass a command, whose docstring is its help.

A command line has the fields of its own class first, then those of the classes it extends; a
field that is declared again stays where the most basic class has it. Nothing heavy is imported
here, so that `--help` answers at once.
"""

# ruff: noqa: RUF009 (`option` and `argument` give fields, not defaults)

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from typer import Argument, Option

OUT = ("--out", "--output", "-o")
DATASET, DATA_FOLDER = (
    "digits, mnist, cifar10 or fashion_mnist.",
    "The folder with the data; NNGP_DATA by default.",
)
MODEL, TABLE = (
    "A model written by nngp fit.",
    "A .csv, .tsv, .txt or .parquet file, or - for stdin.",
)
ENGINE, STORE, VARIANCE = "auto, cpu or gpu.", "Where runs are kept.", "A number, or auto."
TRAIN = "Training points, balanced over classes; all by default."
PROGRESS = "Also without a terminal: a line every ten seconds."
NONE = (("none", None),)
PICTURE = "A .svg, .png or .pdf file. By default none with --json, else"
TRIALS, WIDTH = "Random settings for each shape.", "Units of a hidden layer; several with commas."


def option(default: object, help: str, *names: str, **more: Any) -> Any:
    """A field that is an option of the command line."""
    return field(default=default, metadata={"typer": Option(*names, help=help, **more)})


@dataclass(frozen=True)
class Handed:
    """The parameter of an estimator that an option sets, and what its text is: a word, or a number
    (whole or not) beside words; `words` are texts that stand for other values."""

    name: str
    number: Literal["", "any", "whole"] = ""
    words: tuple[tuple[str, object], ...] = ()


def parameter(
    default: object,
    help: str,
    handed: str | Handed | None = None,
) -> Any:
    """A field that is an option, handed to an estimator under its own name or another."""
    metadata = {"typer": Option(help=help), "parameter": handed}
    return field(default=default, metadata=metadata)


def handed_parameters(kind: type) -> dict[str, Handed]:
    """The options of a command that are parameters of an estimator."""
    out = {}
    for one in fields(kind):
        if "parameter" in one.metadata:
            handed = one.metadata["parameter"] or one.name
            out[one.name] = Handed(handed) if isinstance(handed, str) else handed
    return out


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


@dataclass(frozen=True, kw_only=True)
class FitOptions(ComputeOptions, TableOptions):
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
    depth: str = parameter("auto", "Hidden layers, inf, or auto.", Handed("depth", "whole"))
    activation: str = parameter("auto", "relu, erf, tanh, ... or auto.")
    weight_var: str = parameter("auto", VARIANCE, Handed("weight_var", "any"))
    bias_var: str = parameter("auto", VARIANCE, Handed("bias_var", "any"))
    noise_var: str = parameter("auto", VARIANCE, Handed("noise_var", "any"))
    noise: str = parameter("constant", "constant, or heteroscedastic: noise that varies.")
    input_scaling: str = parameter("auto", "auto, standardize, sphere, unit, whiten or none.")
    whitening: str = parameter(
        "auto", "Strength of whiten: a number, or auto.", Handed("whitening", "any")
    )
    column_maps: str = parameter("auto", "Of skewed columns: auto, or identity for none.")
    target_transform: str = parameter("auto", "auto, identity, log or yeo-johnson.")
    likelihood: str = parameter("auto", "Of classes: auto, regression or dirichlet.")
    class_weight: str = parameter(
        "none", "none, or balanced: rare classes count more.", Handed("class_weight", words=NONE)
    )
    selection: str = parameter(
        "evidence", "evidence, loo, grid or none.", Handed("selection", words=NONE)
    )
    effort: str = parameter("normal", "fast, normal or thorough.")
    networks: int = parameter(1, "At most so many networks are kept, and weighted.")
    budget: int | None = parameter(None, "At most so many networks are tried.")
    seed: int = parameter(0, "Which rows the choice looks at.", "random_state")
    factor: bool = option(True, "Keep the Cholesky factor in the file (4 n² bytes).")
    solver: str = parameter("auto", "cholesky, cg, or auto: cg where no factor fits.")
    progress: bool = option(False, PROGRESS, "--progress")


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
class RunsOptions(OutputOptions):
    """List the runs of experiments: how many are done, what they were, what came of them."""

    store: Path = argument("A store of runs.", default=Path("runs.db"))
    experiment: str | None = option(None, "Only runs of this experiment.")
    status: str | None = option(None, "pending, running, done or failed.")
    where: list[str] | None = option(None, "Only runs so configured: name=value.")
    sort: str | None = option(None, "By this column, largest first.")
    ascending: bool = option(False, "Smallest first.", "--ascending")
    limit: int | None = option(None, "At most so many runs; 20 in a table by default.", min=1)
    columns: list[str] | None = option(None, "What to show: names, separated by commas.")
    export: Path | None = option(None, "Write to a .csv or .parquet file.")
    lists: bool = option(False, "Also lists in results, such as learning curves.", "--lists")
    merge: Path | None = option(None, "First take over the finished runs of another store.")
    salvage: bool = option(
        False, "Merge what can be read of a damaged store, into a new one too.", "--salvage"
    )
    retry_failed: bool = option(False, "First make failed runs pending again.", "--retry-failed")


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OutputOptions):
    """Random search over finite networks."""

    steps: int | None = option(None, "The most steps of the optimiser.", min=1)
    patience: int | None = option(None, "Looks without a better one before training ends.", min=1)
    optimiser: str = option("adam", "adam or sgd.")
    seed: int = option(0, "Of the random settings.", min=0)
    lanes: int | None = option(None, "Networks trained side by side.", min=1)
    data: Path | None = option(None, DATA_FOLDER)
    store: Path = option(Path("runs.db"), STORE)
    output: Path | None = option(None, PICTURE, *OUT)


@dataclass(frozen=True, kw_only=True)
class FiniteOptions(SearchOptions, EngineOptions):
    """Train networks of finite width by random search, beside the infinitely wide one.

    Every trial is kept in the store. Called again, or by another process at the same time, it goes
    on with those that are left.
    """

    dataset: str = option("digits", DATASET)
    width: str = option("512", WIDTH)
    depth: str = option("2", "Hidden layers; several with commas.")
    trials: int = option(20, TRIALS, min=1)
    activation: str = option("relu", "relu, tanh, erf, gelu, ...")
    train: int | None = option(None, TRAIN)
    loss: str = option("mse", "mse or cross_entropy.")
    output: Path | None = option(None, f"{PICTURE} finite-digits-relu.png, say.", *OUT)


@dataclass(frozen=True, kw_only=True)
class GapOptions(SearchOptions):
    """Measure the generalisation gap by width: networks that have learned all training labels."""

    dataset: str = option("digits", DATASET)
    width: str = option("16,32,64,128,256,512", WIDTH)
    depth: int = option(5, "Hidden layers.", min=1)
    trials: int = option(20, TRIALS, min=1)
    activation: str = option("relu,tanh", "One or more, with commas.")
    train: int | None = option(None, TRAIN)
    output: Path | None = option(None, f"{PICTURE} gap-digits-relu-tanh.png, say.", *OUT)


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions(OutputOptions):
    """Reproduce tables and figures of the paper on a data set.

    Every number is a run in the store. Called again, it goes on with those that are left; several
    processes may share the work. With all, a report is written at the end.
    """

    parts: list[str] = argument(
        "table1, table2, fig1 ... fig10, width, invariance, or all.", metavar="PART..."
    )
    dataset: str = option("digits", DATASET)
    sizes: str | None = option(None, "Training points, with commas; the paper's by default.")
    depths: str | None = option(
        None, "Hidden layers, with commas; the paper's, or 1,3,10,50 for digits."
    )
    activations: str = option(
        "relu,tanh,gelu,erf,silu",
        "By name, with commas; those beside the paper's relu and tanh get a coarser grid.",
    )
    grid: int | None = option(
        None,
        "Values of each variance; the paper's 30, or 10 for digits (5 with relative noise).",
        min=2,
    )
    engine: str = option("auto", ENGINE)
    data: Path | None = option(None, DATA_FOLDER)
    budget: str | None = option(None, "Stop after about so long: 90s, 20m, 1h30m.")
    store: Path = option(Path("runs.db"), STORE)
    output: Path = option(Path("reproduction"), "The folder for figures and tables.", *OUT)
    trials: int | None = option(None, "Random settings for each finite network.", min=1)
    widths: str | None = option(
        None, "Units of finite networks, with commas; 16,64,256, or 16,32,64 for digits."
    )
    cluster: str | None = option(
        None,
        "Have runs done on a Dask cluster (engine cpu by default; --data is a folder that "
        "workers see): its scheduler, tcp://HOST:8786.",
    )


@dataclass(frozen=True, kw_only=True)
class ReportOptions(OutputOptions):
    """Write what stores of runs say about the paper as one page that needs no other file."""

    stores: list[Path] | None = argument("runs.db by default.", metavar="[STORE]...", default=None)
    output: Path | None = option(None, "The page: an .html file; report.html by default.", *OUT)
    dataset: list[str] | None = option(None, "Only this data set; all that there are by default.")


@dataclass(frozen=True, kw_only=True)
class DatasetsOptions(OutputOptions):
    """List the data sets that are known by name, and where each would come from."""

    data: Path | None = option(None, "A folder with data; by default the one NNGP_DATA names.")


@dataclass(frozen=True, kw_only=True)
class DemoOptions:
    """The whole job on data that come with scikit-learn: fit, predict, evaluate, pictures."""

    folder: Path = option(Path("demo"), "Where tables and pictures go.")
