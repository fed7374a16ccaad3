"""Options of all commands: one frozen dataclass a command, whose docstring is its help.

A command line has the fields of its own class first, then those of the classes it extends; a
field that is declared again stays where the most basic class has it. Nothing heavy is imported
here, so that `--help` answers at once.
"""

# ruff: noqa: RUF009 (`option` and `argument` give fields, not defaults)

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer import Argument, Option

OUT = ("--out", "--output", "-o")
DATASET, DATA_FOLDER = (
    "digits, mnist, cifar10 or fashion_mnist.",
    "The folder with the data; NNGP_DATA by default.",
)
ENGINE, STORE = "auto, cpu or gpu.", "Where runs are kept."
TRAIN = "Training points, balanced over classes; all by default."
PICTURE = "A .svg, .png or .pdf file. By default none with --json, else"
TRIALS, WIDTH = "Random settings for each shape.", "Units of a hidden layer; several with commas."


def option(default: object, help: str, *names: str, **more: Any) -> Any:
    """A field that is an option of the command line."""
    return field(default=default, metadata={"typer": Option(*names, help=help, **more)})


def argument(help: str, **more: Any) -> Any:
    """A field that is an argument of the command line; required unless it has a `default`."""
    default = {"default": more.pop("default")} if "default" in more else {}
    return field(**default, metadata={"typer": Argument(help=help, **more)})


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The option of every command that has a result."""

    as_json: bool = option(False, "Print one JSON object, for programs.", "--json")


@dataclass(frozen=True, kw_only=True)
class EngineOptions(OutputOptions):
    """The choice of a device."""

    engine: str = option("auto", ENGINE)


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
    export: Path | None = option(None, "Write to a .csv file.")
    lists: bool = option(False, "Also lists in results, such as learning curves.", "--lists")
    merge: Path | None = option(None, "First take over the finished runs of another store.")
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
    output: Path = option(Path("reproduced"), "The folder for figures and tables.", *OUT)
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
