"""A fitted estimator as one self-contained page: scores, predictions and intervals against targets,
calibration, relevance, partial dependence, worst rows, and what was chosen.

Predictions are leave-one-out for the training rows, or those for other rows. The page holds its
style sheet and its charts (`svg`), and loads nothing.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array, Index
from nngp._files import replaced
from nngp._html import facts_table, rows_table
from nngp._progress import Callback, Progress, progress_for
from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.estimators.class_model import some_rows
from nngp.frames import Column, InputTable, TableLike, learn_numbers, table_of
from nngp.plots.svg import COLOURS, STYLE, Chart, bars
from nngp.predictive.calibration import expected_calibration_error, reliability

Model = NNGPRegressor | NNGPClassifier
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
COVERAGE = 0.95
MAX_DRAWN_POINTS = 2000
MAX_COLUMNS = 6  # with a partial dependence each
GRID_VALUES = 17  # of a column of numbers
MAX_CATEGORIES = 8
WORST_ROWS = 10
BACKGROUND_ROWS = (8, 60)  # over which a partial dependence averages
DEPENDENCE_WORK = 2e11  # multiplications, which fewer background rows save with many training rows
MAX_CLASSES_DRAWN = 4
SMALLEST_PROBABILITY = 1e-15  # in a log loss
PAGE_STYLE = (
    STYLE
    + """
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
p { margin: .3rem 0 .8rem; color: var(--quiet); max-width: 46rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: 1rem 0; }
.tile { background: var(--panel); border-radius: 8px; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.35rem; font-weight: 600; } .tile span { color: var(--quiet);
  font-size: .85rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  gap: 1rem; } figure { margin: 0; } figcaption { font-size: .9rem; font-weight: 600; }
svg { width: 100%; height: auto; max-width: 34rem; display: block; } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
.rows th, .rows td { text-align: right; padding: .25rem .7rem; border-bottom: 1px solid var(--line);
  white-space: nowrap; } .rows th { color: var(--quiet); font-weight: 500; }
"""
)


@dataclass(frozen=True)
class Predicted:
    """Predictions of a regressor for rows it did not learn from, and the observed targets."""

    rows: Index  # of the table
    observed: Array
    mean: Array
    lower: Array
    upper: Array
    coverage: Array  # of central intervals with the probabilities LEVELS

    @property
    def surprise(self) -> Array:
        """The error in half-widths of the interval."""
        half = np.maximum((self.upper - self.lower) / 2, np.finfo(float).tiny)
        out: Array = np.abs(self.observed - self.mean) / half
        return out


@dataclass(frozen=True)
class PredictedClasses:
    """Class probabilities for rows that a classifier did not learn from, and the true classes."""

    rows: Index
    labels: NDArray[Any]
    probabilities: Array
    classes: NDArray[Any]

    @property
    def best(self) -> NDArray[Any]:
        return np.asarray(self.classes[self.probabilities.argmax(axis=1)])

    @property
    def of_label(self) -> Array:
        """The probability of each row's true class; 0 of one that training did not have."""
        out: Array = ((self.classes == self.labels[:, None]) * self.probabilities).sum(axis=1)
        return out

    @property
    def accuracy(self) -> float:
        return float((self.best == self.labels).mean())

    @property
    def log_loss(self) -> float:
        return float(-np.log(np.maximum(self.of_label, SMALLEST_PROBABILITY)).mean())

    @property
    def calibration_error(self) -> float:
        """The expected calibration error of the predicted classes."""
        confidence = np.minimum(self.probabilities.max(axis=1), 1.0)
        return expected_calibration_error(confidence, self.best == self.labels)


def fit_report(
    model: Model,
    X: TableLike,
    y: ArrayLike,
    path: str | Path,
    *,
    held_out: bool = False,
    title: str = "Fit report",
    progress: Callback | bool | None = None,
) -> None:
    """Write a page about a fitted estimator: one HTML file that needs no other.

    Parameters
    ----------
    model : NNGPRegressor or NNGPClassifier
        A regressor needs a single output.
    X, y : table or array, array
        The training data, whose rows are predicted leave-one-out; or with `held_out` others.
    path : path
    held_out : bool
        Whether X and y are rows that the model was not fitted to.
    title : str
    progress : callable or bool, optional
        As in `nngp.condition`.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
    >>> nngp.plots.fit_report(model, X, y, "fit.html")
    >>> from pathlib import Path
    >>> Path("fit.html").read_text("utf-8").count("<svg")
    3
    """
    table = table_of(X)
    table = InputTable.of_array(np.asarray(X, dtype=float)) if table is None else table
    how = f"{len(table):,} rows that were not fitted" if held_out else "leave-one-out"
    scores: dict[str, str]
    head: tuple[str, ...]
    rows: list[tuple[object, ...]]
    if isinstance(model, NNGPClassifier):
        classes = predicted_classes(model, X if held_out else None, np.asarray(y))
        sections, scores = (
            _class_sections(model, classes, table),
            _class_scores(model, classes, held_out),
        )
        surprising = np.argsort(classes.of_label, kind="stable")[:WORST_ROWS]
        rows = [
            (classes.rows[k] + 1, classes.labels[k], classes.best[k], float(classes.of_label[k]))
            for k in surprising
        ]
        head = ("row", "class", "predicted", "probability of its class")
        which = classes.rows
    else:
        found = predicted_targets(model, X if held_out else None, np.asarray(y, dtype=float))
        sections, scores = _regression_sections(found, how), _regression_scores(found)
        surprising = np.argsort(-found.surprise, kind="stable")[:WORST_ROWS]
        rows = [
            (found.rows[k] + 1, *(float(v[k]) for v in (found.observed, found.mean)),
             float(found.lower[k]), float(found.upper[k]))
            for k in surprising
        ]  # fmt: skip
        head = ("row", "target", "predicted", "95% from", "95% to")
        which = found.rows
    relevance = column_relevance(model, table)
    sections += _relevance_section(relevance)
    sections += _dependence_section(model, table, list(relevance), progress)
    shown = [name for name in relevance if name in table.names][:4]
    values = [table.column(name).texts for name in shown]
    worst = [
        (*row, *(v[which[k]] for v in values)) for row, k in zip(rows, surprising, strict=True)
    ]
    sections += (
        "<h2>Worst rows</h2><p>The largest errors for the width of their interval, or the least "
        "probable true classes: look here for typing errors and missing columns.</p>"
        + rows_table((*head, *shown), worst)
    )
    sections += "<h2>What was chosen</h2>" + facts_table(model._choices())
    tiles = {"rows fitted": f"{model.report_.n:,}", **scores}
    text = _page(title, f"Scores and charts are of {how} predictions.", tiles, sections)
    with replaced(path) as part:
        part.write_text(text, "utf-8")


def predicted_targets(model: NNGPRegressor, X: TableLike | None, y: Array) -> Predicted:
    """Leave-one-out predictions of the training rows, or those for X."""
    if y.ndim != 1:
        raise ValueError("the report is of a single output; fit a model for each of them")
    if X is None:
        predictive = model.left_out()
        rows = np.arange(len(y))
        if predictive.shape[0] != len(y):
            raise ValueError(
                f"leave-one-out predictions are of {predictive.shape[0]:,} rows and y has "
                f"{len(y):,}; pass held_out=True with rows that were not fitted"
            )
        mean = predictive.mean()[:, 0]
        ends = [predictive.interval(level) for level in LEVELS]
        ends = [(low[:, 0], high[:, 0]) for low, high in ends]
    else:
        rows, mean = np.arange(len(y)), model.predict(X)
        with warnings.catch_warnings():  # the same as those of predict
            warnings.simplefilter("ignore")
            ends = [model.predict_interval(X, level) for level in LEVELS]
    coverage = [float(np.mean((low < y) & (y < high))) for low, high in ends]
    lower, upper = ends[LEVELS.index(COVERAGE)]
    return Predicted(rows, y, mean, lower, upper, np.array(coverage))


def predicted_classes(
    model: NNGPClassifier, X: TableLike | None, labels: NDArray[Any]
) -> PredictedClasses:
    """Leave-one-out probabilities of training rows, or those for X."""
    if X is not None:
        rows = np.arange(len(labels))
        return PredictedClasses(rows, labels, model.predict_proba(X), model.classes_)
    found = getattr(model, "_held_out", None)
    if found is None:
        raise ValueError(
            "leave-one-out probabilities are known right after fit only; pass held_out=True with "
            "rows that were not fitted"
        )
    count = len(found.table)
    rows = np.arange(count) if count == model.report_.n else some_rows(model.report_.n, count)
    truth = model.classes_[found.labels.index]
    return PredictedClasses(rows, truth, found.table, model.classes_)


def column_relevance(model: Model, table: InputTable) -> dict[str, float]:
    """Relevance of each column, largest first; the names alone, all 1, where none was learned."""
    names = list(table.names)
    columns = model.columns_
    origins = list(columns.origins) if columns else names
    relevance = model.relevance_
    if len(origins) != len(relevance) or relevance.min() == relevance.max():
        used = [name for name in names if name in origins] or names
        return dict.fromkeys(used, 1.0)
    out: dict[str, float] = {}
    for name, value in zip(origins, relevance.tolist(), strict=True):
        out[name] = max(out.get(name, 0.0), value)
    return dict(sorted(out.items(), key=lambda pair: -pair[1]))


def partial_dependence(
    model: Model, table: InputTable, name: str, rows: Index
) -> tuple[Array | list[str], Array]:
    """Values of a column, and the mean prediction over `rows` with that value in each of them:
    (values, 1) of a regressor, (values, classes) of a classifier."""
    column = table.column(name)
    amounts = _amounts(column, table.decimal)
    places = _categories(column) if amounts is None else _quantiles(amounts)
    background = table.rows(rows)
    index, count = np.repeat(places, len(rows)), len(places)
    repeated = background.rows(np.tile(np.arange(len(rows)), count))
    columns = tuple(column.rows(index) if one.name == name else one for one in repeated.columns)
    with warnings.catch_warnings():  # made-up rows may lie far from all others
        warnings.simplefilter("ignore")
        inputs = _as_given(model, replace(repeated, columns=columns))
        found = (
            model.predict_proba(inputs)
            if isinstance(model, NNGPClassifier)
            else model.predict(inputs)
        )
    values = column.texts[places].tolist() if amounts is None else amounts[places]
    return values, found.reshape(count, len(rows), -1).mean(axis=1)


def _as_given(model: Model, table: InputTable) -> Any:
    """The table, or an array for a model that was fitted to one."""
    if model.columns_ is not None and model.columns_.named:
        return table
    numbers = np.column_stack([column.numbers() for column in table.columns])
    if not hasattr(model, "feature_names_in_"):
        return numbers
    return table


def _amounts(column: Column, decimal: str | None) -> Array | None:
    """The numbers of a column (NaN where missing), or None if it has categories."""
    if column.missing.all():
        return None
    encoding = learn_numbers(column, decimal)
    if encoding is None:
        return column.numbers() if column.kind == "date" else None
    values = encoding.read(column)
    return values if len(np.unique(values[~np.isnan(values)])) > 2 else None


def _quantiles(amounts: Array) -> Index:
    """Rows whose numbers are quantiles of all."""
    known = np.flatnonzero(~np.isnan(amounts))
    order = known[np.argsort(amounts[known], kind="stable")]
    at = np.linspace(0.02, 0.98, GRID_VALUES) * (len(order) - 1)
    chosen = order[np.unique(at.round().astype(int))]
    _, first = np.unique(amounts[chosen], return_index=True)
    return np.asarray(chosen[first])


def _categories(column: Column) -> Index:
    """Rows with the commonest values of a column."""
    known = np.flatnonzero(~column.missing)
    _, first, counts = np.unique(
        column.texts[known].astype(str), return_index=True, return_counts=True
    )
    common = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
    return np.asarray(known[first[common]])


def _regression_scores(found: Predicted) -> dict[str, str]:
    error = found.observed - found.mean
    spread = float(np.var(found.observed))
    inside = float(found.coverage[LEVELS.index(COVERAGE)])
    return {
        "RMSE": f"{np.sqrt(np.mean(error**2)):.4g}",
        "R²": f"{1 - float(np.mean(error**2)) / spread:.3f}" if spread > 0 else "unknown",
        "inside their 95% interval": f"{inside:.1%}",
    }


def _class_scores(model: NNGPClassifier, found: PredictedClasses, held_out: bool) -> dict[str, str]:
    log_loss = found.log_loss if held_out else model.loss_estimate_
    return {
        "accuracy": f"{found.accuracy:.1%}",
        "log loss": f"{log_loss:.3f}",
        "calibration error": f"{found.calibration_error:.3f}",
    }


def _regression_sections(found: Predicted, how: str) -> str:
    drawn = some_rows(len(found.mean), MAX_DRAWN_POINTS)
    both = np.concatenate([found.observed, found.lower[drawn], found.upper[drawn]])
    low, high = np.quantile(both, [0.002, 0.998])
    low, high = min(low, found.observed.min()), max(high, found.observed.max())
    chart = Chart(found.mean, [low, high], ("predicted", "observed"))
    ends = np.clip(found.lower[drawn], low, high), np.clip(found.upper[drawn], low, high)
    chart.spans(found.mean[drawn], *ends, "blue thin")
    line = [found.mean.min(), found.mean.max()]
    chart.curve(line, line, "quiet dashed")
    titles = [f"row {found.rows[k] + 1}" for k in drawn]
    chart.points(found.mean[drawn], found.observed[drawn], "ink", titles)
    calibration = Chart([0, 1], [0, 1], ("probability of the interval", "share of rows inside"))
    calibration.curve([0, 1], [0, 1], "quiet dashed")
    calibration.curve(LEVELS, found.coverage)
    calibration.points(LEVELS, found.coverage)
    return (
        f"<h2>Predictions and calibration</h2><p>Each dot is a row ({how}); its vertical line is "
        "the 95% interval. On the right, intervals of every probability should hold that share of "
        "the rows: the curve of a calibrated model lies on the dashed line.</p>"
        + _charts({"Observed against predicted": chart.svg(), "Coverage": calibration.svg()})
    )


def _class_sections(model: NNGPClassifier, found: PredictedClasses, table: InputTable) -> str:
    right = found.best == found.labels
    confidence = np.minimum(found.probabilities.max(axis=1), 1.0)
    bins = reliability(confidence, right, bins=10)
    chart = Chart([0, 1], [0, 1], ("confidence", "share of right predictions"))
    chart.curve([0, 1], [0, 1], "quiet dashed")
    chart.curve(bins.confidence, bins.accuracy)
    titles = [f"{count} rows" for count in bins.points]
    chart.points(bins.confidence, bins.accuracy, "blue", titles)
    return (
        "<h2>Calibration and confusion</h2><p>Among predictions made with 80% confidence, 80% "
        "should be right: the curve of a calibrated model lies on the dashed line.</p>"
        + _charts(
            {"Reliability": chart.svg(), "True classes (rows) and predictions": _confusion(found)}
        )
    )


def _confusion(found: PredictedClasses) -> str:
    """Counts of the commonest classes and their predictions."""
    names, counts = np.unique(found.labels, return_counts=True)
    names = names[np.sort(np.argsort(-counts, kind="stable")[:MAX_CATEGORIES])]
    rows = [
        (
            str(name),
            *(int(((found.labels == name) & (found.best == other)).sum()) for other in names),
        )
        for name in names
    ]
    return rows_table(("", *map(str, names)), rows)


def _relevance_section(relevance: Mapping[str, float]) -> str:
    if len(set(relevance.values())) <= 1:
        return ""
    shown = dict(list(relevance.items())[:15])
    return (
        "<h2>Relevance of the columns</h2><p>The prior variance that a column's weights may have, "
        "relative to the largest. A column near zero hardly changes the prediction.</p>"
        + bars(list(shown), list(shown.values()))
    )


def _dependence_section(
    model: Model, table: InputTable, names: list[str], progress: Callback | bool | None
) -> str:
    names = [name for name in names if name in table.names][:MAX_COLUMNS]
    n = model.report_.n
    least, most = BACKGROUND_ROWS
    affordable = DEPENDENCE_WORK / (n**2 * GRID_VALUES * max(len(names), 1))
    rows = some_rows(len(table), int(np.clip(affordable, least, most)))
    charts = {}
    with Progress("partial dependence", len(names), progress_for(progress)) as job:
        for name in names:
            found = partial_dependence(model, table, name, rows)
            charts[name] = _dependence_chart(model, name, *found)
            job.advance(1)
    what = "probability of each class" if isinstance(model, NNGPClassifier) else "prediction"
    return (
        f"<h2>Partial dependence</h2><p>The mean {what} over {len(rows)} rows when one column "
        "takes each value in turn and the others stay as they are.</p>"
        + _legend(model)
        + _charts(charts)
    )


def _dependence_chart(model: Model, name: str, values: Array | list[str], mean: Array) -> str:
    curves = mean.T
    if isinstance(model, NNGPClassifier):
        first = 1 if len(curves) == 2 else 0  # of two classes the second says all
        curves = curves[first : first + MAX_CLASSES_DRAWN]
        label, limits = "probability", [0.0, 1.0]
    else:
        label, limits = "mean prediction", mean.ravel().tolist()
    places = np.arange(float(len(values))) if isinstance(values, list) else values
    short = [text[:9] for text in values] if isinstance(values, list) else None
    chart = Chart(places, limits, (name, label), names=short)
    for colour, curve in zip(COLOURS[:MAX_CLASSES_DRAWN], curves, strict=False):
        if short is None:
            chart.curve(places, curve, f"{colour} curve")
        chart.points(places, curve, colour)
    return chart.svg()


def _legend(model: Model) -> str:
    """The colours of the classes that are drawn."""
    if not isinstance(model, NNGPClassifier):
        return ""
    classes = [str(name) for name in model.classes_]
    drawn = classes[1:] if len(classes) == 2 else classes[:MAX_CLASSES_DRAWN]
    keys = zip(COLOURS, drawn, strict=False)
    text = " ".join(
        f"<b style='color:var(--{colour})'>● {escape(name)}</b>" for colour, name in keys
    )
    return f"<p>{text}</p>"


def _charts(charts: Mapping[str, str]) -> str:
    figures = "".join(
        f"<figure><figcaption>{escape(name)}</figcaption>{chart}</figure>"
        for name, chart in charts.items()
    )
    return f"<div class='charts'>{figures}</div>"


def _page(title: str, lead: str, tiles: Mapping[str, str], sections: str) -> str:
    blocks = "".join(
        f"<div class='tile'><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value in tiles.items()
    )
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(lead)}</p><div class='tiles'>{blocks}</div>{sections}"
        "</body></html>\n"
    )
