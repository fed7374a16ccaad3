"""`nngp-paper finite` and `gap`: random searches over finite networks, and their results."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from nngp import Architecture, forecast
from nngp_paper.datasets import Split, split
from nngp_paper.finite.cells import Cell, Found
from nngp_paper.finite.gap import EXPERIMENT, PLAN, gaps
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.requirements import need_packages
from nngp_paper.finite.width_comparison import infinite, widths
from nngp_paper.plots.finite_networks import draw_gaps, draw_widths
from nngp_paper.runs import RunStore
from nngp_paper.terminal.files import picture_file
from nngp_paper.terminal.options import FiniteOptions, GapOptions, SearchOptions
from nngp_paper.terminal.output import (
    on_terminal,
    print_message,
    print_result,
    print_rows,
    usage_errors,
)
from nngp_paper.terminal.parsing import whole_numbers

Options = FiniteOptions | GapOptions
Row = dict[str, object]


def finite(options: FiniteOptions) -> None:
    """Search over widths and depths, compute the infinite networks, draw a figure of both."""
    depths = whole_numbers("--depth", options.depth)
    units = whole_numbers("--width", options.width)
    picture = _check(options, [options.activation])
    with usage_errors():
        forecast(1, 1, engine=options.engine)  # raises an error for one that is not there
    plan = _plan(options, Plan(), options.loss)
    data = _data(options)
    shapes = product([options.activation], depths, units)
    cells = [Cell(options.dataset, len(data.X), *shape) for shape in shapes]
    with RunStore(options.store) as store:
        found = _search(store, options, cells, data, plan, "finite")
        levels = {
            depth: infinite(store, data, options.activation, depth, engine=options.engine).result
            for depth in depths
        }
        figure = widths(store, options.dataset, len(data.X), options.activation, depths, plan)
    if picture is not None:
        draw_widths(figure, picture)
    rows = [_best_row(one, levels[one.cell.depth]) for one in found]
    _print(options, rows, "best of each shape, by validation", picture)


def gap(options: GapOptions) -> None:
    """Figure 2 for a data set: train until all labels are learned, compare with the test set."""
    units = whole_numbers("--width", options.width)
    activations = [name.strip() for name in options.activation.split(",")]
    picture = _check(options, activations)
    plan = _plan(options, PLAN, PLAN.loss)
    data = _data(options)
    shapes = product(activations, [options.depth], units)
    cells = [Cell(options.dataset, len(data.X), *shape) for shape in shapes]
    with RunStore(options.store) as store:
        _search(store, options, cells, data, plan, EXPERIMENT)
        where = {"dataset": options.dataset, "train": len(data.X), "depth": options.depth}
        runs = store.runs(experiment=EXPERIMENT, status="done", where=where)
    own = [run for run in runs if Plan.of(run.config) == plan]
    figure = gaps([run for run in own if run.config["activation"] in activations])
    if picture is not None:
        draw_gaps(figure, picture)
    rows: list[Row] = [
        {
            "activation": activation,
            "width": width,
            "networks": len(found),
            "smallest gap": min(found),
            "largest gap": max(found),
        }
        for (activation, width), found in figure.by_width().items()
        if width in units
    ]
    title = f"{len(figure.learned)} networks learned it, {figure.left_out} did not"
    _print(options, rows, title, picture)


def _check(options: Options, activations: Sequence[str]) -> Path | None:
    """Raise an error for what cannot be used, before any work; gives the picture's file."""
    need_packages()
    with usage_errors():
        for name in activations:
            Architecture(1, name)
    what = "finite" if isinstance(options, FiniteOptions) else "gap"
    name = "-".join([what, options.dataset, *activations]) + ".png"
    return picture_file(options.output, name, options.as_json)


def _plan(options: SearchOptions, usual: Plan, loss: str) -> Plan:
    """The usual plan with the options' values; steps are a whole number of intervals."""
    steps = options.steps or usual.steps
    interval = min(usual.interval, steps)
    rounded = -(-steps // interval) * interval
    if rounded != steps:
        print_message(
            f"networks are looked at every {interval} steps, so there are {rounded} at most"
        )
    with usage_errors():
        changed: Any = {
            "loss": loss,
            "steps": rounded,
            "interval": interval,
            "optimiser": options.optimiser,
        }
        return replace(usual, patience=options.patience or usual.patience, **changed)


def _data(options: Options) -> Split:
    return split(options.dataset, options.train, data=options.data, progress=on_terminal())


def _search(
    store: RunStore,
    options: Options,
    cells: Sequence[Cell],
    data: Split,
    plan: Plan,
    experiment: str,
) -> Sequence[Found]:
    """Print the memory that it takes, then search."""
    from nngp_paper.finite.device import device_name, search_memory
    from nngp_paper.finite.random_search import search

    trials, lanes = options.trials, options.lanes
    memory = search_memory(cells, data, plan, trials, lanes)
    print_message(
        f"{len(cells)} shape(s) x {trials} trials on {device_name()}: {memory}; "
        f"finished trials are in {options.store}"
    )
    return search(
        *(store, cells, data, plan, trials, options.seed),
        experiment=experiment,
        lanes=lanes,
        progress=on_terminal(),
    )


def _best_row(found: Found, level: dict[str, float] | None) -> Row:
    cell, result, config = found.cell, found.result, found.best.config
    return {
        "depth": cell.depth,
        "width": cell.width,
        "trials": found.trials,
        "validation": result["val_accuracy"],
        "test": result["test_accuracy"],
        "infinite width": (level or {}).get("test_accuracy"),
        "learning_rate": config["learning_rate"],
        "weight_var": config["weight_var"],
        "bias_var": config["bias_var"],
    }


def _print(options: Options, rows: list[Row], title: str, picture: Path | None) -> None:
    if options.as_json:
        files = {"picture": picture and str(picture), "store": str(options.store)}
        print_result("", {**files, "rows": rows}, as_json=True)
        return
    names = list(rows[0]) if rows else []
    print_rows(f"{options.dataset}: {title}", rows, names, len(rows))
    print_message(f"picture: {picture}; all trials: nngp-paper runs {options.store}")
