"""The two commands about the paper, and their options. The work is in `reproduce` and `report`."""

from pathlib import Path
from typing import Annotated

import typer

from nngp.terminal.speech import guarded

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]


def reproduce(
    parts: Annotated[
        list[str], typer.Argument(metavar="PART...", help="table1, table2, fig1 ... fig10, or all.")
    ],
    dataset: Annotated[
        str, typer.Option(help="digits, mnist, cifar10 or fashion_mnist.")
    ] = "digits",
    sizes: Annotated[
        str | None, typer.Option(help="Training points, with commas; the paper's by default.")
    ] = None,
    depths: Annotated[
        str | None,
        typer.Option(help="Hidden layers, with commas; the paper's, or 1,3,10,50 for digits."),
    ] = None,
    activations: Annotated[str, typer.Option(help="By name, with commas.")] = "relu,tanh,gelu,erf",
    grid: Annotated[
        int | None,
        typer.Option(min=2, help="Values of each variance; the paper's 30, or 10 for digits."),
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, cpu or gpu.")] = "auto",
    data: Annotated[
        Path | None, typer.Option(help="The folder with the data; NNGP_DATA by default.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Stop after about so long: 90s, 20m, 1h30m.")
    ] = None,
    store: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs.db"),
    output: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="The folder for figures and tables.")
    ] = Path("reproduction"),
    trials: Annotated[
        int | None, typer.Option(min=1, help="Random settings for each finite network.")
    ] = None,
    widths: Annotated[
        str | None, typer.Option(help="Units of finite networks, with commas.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Have runs done on a Dask cluster (engine cpu by default; --data is a folder that "
            "workers see): its scheduler, tcp://HOST:8786."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Reproduce tables and figures of the paper on a data set.

    Every number is a run in the store. Called again, it goes on with those that are left; several
    processes may share the work. With all, a report is written at the end.
    """
    with guarded("interrupted; finished runs are in the store, and the next call goes on"):
        from nngp.terminal.reproduce import reproduce as work
        from nngp.terminal.request import asked, seconds_of

        place = "cpu" if cluster is not None and engine == "auto" else engine
        wanted = asked(
            parts, dataset, sizes, depths, activations, grid, place, data, trials, widths, cluster
        )
        work(wanted, seconds_of(budget), store, output, as_json)


def report(
    stores: Annotated[
        list[Path] | None, typer.Argument(metavar="[STORE]...", help="runs.db by default.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="The page: an .html file.")
    ] = Path("report.html"),
    dataset: Annotated[
        list[str] | None, typer.Option(help="Only this data set; all that there are by default.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what stores of runs say about the paper as one page that needs no other file."""
    with guarded():
        from nngp.terminal import report as job

        job.report(stores or [Path("runs.db")], output, dataset or [], as_json)
