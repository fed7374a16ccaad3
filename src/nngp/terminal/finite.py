"""`nngp finite` and `nngp gap`: searches over finite networks, and what comes of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from nngp.architecture import as_activation
from nngp.plots import need_matplotlib
from nngp.reproduce.datasets import Split, split
from nngp.reproduce.finite.extra import need_finite
from nngp.reproduce.store import RunStore
from nngp.terminal.listing import show_rows
from nngp.terminal.speech import UsageError, answer, say
from nngp.terminal.tables import check_writable

PICTURES = (".svg", ".png", ".pdf")


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
    from nngp.reproduce.figures.widths import draw_widths
    from nngp.reproduce.finite.infinite import infinite
    from nngp.reproduce.finite.recipe import Plan
    from nngp.reproduce.finite.widths import widths

    (activation,) = wanted.activations
    data = _data(wanted)
    plan = Plan(loss=loss, **_asked(wanted))  # type: ignore[arg-type]
    with RunStore(wanted.store) as store:
        found = _search(store, wanted, data, plan, "finite")
        levels = {
            depth: infinite(store, wanted.dataset, data, activation, depth, engine=engine).result
            for depth in wanted.depths
        }
        picture = widths(store, wanted.dataset, len(data.X), activation, wanted.depths, loss)
    draw_widths(picture, wanted.picture)
    rows = [_row(one, levels[one.cell.depth]) for one in found]
    _tell(wanted, rows, "best of each shape, by validation")


def gap(wanted: Wanted) -> None:
    """Figure 2 for a data set: train until all labels are learned, compare with the test set."""
    _check(wanted)
    from nngp.reproduce.figures.gap import draw_gaps
    from nngp.reproduce.finite.gap import EXPERIMENT, PLAN, gaps

    data = _data(wanted)
    plan = replace(PLAN, **_asked(wanted))
    with RunStore(wanted.store) as store:
        _search(store, wanted, data, plan, EXPERIMENT)
        where = {"dataset": wanted.dataset, "train": len(data.X), "depth": wanted.depths[0]}
        picture = gaps(store.runs(experiment=EXPERIMENT, status="done", where=where))
    if not picture.learned:
        raise UsageError(
            f"none of {picture.left_out} networks learned its training set; take wider ones, more "
            "trials, more steps or fewer training points"
        )
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
    need_finite()
    if wanted.picture.suffix not in PICTURES:
        raise UsageError(f"--out must end in {', '.join(PICTURES)}, got {wanted.picture}")
    check_writable(wanted.picture)
    try:
        for name in wanted.activations:
            as_activation(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _search(
    store: RunStore, wanted: Wanted, data: Split, plan: Any, experiment: str
) -> Sequence[Any]:
    from nngp.reproduce.finite.search import Cell, search

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
    from nngp.reproduce.finite.cost import search_cost
    from nngp.reproduce.finite.training import device_name

    cost = search_cost(cells, data, plan, wanted.trials, wanted.lanes)
    return (
        f"{len(cells)} shape(s) x {wanted.trials} trials on {device_name()}: {cost}; "
        f"finished trials are in {wanted.store}"
    )


def _asked(wanted: Wanted) -> dict[str, Any]:
    """The parts of a plan that were given."""
    given = {"steps": wanted.steps, "patience": wanted.patience}
    return {name: value for name, value in given.items() if value is not None}


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
