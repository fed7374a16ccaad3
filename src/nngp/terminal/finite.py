"""`nngp finite` and `nngp gap`: searches over finite networks, and what comes of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from nngp.architecture import as_activation
from nngp.datasets import Split, split
from nngp.finite.requirements import need_packages
from nngp.linsolve import choose_engine
from nngp.plots import need_matplotlib
from nngp.runs import RunStore
from nngp.terminal.listing import show_rows
from nngp.terminal.speech import UsageError, answer, say
from nngp.terminal.tables import PICTURES, check_writable


@dataclass(frozen=True)
class Wanted:
    """The options that both commands have."""

    dataset: str
    data: Path | None
    train: int | None
    activations: list[str]
    depths: list[int]
    widths: list[int]
    trials: int
    seed: int
    steps: int | None
    patience: int | None
    lanes: int | None
    store: Path
    picture: Path
    as_json: bool


def finite(wanted: Wanted, loss: str, engine: str) -> None:
    """Random search over widths and depths, the infinite networks, a picture of both."""
    _check(wanted)
    _check_engine(engine)
    from nngp.finite.recipe import Plan
    from nngp.finite.width_comparison import infinite, widths
    from nngp.plots.widths_figure import draw_widths

    (activation,) = wanted.activations
    plan = _planned(wanted, Plan(), loss=loss)
    data = _data(wanted)
    with RunStore(wanted.store) as store:
        found = _search(store, wanted, data, plan, "finite")
        levels = {
            depth: infinite(store, data, activation, depth, engine=engine).result
            for depth in wanted.depths
        }
        picture = widths(store, wanted.dataset, len(data.X), activation, wanted.depths, plan)
    draw_widths(picture, wanted.picture)
    rows = [_row(one, levels[one.cell.depth]) for one in found]
    _tell(wanted, rows, "best of each shape, by validation")


def gap(wanted: Wanted) -> None:
    """Figure 2 for a data set: train until all labels are learned, compare with the test set."""
    _check(wanted)
    from nngp.finite.gap import EXPERIMENT, PLAN, gaps
    from nngp.plots.gap_figure import draw_gaps

    plan = _planned(wanted, PLAN)
    data = _data(wanted)
    with RunStore(wanted.store) as store:
        _search(store, wanted, data, plan, EXPERIMENT)
        shared = {"dataset": wanted.dataset, "train": len(data.X), "depth": wanted.depths[0]}
        where = {**shared, **plan.as_dict()}
        runs = store.runs(experiment=EXPERIMENT, status="done", where=where, lists=False)
    picture = gaps([run for run in runs if run.config["activation"] in wanted.activations])
    draw_gaps(picture, wanted.picture)
    rows = [
        {
            "activation": activation,
            "width": width,
            "networks": len(found),
            "smallest gap": min(found),
            "largest gap": max(found),
        }
        for (activation, width), found in picture.by_width().items()
        if width in wanted.widths
    ]
    _tell(wanted, rows, f"{len(picture.learned)} networks learned it, {picture.left_out} did not")


def numbers(option: str, text: str) -> list[int]:
    """Whole numbers, with commas between them."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be whole numbers such as 64,512, got '{text}'") from None
    if min(values) < 1:
        raise UsageError(f"{option} must be at least 1, got {min(values)}")
    return list(dict.fromkeys(values))


def _check(wanted: Wanted) -> None:
    """What cannot be, before any work."""
    need_matplotlib()
    need_packages()
    check_writable(wanted.picture, PICTURES)
    try:
        for name in wanted.activations:
            as_activation(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _search(
    store: RunStore, wanted: Wanted, data: Split, plan: Any, experiment: str
) -> Sequence[Any]:
    from nngp.finite.random_search import Cell, search

    shapes = product(wanted.activations, wanted.depths, wanted.widths)
    cells = [Cell(wanted.dataset, len(data.X), *shape) for shape in shapes]
    say(_forecast(wanted, data, plan, cells))
    return search(
        store,
        cells,
        data,
        plan,
        wanted.trials,
        wanted.seed,
        experiment=experiment,
        lanes=wanted.lanes,
        progress=sys.stderr.isatty(),
    )


def _data(wanted: Wanted) -> Split:
    return split(wanted.dataset, wanted.train, data=wanted.data, progress=sys.stderr.isatty())


def _forecast(wanted: Wanted, data: Split, plan: Any, cells: Sequence[Any]) -> str:
    from nngp.finite.device import device_name, search_cost

    cost = search_cost(cells, data, plan, wanted.trials, wanted.lanes)
    return (
        f"{len(cells)} shape(s) x {wanted.trials} trials on {device_name()}: {cost}; "
        f"finished trials are in {wanted.store}"
    )


def _planned(wanted: Wanted, usual: Any, **changes: Any) -> Any:
    """The usual plan with what was asked for; it looks at networks a whole number of times."""
    steps = wanted.steps or usual.steps
    interval = min(usual.interval, steps)
    rounded = -(-steps // interval) * interval
    if rounded != steps:
        say(f"networks are looked at every {interval} steps, so there are {rounded} at most")
    changes |= {"steps": rounded, "interval": interval}
    try:
        return replace(usual, patience=wanted.patience or usual.patience, **changes)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _check_engine(engine: str) -> None:
    try:
        choose_engine(engine, 0)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _row(found: Any, level: dict[str, Any] | None) -> dict[str, Any]:
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


def _tell(wanted: Wanted, rows: list[dict[str, Any]], title: str) -> None:
    if wanted.as_json:
        answer("", {"picture": str(wanted.picture), "store": str(wanted.store), "rows": rows}, True)
        return
    show_rows(f"{wanted.dataset}: {title}", rows, list(rows[0]) if rows else [], len(rows))
    say(f"picture: {wanted.picture}; all trials: nngp runs {wanted.store}")
