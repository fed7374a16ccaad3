"""Warnings about data that say less than predictions would make one think: too few or too equal to
learn from, or far from anything that was seen."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nngp._arrays import Array, Index
from nngp._threads import by_rows
from nngp.errors import (
    DuplicateRowsWarning,
    ExtrapolationWarning,
    FewDataWarning,
    LeakageWarning,
    NoSignalWarning,
)

# Widths of a column's training range that a value may lie beyond it. Of 780 random splits of 156
# UCI tables into 90% and 10%, 8 have a row farther out in a standardized column: one of them each.
FAR = 3.0
MANY_DUPLICATES = 0.01  # share of rows
NAMED = 5  # columns named in a warning
# Of the variance that a column leaves unexplained, or of wrong labels: a copy of the target has
# none. Fewer rows than these may be told apart by one column by chance.
UNEXPLAINED, WRONG = 1e-3, 5e-3
LEAK_ROWS, LEAK_ROWS_OF_CLASSES, MOST_LEAK_ROWS, MOST_CLASSES = 50, 200, 2000, 20
FEW_LEVELS = 5  # rows of a value of a column of few values, at least
FARTHEST = 25  # one row in so many may be missed
SIGNAL_ROWS = 40  # fewer say little about whether there is any signal
MAX_FLOAT = float(np.finfo(float).max)


def warn_of_few_data(X: Array, Y: Array, least: int, *, classes: bool, stacklevel: int) -> None:
    """Warn where data leave noise and scale unknown; `least` points are needed to learn them."""
    n = len(X)
    if n == 1:
        reason = "one training point says nothing about them"
    elif n < least:
        reason = f"{n} training points are too few to learn them, which takes {least}"
    elif _all_equal(Y):
        what = "labels are the same" if classes else "targets are equal"
        reason = f"all {what}, so the data say nothing about them"
    elif _all_equal(X):
        reason = "all inputs are equal, so the data say nothing about them"
    else:
        return
    what = "probabilities" if classes else "deviations and intervals"
    warnings.warn(
        f"noise and scale are assumed, and so are {what}: {reason}; add data, or do not rely on "
        "them",
        FewDataWarning,
        stacklevel=stacklevel + 1,
    )


def warn_of_duplicates(count: int, n: int, stacklevel: int) -> None:
    """Warn of rows that repeat others, inputs and targets, if they are more than a few."""
    if count == 0 or count < MANY_DUPLICATES * n:
        return
    warnings.warn(
        f"{count} of {n} rows repeat another row; predictions of such rows, and evidence that "
        "counts them, look better than those of new rows, so remove repeats that are no "
        "observations of their own",
        DuplicateRowsWarning,
        stacklevel=stacklevel + 1,
    )


def warn_of_leakage(
    X: Array,
    Y: Array,
    groups: Index,
    names: Sequence[str] | None,
    stacklevel: int,
    *,
    classes: bool,
) -> None:
    """Warn of a column, one of several, that explains the targets (n, outputs) almost perfectly;
    of classes these are one-hot. Inputs of one column share a number in `groups`."""
    n, columns = len(X), np.unique(groups)
    least = LEAK_ROWS_OF_CLASSES if classes else LEAK_ROWS
    if n < least or len(columns) < 2 or Y.shape[1] > MOST_CLASSES or (Y[0] == Y).all():
        return
    some = np.sort(np.random.default_rng(0).permutation(n)[:MOST_LEAK_ROWS])
    X, Y = X[some], Y[some]
    for column in columns:
        inputs = np.flatnonzero(groups == column)
        x = X[:, inputs[0]] if len(inputs) == 1 else X[:, inputs].argmax(axis=1).astype(float)
        if not _explains(x, Y, classes=classes):
            continue
        name = f"column {inputs[0]}" if names is None else f"column '{names[inputs[0]]}'"
        warnings.warn(
            f"{name} explains the target almost perfectly on its own; if it is not known before "
            "the target is, as a copy or a consequence is not, remove it",
            LeakageWarning,
            stacklevel=stacklevel + 1,
        )
        return


def _explains(x: Array, Y: Array, *, classes: bool) -> bool:
    """Whether every second value of a column, or row of few values, follows from the others."""
    different, place = np.unique(x, return_inverse=True)
    several = FEW_LEVELS * len(different) < len(x)  # rows of each value; else rows may be copies
    known = (np.arange(len(x)) if several else place) % 2 == 0
    values, index = np.unique(x[known], return_inverse=True)
    if len(values) < 2:
        return False
    counts = np.bincount(index)
    means = [np.bincount(index, y[known]) / counts for y in Y.T]
    predicted = np.column_stack([np.interp(x[~known], values, mean) for mean in means])
    if classes:
        wrong = predicted.argmax(axis=1) != Y[~known].argmax(axis=1)
        return bool(wrong.mean() < WRONG)
    spread = Y.std(axis=0)
    used = spread > 0
    with np.errstate(over="ignore", invalid="ignore"):
        missed = np.sort(((predicted - Y[~known])[:, used] / spread[used]) ** 2, axis=0)
    most = missed[: len(missed) - len(missed) // FARTHEST]  # ends are not between neighbours
    return bool((most.mean(axis=0) < UNEXPLAINED).all())


def warn_of_no_signal(gain: Array, order: Array, truth: Array, stacklevel: int) -> None:
    """Warn where held-out rows gain nothing by the inputs.

    `gain` is what each row's loss is smaller than without inputs. Targets with heavy tails have
    losses that one row decides, so the ranks of predictions (`order`) and targets must agree on it.
    """
    n = len(gain)
    if n < SIGNAL_ROWS or not np.isfinite(gain).all():
        return
    error = float(gain.std(ddof=1)) / n**0.5
    if gain.mean() > error or _rank_correlation(order, truth) > 2 / n**0.5:
        return
    warnings.warn(
        f"the inputs say nothing about the target that {n} held-out rows could confirm: they are "
        "predicted no better than without any inputs; add rows or columns, or expect nothing",
        NoSignalWarning,
        stacklevel=stacklevel + 1,
    )


def _rank_correlation(a: Array, b: Array) -> float:
    ranks = [np.unique(one, return_inverse=True)[1].astype(float) for one in (a, b)]
    if any(one.std() == 0 for one in ranks):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


@dataclass(frozen=True)
class TrainingRange:
    """The range of every column in training, and the size of a row, as the kernel sees it."""

    low: Array
    high: Array
    factor: Array  # of each column, as inputs are scaled: what is irrelevant is not far
    size: float  # root mean square of the norms of scaled rows

    @classmethod
    def of(cls, X: Array, center: Array, factor: Array) -> "TrainingRange":
        parts = by_rows(lambda rows: _extent(rows, center, factor), X)
        low, high, squares = zip(*parts, strict=True)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.nan_to_num(np.sqrt(np.sum(squares) / len(X)), nan=MAX_FLOAT, posinf=MAX_FLOAT)
        return cls(np.min(low, axis=0), np.max(high, axis=0), factor, float(size))

    def widened(self, X: Array) -> "TrainingRange":
        """The range of more rows as well."""
        low, high = np.minimum(self.low, X.min(axis=0)), np.maximum(self.high, X.max(axis=0))
        return replace(self, low=low, high=high)

    def widths_beyond(self, X: Array) -> Array:
        """How far each value lies beyond the range, in its widths, (m, d); zero inside it, where it
        is little beside the size of a row, and in columns that were constant."""
        parts = by_rows(self._beyond, X)
        return np.concatenate(parts) if parts else np.zeros(X.shape)

    def _beyond(self, X: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            width = self.high - self.low
            beyond = np.maximum(np.maximum(self.low - X, X - self.high), 0.0)
            matters = (width > 0) & (beyond * self.factor > self.size)
            return np.divide(beyond, width, out=np.zeros_like(beyond), where=matters)

    def warn_if_far(self, X: Array, names: Sequence[str] | None, stacklevel: int) -> None:
        """Warn of rows that lie far outside, with their number and the columns to blame.

        `names` has one for each input; inputs of one column have the same.
        """
        beyond = self.widths_beyond(X)
        far = beyond > FAR
        if not far.any():
            return
        columns = np.flatnonzero(far.any(axis=0))
        worst = columns[np.argsort(-beyond[:, columns].max(axis=0), kind="stable")]
        to_blame = list(dict.fromkeys(str(j) if names is None else f"'{names[j]}'" for j in worst))
        shown = ", ".join(to_blame[:NAMED])
        more = f" and {len(to_blame) - NAMED} more" if len(to_blame) > NAMED else ""
        warnings.warn(
            f"{int(far.any(axis=1).sum())} of {len(X)} row(s) lie far outside the training data, "
            f"in column(s) {shown}{more} (by up to {beyond.max():.2g} times the range seen); "
            "predictions there are guesses, so check these values and their units",
            ExtrapolationWarning,
            stacklevel=stacklevel + 1,
        )


def _extent(X: Array, center: Array, factor: Array) -> tuple[Array, Array, float]:
    """Least and largest value of every column, and the sum of the squares of scaled rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return X.min(axis=0), X.max(axis=0), float(np.square((X - center) * factor).sum())


def _all_equal(rows: Array) -> bool:
    return bool((rows[:2] == rows[0]).all()) and bool((rows == rows[0]).all())
