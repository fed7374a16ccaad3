"""Labels that keep their distance."""

import numpy as np
import pytest

from nngp.plots import style


def test_labels_are_spread_no_further_than_needed():
    """Against the best of many random places that keep their distance."""
    values, apart = [0.0, 0.1, 5.0, 0.15, 5.05], 1.0
    found = style.spread_apart(values, apart)
    order = np.argsort(values)
    assert np.diff(np.array(found)[order]).min() >= apart - 1e-12
    assert np.array(found)[order].tolist() == pytest.approx(
        [-11 / 12, 1 / 12, 13 / 12, 4.525, 5.525]
    )
    rng = np.random.default_rng(0)
    tried = np.sort(np.array(found)[order] + rng.normal(0, 0.3, (20_000, 5)), axis=1)
    allowed = tried[np.diff(tried, axis=1).min(axis=1) >= apart]
    moves = ((allowed - np.array(values)[order]) ** 2).sum(axis=1)
    assert moves.min() >= ((np.array(found) - values) ** 2).sum()
    assert style.spread_apart([3.0, 1.0], apart) == [3.0, 1.0]
    assert style.spread_apart([], apart) == []
