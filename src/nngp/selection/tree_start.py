"""Relevances to begin with, as trees find them.

Where few of many inputs matter, and matter together, an ascent that begins with all alike may end
where none is told from the others. Trees look at inputs one by one and find them; the evidence then
decides between the two starts.
"""

import numpy as np

from nngp import _machine
from nngp._arrays import Array, Index

MANY = 12  # relevances, from which this start is tried
TREES, LEAF = 100, 3
LEAST = 1e-3  # relevance of what trees do not use, over the largest


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
    relevance = np.maximum((found / found.max()) ** 2, LEAST)
    out: Array = relevance / relevance.mean()
    return out
