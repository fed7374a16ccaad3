"""Whether trees would predict a table better: a check on held-out rows, in about a second.

A network's prior is smooth in all inputs at once. A table of steps, of settings on a grid, or of a
few columns that decide among many may be better served by trees, and then a user should know.

Each row is predicted without it: by the network in closed form, by extremely randomized trees from
those that did not see the row, and where these come near the network, by gradient boosting in five
folds; labels by a random forest instead. Boosting learns from four fifths of the rows, the network
from all but one: the comparison leans to the network, and trees that win here win.
"""

import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nngp import _machine
from nngp._arrays import Array
from nngp._records import Choice, NonNegative, Range
from nngp.errors import TreesWarning

LEAST_ROWS, MOST_ROWS = 50, 1000  # fewer say nothing; more take too long with labels
MOST_AMOUNTS = 4000  # rows; all that a regression predicts without themselves
MOST_INPUTS = 200
TREES, FOLDS = 100, 5
# Boosting is tried if randomized trees come near: ratio of errors, and standard errors behind.
NEAR, BEHIND = 1.1, 2.5
CLEARLY, SMALLER = 2.0, 0.97  # standard errors of a difference, and ratio of errors, of a win
MOST_TRIED = 10  # inputs that a split of boosting looks at, so that wide tables take no longer
FEW_VALUES = 20  # of an input that has steps rather than amounts
MEASURES = {False: "RMSE", True: "error rate"}
METHODS = ("randomized trees", "boosted trees", "random forests")


@dataclass(frozen=True)
class TreeComparison:
    """Errors of a network and of trees on the same rows, each predicted without it.

    Attributes
    ----------
    rows, inputs : int
    few_valued : int
        Inputs with at most 20 different values.
    measure, method : str
        What the errors are, and of which trees: the best that were tried.
    network, trees : float
        Errors in the units of the targets, or shares of wrong labels.
    deviations : float
        By how many standard errors the trees' mean loss is smaller; negative if it is larger.
    """

    rows: Annotated[int, Range(LEAST_ROWS)]
    inputs: Annotated[int, Range(1)]
    few_valued: int
    measure: Annotated[str, Choice(*MEASURES.values())]
    method: Annotated[str, Choice(*METHODS)]
    network: NonNegative
    trees: NonNegative
    deviations: float

    def check_saved(self) -> None:
        """Raise ValueError where more inputs have few values than there are."""
        if self.few_valued > self.inputs:
            raise ValueError(f"{self.few_valued} of {self.inputs} inputs have few values")

    @property
    def trees_win(self) -> bool:
        """Whether trees are better by more than chance and rounding explain."""
        return self.deviations > CLEARLY and self.trees < SMALLER * self.network

    @property
    def sentence(self) -> str:
        """The result in words."""
        figures = (
            f"{self.measure} {self.trees:.3g} against {self.network:.3g} on {self.rows} rows, each "
            "predicted without itself"
        )
        if not self.trees_win:
            return f"{self.method} are no better ({figures})"
        steps = (
            f", where {self.few_valued} of {self.inputs} inputs have at most {FEW_VALUES} values"
        )
        why = steps if 2 * self.few_valued >= self.inputs else ""
        return f"{self.method} predict this table better{why} ({figures})"

    def warn(self, stacklevel: int) -> None:
        """Warn where trees win."""
        if self.trees_win:
            warnings.warn(
                f"{self.sentence}; compare with gradient boosting before you choose this model",
                TreesWarning,
                stacklevel=stacklevel + 1,
            )


def compare_with_trees(
    X: Array, y: NDArray[Any], left_out: NDArray[Any], *, classes: bool
) -> TreeComparison | None:
    """Compare predictions of held-out rows with those of trees.

    Parameters
    ----------
    X : array, (n, d)
        Inputs, encoded and not scaled; finite.
    y : array, (n,)
        Targets in their own units, or labels.
    left_out : array, (n,)
        Prediction of each of these rows from the n - 1 others: the mean, or the label.
    classes : bool
        Whether y holds labels.

    Returns
    -------
    TreeComparison or None
        None where there is nothing to compare: fewer than 50 rows, more than 4,000 (labels: 1,000)
        rows or 200 inputs (pass a subset of rows, with predictions from that subset), or equal
        targets.
    """
    n, d = X.shape
    most = MOST_ROWS if classes else MOST_AMOUNTS
    if not LEAST_ROWS <= n <= most or d > MOST_INPUTS or (y == y[0]).all():
        return None
    ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T]).astype(np.float32)
    few = int((ranks.max(axis=0) < FEW_VALUES).sum())
    judge = _labels if classes else _amounts
    method, network, trees, deviations = judge(ranks, y, left_out)
    return TreeComparison(n, d, few, MEASURES[classes], method, network, trees, deviations)


Verdict = tuple[str, float, float, float]


def _amounts(ranks: NDArray[np.float32], y: Array, left_out: Array) -> Verdict:
    """RMSE of network and trees; in units in which no square overflows."""
    middle = float(np.median(y))
    size = float(np.abs(y - middle).max())
    target = (y - middle) / size
    own = ((left_out - middle) / size - target) ** 2
    from sklearn.ensemble import ExtraTreesRegressor  # slow to import, as are the others below

    forest = ExtraTreesRegressor(
        TREES, bootstrap=True, oob_score=True, n_jobs=_machine.threads(), random_state=0
    )
    method, theirs = METHODS[0], (forest.fit(ranks, target).oob_prediction_ - target) ** 2
    is_near = theirs.mean() < NEAR**2 * own.mean()
    if is_near and -BEHIND < _deviations(own, theirs) < CLEARLY:
        boosted = (_boosted(ranks, target) - target) ** 2
        if boosted.mean() < theirs.mean():
            method, theirs = METHODS[1], boosted
    root = np.sqrt([own.mean(), theirs.mean()]) * size
    return method, float(root[0]), float(root[1]), _deviations(own, theirs)


def _boosted(ranks: NDArray[np.float32], target: Array) -> Array:
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_predict

    boosting = GradientBoostingRegressor(
        n_estimators=300,
        max_depth=4,
        subsample=0.7,
        max_features=min(MOST_TRIED, ranks.shape[1]),
        random_state=0,
    )
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    out: Array = cross_val_predict(boosting, ranks, target, cv=folds)
    return out


def _labels(ranks: NDArray[np.float32], y: NDArray[Any], left_out: NDArray[Any]) -> Verdict:
    """Error rates of network and trees; boosting takes one tree a class, which is too slow."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    kinds = {METHODS[0]: ExtraTreesClassifier, METHODS[2]: RandomForestClassifier}
    wrong = {}
    for method, kind in kinds.items():
        forest = kind(
            TREES, bootstrap=True, oob_score=True, n_jobs=_machine.threads(), random_state=0
        ).fit(ranks, y)
        best = forest.oob_decision_function_.argmax(axis=1)
        wrong[method] = (forest.classes_[best] != y).astype(float)
    method = min(wrong, key=lambda name: float(wrong[name].mean()))
    own, theirs = (left_out != y).astype(float), wrong[method]
    return method, float(own.mean()), float(theirs.mean()), _deviations(own, theirs)


def _deviations(own: Array, theirs: Array) -> float:
    """Mean difference of two losses of the same rows, in its standard errors."""
    difference = own - theirs
    spread = float(difference.std(ddof=1)) / len(difference) ** 0.5
    return float(difference.mean()) / spread if spread > 0 else 0.0
