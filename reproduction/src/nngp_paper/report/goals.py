"""Goals of the reproduction, set beforehand, and the verdicts of the measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.stats import spearmanr

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results
from nngp_paper.parts import table2
from nngp_paper.scope import Scope
from nngp_paper.shared.settings import published_settings
from nngp_paper.shared.tables import Row, accuracy_of
from nngp_paper.shared.uncertainty import UncertaintyCurve, read_all_sizes
from nngp_paper.shared.words import percent

LOOKUP_WITHIN = 0.3  # points
LOOKUP_DATASETS = ("mnist",)  # which images of CIFAR-10 the authors trained on is not known
# Points that a re-tuned network may be worse; on other data sets it must be better.
MAY_LOSE = {"mnist": 0.1}
CORRELATION = 0.9
CLASSES = 10  # of every set of images
LEAST = 1e-6  # the smallest excess that counts as "above"


@dataclass(frozen=True)
class Goal:
    """A goal; its verdict "met", "missed", "not measured", or "met so far" if rows are missing; a
    sentence with the numbers; the numbers by row; and a sentence on the likely reason for each row
    that missed it."""

    name: str
    verdict: str
    sentence: str
    values: Mapping[str, float]
    reasons: tuple[str, ...] = ()


def goals(results: Results, rows: Sequence[Row] | None = None) -> list[Goal]:
    """The goals of the scope's data set. Only what was run is judged, and the sentence says how
    much of the paper's rows that is. `rows` are those of table 2, if it has been read before."""
    scope, published = results.scope, len(published_settings(results.scope))
    found = [_uncertainty_goal(results)]
    if published:
        rows = _rows(results) if rows is None else rows
        found.insert(0, _retuned_goal(scope, rows, published))
        if scope.dataset in LOOKUP_DATASETS:
            found.insert(0, _lookup_goal(scope, rows, published))
    return found


def _rows(results: Results) -> Sequence[Row]:
    try:
        return table2.read(results).rows
    except NothingMeasuredError:
        return ()


def _lookup_goal(scope: Scope, rows: Sequence[Row], of: int) -> Goal:
    name = (
        f"{scope.dataset}: the authors' look-up table at the published settings, within "
        f"{LOOKUP_WITHIN:g} points of every published number"
    )
    values = {_label(row): d for row in rows if (d := row.lookup_difference) is not None}
    merits = {label: LOOKUP_WITHIN - abs(value) for label, value in values.items()}
    return _judge(name, values, merits, "{:+.2f} points", of)


def _retuned_goal(scope: Scope, rows: Sequence[Row], of: int) -> Goal:
    lose = MAY_LOSE.get(scope.dataset)
    how = "above" if lose is None else f"at most {lose:g} points below"
    name = f"{scope.dataset}: the exact kernel, chosen by validation, {how} every published number"
    values = {_label(row): d for row in rows if (d := row.difference) is not None}
    least = LEAST if lose is None else -lose
    merits = {label: value - least for label, value in values.items()}
    goal = _judge(name, values, merits, "{:+.2f} points", of)
    return replace(goal, reasons=tuple(_why(row) for row in rows if merits.get(_label(row), 0) < 0))


def _why(row: Row) -> str:
    """The facts about a row that misses the paper's number."""
    if row.chosen is None or row.paper is None or row.ceiling is None:
        return ""
    ours, wanted = percent(row.chosen.test_accuracy), percent(row.paper.test_accuracy)
    parts = [f"{_label(row)}: {ours}, the paper {wanted}"]
    if row.ceiling < row.paper.test_accuracy:
        parts.append(
            f"none of {row.networks:,} networks has more than {percent(row.ceiling)} on the test "
            "set, so no choice among them reaches it"
        )
    else:
        parts.append(f"the best on the test set has {percent(row.ceiling)}, others were chosen")
    if (table := accuracy_of(row.lookup)) is not None:
        parts.append(f"the authors' table at their setting has {percent(table)} here")
    if row.networks < row.wanted:
        parts.append(f"{row.networks:,} of {row.wanted:,} networks were run")
    return "; ".join(parts)


def _uncertainty_goal(results: Results) -> Goal:
    name = f"{results.scope.dataset}: predicted and realised error correlate above {CORRELATION:g}"
    try:
        curves = read_all_sizes(results).curves
    except NothingMeasuredError:
        curves = ()
    values = {f"{curve.train} {curve.activation}": curve.correlation for curve in curves}
    merits = {label: value - CORRELATION - LEAST for label, value in values.items()}
    goal = _judge(name, values, merits, "{:.3f}")
    low = [curve for curve in curves if curve.correlation <= CORRELATION]
    return replace(goal, reasons=tuple(map(_why_low, low)))


def _why_low(curve: UncertaintyCurve) -> str:
    """Correlation measures a straight line; errors that saturate bend it, but keep their ranks."""
    ranks = float(spearmanr(curve.predicted, curve.realised).statistic)
    low, high = curve.realised.min(), curve.realised.max()
    nothing = (1 - 1 / CLASSES) / CLASSES  # the variance of a target
    return (
        f"{curve.train} {curve.activation}: {curve.correlation:.3f}, of ranks {ranks:.3f}; "
        f"realised errors go from {low:.3f} to {high:.3f}, and predicting nothing has {nothing:.3f}"
    )


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
