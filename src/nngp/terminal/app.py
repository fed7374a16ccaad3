"""The commands and their options. The work is in `jobs`, which is loaded when one is called: so
that `--help` answers at once."""

from pathlib import Path
from typing import Annotated

import typer

from nngp.terminal import paper
from nngp.terminal.place import engine_at
from nngp.terminal.speech import guarded
from nngp.terminal.task import Task

app = typer.Typer(
    name="nngp",
    help="Deep networks of infinite width: fit a table, predict with honest uncertainty.\n\n"
    "Exit codes: 0 done, 2 wrong usage, 3 a file or its values cannot be used, 4 something is "
    "missing (memory, a GPU, a cluster, a package), 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
ModelPath = Annotated[Path, typer.Argument(help="A model written by nngp fit.")]
TablePath = Annotated[Path, typer.Argument(help="A .csv, .tsv or .parquet file.")]
EngineName = Annotated[str, typer.Option(help="auto, cpu or gpu.")]
Cluster = Annotated[
    str | None, typer.Option(help="Compute on a Dask cluster: its scheduler, tcp://HOST:8786.")
]
Variance = Annotated[str, typer.Option(help="A number, or auto.")]
DatasetName = Annotated[str, typer.Option(help="digits, mnist, cifar10 or fashion_mnist.")]
DataFolder = Annotated[
    Path | None, typer.Option(help="The folder with the data; NNGP_DATA by default.")
]
Widths = Annotated[str, typer.Option(help="Units of a hidden layer; several with commas.")]
Trials = Annotated[int, typer.Option(help="Random settings for each shape.", min=1)]
TrainingPoints = Annotated[
    int | None, typer.Option(help="Training points, balanced over classes; all by default.")
]
Steps = Annotated[int | None, typer.Option(help="The most steps of Adam.", min=1)]
Patience = Annotated[
    int | None, typer.Option(help="Looks without a better one before training ends.", min=1)
]
SearchSeed = Annotated[int, typer.Option(help="Of the random settings.", min=0)]
Lanes = Annotated[int | None, typer.Option(help="Networks trained side by side.", min=1)]
StoreFile = Annotated[Path, typer.Option(help="Where runs are kept.")]
Picture = Annotated[Path, typer.Option("--out", "--output", "-o", help="A .svg, .png or .pdf.")]


TileRows = Annotated[
    int | None, typer.Option(min=1, help="With --cluster: rows of a tile, at most.")
]
TileStore = Annotated[
    Path | None, typer.Option(help="With --cluster: a folder that all workers see, to go on from.")
]


@app.command(epilog="Example: nngp fit houses.csv --target price -o houses.nngp")
def fit(
    train: TablePath,
    target: Annotated[str, typer.Option("--target", "-t", help="The column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the model goes.")] = Path(
        "model.nngp"
    ),
    task: Annotated[Task, typer.Option(help="What the target is; auto looks at it.")] = Task.auto,
    drop: Annotated[list[str] | None, typer.Option(help="A column to ignore.")] = None,
    depth: Annotated[str, typer.Option(help="Hidden layers, inf, or auto.")] = "auto",
    activation: Annotated[str, typer.Option(help="relu, erf, tanh, ... or auto.")] = "auto",
    weight_var: Variance = "auto",
    bias_var: Variance = "auto",
    noise_var: Variance = "auto",
    input_scaling: Annotated[
        str, typer.Option(help="auto, standardize, sphere, unit or none.")
    ] = "auto",
    selection: Annotated[str, typer.Option(help="evidence, loo, grid or none.")] = "evidence",
    budget: Annotated[int | None, typer.Option(help="At most so many networks are tried.")] = None,
    seed: Annotated[int, typer.Option(help="Which rows the choice looks at.")] = 0,
    factor: Annotated[
        bool, typer.Option(help="Keep the Cholesky factor in the file (4 n² bytes).")
    ] = True,
    solver: Annotated[
        str,
        typer.Option(help="cholesky, cg, or auto: cg where no factor fits."),
    ] = "auto",
    engine: EngineName = "auto",
    cluster: Cluster = None,
    tile: TileRows = None,
    tile_store: TileStore = None,
    as_json: Json = False,
) -> None:
    """Fit a table: choose a network, condition it on every row, write the model to a file."""
    with guarded(), engine_at(engine, cluster, tile, tile_store) as place:
        from nngp.terminal import jobs

        parameters = {
            "depth": jobs.number("--depth", depth, whole=True),
            "activation": activation,
            "weight_var": jobs.number("--weight-var", weight_var),
            "bias_var": jobs.number("--bias-var", bias_var),
            "noise_var": jobs.number("--noise-var", noise_var),
            "input_scaling": input_scaling,
            "selection": None if selection == "none" else selection,
            "budget": budget,
            "solver": solver,
            "engine": place,
            "random_state": seed,
        }
        jobs.fit(train, target, output, task, drop or [], parameters, factor, as_json)


@app.command(epilog="Example: nngp predict houses.nngp new.csv -o prices.csv")
def predict(
    model: ModelPath,
    table: TablePath,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A table; CSV on stdout by default.")
    ] = None,
    interval: Annotated[float, typer.Option(help="Probability of the interval.")] = 0.95,
    engine: EngineName = "auto",
    cluster: Cluster = None,
    tile: TileRows = None,
    tile_store: TileStore = None,
    as_json: Json = False,
) -> None:
    """Predict every row: mean, deviation and interval, or class and probabilities."""
    with guarded(), engine_at(engine, cluster, tile, tile_store) as place:
        from nngp.terminal import jobs

        jobs.predict(model, table, output, interval, place, as_json)


@app.command(epilog="Example: nngp evaluate houses.nngp test.csv")
def evaluate(
    model: ModelPath,
    table: TablePath,
    engine: EngineName = "auto",
    cluster: Cluster = None,
    tile: TileRows = None,
    tile_store: TileStore = None,
    as_json: Json = False,
) -> None:
    """Compare predictions with the target column of another table."""
    with guarded(), engine_at(engine, cluster, tile, tile_store) as place:
        from nngp.terminal import jobs

        jobs.evaluate(model, table, place, as_json)


@app.command(epilog="Example: nngp inspect houses.nngp")
def inspect(model: ModelPath, as_json: Json = False) -> None:
    """Show what a saved model is, without loading its arrays."""
    with guarded():
        from nngp.terminal import jobs

        jobs.inspect(model, as_json)


@app.command(epilog="Example: nngp kernel points.csv --depth 3 --activation relu -o K.npy")
def kernel(
    table: TablePath,
    depth: Annotated[str, typer.Option(help="Hidden layers, or inf.")] = "3",
    activation: Annotated[str, typer.Option(help="relu, erf, tanh, gelu, ...")] = "relu",
    weight_var: Annotated[float, typer.Option(help="Variance of weights times fan-in.")] = 1.6,
    bias_var: Annotated[float, typer.Option(help="Variance of biases.")] = 0.1,
    normalize: Annotated[bool, typer.Option(help="First scale each row to x·x/d = 1.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .npy, .csv or .parquet file; stdout by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the kernel matrix of a table of numbers."""
    with guarded():
        from nngp.terminal import jobs

        layers = jobs.number("--depth", depth, whole=True)
        net = jobs.network(layers, activation, weight_var, bias_var)
        jobs.kernel(table, net, normalize, output, as_json)


@app.command(epilog="Example: nngp phase tanh --out phase.svg")
def phase(
    name: Annotated[
        str, typer.Argument(metavar="[ACTIVATION]", help="relu, erf, tanh, gelu, ...")
    ] = "tanh",
    activation: Annotated[str | None, typer.Option(help="The same as an option.")] = None,
    weight_var: Annotated[
        float | None,
        typer.Option(help="Of the network drawn; by default three across the critical line."),
    ] = None,
    bias_var: Annotated[float, typer.Option(help="Of the networks drawn.")] = 0.1,
    output: Annotated[
        Path, typer.Option("--out", "--output", "-o", help="A .svg, .png or .pdf file.")
    ] = Path("phase.svg"),
    table: Annotated[
        Path | None, typer.Option(help="Also write the diagram to a .csv, .tsv or .parquet file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw how signals propagate: phases, depth scales, maps and flows of networks in them."""
    with guarded():
        from nngp.terminal import jobs

        jobs.phase(activation or name, weight_var, bias_var, output, table, as_json)


@app.command(epilog="Example: nngp runs runs.db --where activation=relu --sort val_accuracy")
def runs(
    store: Annotated[Path, typer.Argument(help="A store of runs.")] = Path("runs.db"),
    experiment: Annotated[str | None, typer.Option(help="Only runs of this experiment.")] = None,
    status: Annotated[str | None, typer.Option(help="pending, running, done or failed.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="Only runs so configured: name=value.")
    ] = None,
    sort: Annotated[str | None, typer.Option(help="By this column, largest first.")] = None,
    ascending: Annotated[bool, typer.Option("--ascending", help="Smallest first.")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many runs; 20 in a table by default.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="What to show: names, separated by commas.")
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Write to a .csv or .parquet file.")] = None,
    lists: Annotated[
        bool, typer.Option("--lists", help="Also lists in results, such as learning curves.")
    ] = False,
    merge: Annotated[
        Path | None, typer.Option(help="First take over the finished runs of another store.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="First make failed runs pending again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the runs of experiments: how many are done, what they were, what came of them."""
    with guarded():
        from nngp.terminal import runs as job

        asked = job.Question(experiment, status, where or [], sort, ascending, limit, lists)
        job.runs(store, asked, columns or [], export, merge, retry_failed, as_json)


@app.command(epilog="Example: nngp finite --dataset digits --width 64,512 --depth 2 --trials 20")
def finite(
    dataset: DatasetName = "digits",
    width: Widths = "512",
    depth: Annotated[str, typer.Option(help="Hidden layers; several with commas.")] = "2",
    trials: Trials = 20,
    activation: Annotated[str, typer.Option(help="relu, tanh, erf, gelu, ...")] = "relu",
    train: TrainingPoints = None,
    loss: Annotated[str, typer.Option(help="mse or cross_entropy.")] = "mse",
    steps: Steps = None,
    patience: Patience = None,
    seed: SearchSeed = 0,
    lanes: Lanes = None,
    data: DataFolder = None,
    store: StoreFile = Path("runs.db"),
    output: Picture = Path("finite.png"),
    engine: EngineName = "auto",
    as_json: Json = False,
) -> None:
    """Train networks of finite width by random search, beside the infinitely wide one.

    Every trial is kept in the store. Called again, or by another process at the same time, it goes
    on with those that are left.
    """
    with guarded("interrupted; finished trials are in the store, and the next call goes on"):
        from nngp.terminal import finite as job

        wanted = job.Wanted(
            dataset=dataset,
            data=data,
            train=train,
            activations=[activation],
            depths=job.numbers("--depth", depth),
            widths=job.numbers("--width", width),
            trials=trials,
            seed=seed,
            steps=steps,
            patience=patience,
            lanes=lanes,
            store=store,
            picture=output,
            as_json=as_json,
        )
        job.finite(wanted, loss, engine)


@app.command(epilog="Example: nngp gap --dataset digits --width 16,64,256 --trials 20")
def gap(
    dataset: DatasetName = "digits",
    width: Widths = "16,32,64,128,256,512",
    depth: Annotated[int, typer.Option(help="Hidden layers.", min=1)] = 5,
    trials: Trials = 20,
    activation: Annotated[str, typer.Option(help="One or more, with commas.")] = "relu,tanh",
    train: TrainingPoints = None,
    steps: Steps = None,
    patience: Patience = None,
    seed: SearchSeed = 0,
    lanes: Lanes = None,
    data: DataFolder = None,
    store: StoreFile = Path("runs.db"),
    output: Picture = Path("gap.png"),
    as_json: Json = False,
) -> None:
    """Measure the generalisation gap by width: networks that have learned all training labels."""
    with guarded("interrupted; finished trials are in the store, and the next call goes on"):
        from nngp.terminal import finite as job

        wanted = job.Wanted(
            dataset=dataset,
            data=data,
            train=train,
            activations=[name.strip() for name in activation.split(",")],
            depths=[depth],
            widths=job.numbers("--width", width),
            trials=trials,
            seed=seed,
            steps=steps,
            patience=patience,
            lanes=lanes,
            store=store,
            picture=output,
            as_json=as_json,
        )
        job.gap(wanted)


app.command(epilog="Example: nngp reproduce all --dataset digits --budget 20m")(paper.reproduce)
app.command(epilog="Example: nngp report runs.db -o report.html")(paper.report)


@app.command(epilog="Example: nngp datasets --data DIR")
def datasets(
    data: Annotated[
        Path | None, typer.Option(help="A folder with data; by default the one NNGP_DATA names.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the data sets that are known by name, and where each would come from."""
    with guarded():
        from nngp.terminal.data import datasets as listed

        listed(data, as_json)


@app.command(epilog="Example: nngp demo --folder demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Where tables and pictures go.")] = Path("demo"),
) -> None:
    """The whole job on data that come with scikit-learn: fit, predict, evaluate, pictures."""
    with guarded():
        from nngp.terminal.demo import main as run

        run(str(folder))


def _version(wanted: bool) -> None:
    if wanted:
        from nngp import __version__

        print(f"nngp {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
