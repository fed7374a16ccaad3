"""Goals that the reproduction set itself, judged by what has been measured."""

from collections.abc import Mapping
from dataclasses import dataclass

from nngp.reproduce.published import published
from nngp.reproduce.readings.grids import Grids
from nngp.reproduce.readings.tables import Row, table2
from nngp.reproduce.scope import Scope
from nngp.reproduce.store import RunStore
from nngp.reproduce.study import NothingMeasuredError

DOUBT = "doubt"  # the experiment of uncertainty against error
LOOKUP_WITHIN = 0.3  # points
LOOKUP_DATASETS = ("mnist",)  # which images of CIFAR-10 the authors trained on is not known
MAY_LOSE = {
    "mnist": 0.1
}  # points that a re-tuned network may be worse; elsewhere it must be better
CORRELATION = 0.9
LEAST = 1e-6  # what "above" asks for


@dataclass(frozen=True)
class Goal:
    """What was wanted; "met", "missed", "not measured", or "met so far" by a part of what it is
    about; a sentence with the numbers; and the numbers by what they belong to."""

    name: str
    verdict: str
    sentence: str
    values: Mapping[str, float]


def goals(store: RunStore, scope: Scope, grids: Grids | None = None) -> list[Goal]:
    """Those that apply to the scope's data set. Only what was run is judged, and the sentence says
    how much of the paper's that is."""
    there = [
        row
        for row in published()
        if row.width is None
        and (row.dataset, row.train) in [(scope.dataset, size) for size in scope.sizes]
        and row.activation in scope.activations
    ]
    found = [_doubt_goal(store, scope)]
    if there:
        rows = _rows(store, scope, grids)
        found.insert(0, _retuned_goal(scope, rows, len(there)))
        if scope.dataset in LOOKUP_DATASETS:
            found.insert(0, _lookup_goal(scope, rows, len(there)))
    return found


def _rows(store: RunStore, scope: Scope, grids: Grids | None) -> tuple[Row, ...]:
    try:
        return table2(store, scope, grids).rows
    except NothingMeasuredError:
        return ()


def _lookup_goal(scope: Scope, rows: tuple[Row, ...], of: int) -> Goal:
    name = (
        f"{scope.dataset}: the authors' look-up table at the published settings, within "
        f"{LOOKUP_WITHIN:g} points of every published number"
    )
    values = {_label(row): d for row in rows if (d := row.lookup_difference) is not None}
    merits = {label: LOOKUP_WITHIN - abs(value) for label, value in values.items()}
    return _judge(name, values, merits, "{:+.2f} points", of)


def _retuned_goal(scope: Scope, rows: tuple[Row, ...], of: int) -> Goal:
    lose = MAY_LOSE.get(scope.dataset)
    how = "above" if lose is None else f"at most {lose:g} points below"
    name = f"{scope.dataset}: the exact kernel, chosen by validation, {how} every published number"
    values = {_label(row): d for row in rows if (d := row.difference) is not None}
    least = LEAST if lose is None else -lose
    merits = {label: value - least for label, value in values.items()}
    return _judge(name, values, merits, "{:+.2f} points", of)


def _doubt_goal(store: RunStore, scope: Scope) -> Goal:
    name = f"{scope.dataset}: predicted and realised error correlate above {CORRELATION:g}"
    runs = store.runs(experiment=DOUBT, status="done", where={"dataset": scope.dataset})
    values = {
        f"{run.config['train']} {run.config['activation']}": float(run.result["correlation"])
        for run in runs
        if run.result
        and run.config["train"] in scope.sizes
        and run.config["activation"] in scope.activations
    }
    merits = {label: value - CORRELATION - LEAST for label, value in values.items()}
    return _judge(name, values, merits, "{:.3f}")


def _judge(
    name: str,
    values: Mapping[str, float],
    merits: Mapping[str, float],
    form: str,
    of: int | None = None,
) -> Goal:
    """Met if no merit is negative, and so far if values are missing of as many as there should be;
    the sentence tells the value with the smallest merit."""
    run = f"{len(values)} networks run" if of is None else f"{len(values)} of {of} rows run"
    if not values:
        return Goal(name, "not measured", run, {})
    worst = min(merits, key=lambda label: merits[label])
    met = "met" if of in (None, len(values)) else "met so far"
    verdict = met if merits[worst] >= 0 else "missed"
    sentence = f"{run}; the worst is {form.format(values[worst])} ({worst})"
    return Goal(name, verdict, sentence, dict(values))


def _label(row: Row) -> str:
    return f"{row.train} {row.activation}"
