"""Choice of the maps of columns: ascents of all powers at once, then columns one by one; and
relevances to begin with, as trees find them.

Where few of many inputs matter, and matter together, an ascent that begins with all alike may end
where none is told from the others. Trees look at inputs one by one and find them; the evidence then
decides between the two starts.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nngp import _machine
from nngp._arrays import Array, Index
from nngp.selection.inputs import SearchInputs
from nngp.selection.problem import YEO_JOHNSON, HyperparameterPoint

GAIN = 2.0  # of the log evidence, that a column's map must bring
COLUMNS = 40  # columns tried one by one, the most relevant first
# The log evidence with the prior; -inf where it has none.
Score = Callable[[HyperparameterPoint], float]


def can_map(inputs: SearchInputs) -> bool:
    """Whether any column may get a map other than its default."""
    return any(family.can_move for family in inputs.families)


def power_starts(inputs: SearchInputs, at: HyperparameterPoint) -> list[HyperparameterPoint]:
    """Where ascents of the powers begin: at the identity, and where columns look most normal."""
    families, kinds = inputs.families, list(at.kinds or inputs.default_kinds)
    learnable = [j for j, family in enumerate(families) if family.learnable]
    if not learnable:
        return []
    for j in learnable:
        kinds[j] = YEO_JOHNSON
    ones = np.ones(len(families))
    likeliest = ones.copy()
    likeliest[learnable] = [families[j].likeliest for j in learnable]
    return [replace(at, kinds=tuple(kinds), powers=powers) for powers in (ones, likeliest)]


def screened(
    inputs: SearchInputs, at: HyperparameterPoint, score: Score, budget: Callable[[], bool]
) -> HyperparameterPoint:
    """Try fixed maps column by column, and keep each that brings enough."""
    best, value = at, score(at)
    for j in _by_relevance(inputs, at):
        now = best.kinds[j] if best.kinds else inputs.default_kinds[j]
        for kind in inputs.families[j].kinds:
            if kind == now or not budget():
                continue
            tried = _with_kind(inputs, best, j, kind)
            found = score(tried)
            # The default needs no reason to stay, others do.
            needed = -0.5 if kind == inputs.default_kinds[j] else GAIN
            if found > value + needed:
                best, value = tried, found
    return best


def _by_relevance(inputs: SearchInputs, at: HyperparameterPoint) -> list[int]:
    """Columns that can move, the most relevant first."""
    relevance = np.ones(len(inputs.families)) if at.relevance is None else at.relevance
    order = [int(j) for j in np.argsort(-relevance, kind="stable")]
    return [j for j in order if inputs.families[j].can_move][:COLUMNS]


def _with_kind(
    inputs: SearchInputs, at: HyperparameterPoint, j: int, kind: str
) -> HyperparameterPoint:
    kinds = list(at.kinds or inputs.default_kinds)
    kinds[j] = kind
    powers = at.powers if len(at.powers) else np.ones(len(kinds))
    return replace(at, kinds=tuple(kinds), powers=powers)


MANY = 12  # relevances, from which this start is tried
TREES, LEAF = 100, 3
MIN_RELEVANCE = 1e-3  # relevance of what trees do not use, over the largest


def relevances_of_trees(X: Array, Y: Array, groups: Index, weights: Array | None) -> Array:
    """Relevances (d,), one on average: squares of the trees' importances, so that the many small
    ones of inputs that do not matter do not add up."""
    from sklearn.ensemble import ExtraTreesRegressor  # slow to import, and used here only

    ranks = np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T])
    forest = ExtraTreesRegressor(
        TREES, min_samples_leaf=LEAF, n_jobs=_machine.threads(), random_state=0
    )
    target = Y[:, 0] if Y.shape[1] == 1 else Y
    forest.fit(ranks.astype(np.float32), target, sample_weight=weights)
    found = np.bincount(groups, forest.feature_importances_)[groups]
    if not found.max() > 0:
        return np.ones(X.shape[1])
    relevance = np.maximum((found / found.max()) ** 2, MIN_RELEVANCE)
    out: Array = relevance / relevance.mean()
    return out
