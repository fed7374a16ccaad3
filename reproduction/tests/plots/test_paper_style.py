"""Ticks of an accuracy axis."""

import numpy as np

from nngp_paper.plots.style import accuracy_ticks


def test_named_accuracies_are_round_and_apart():
    assert accuracy_ticks(0.012, 0.25) == [0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985]
    named = accuracy_ticks(0.001, 0.9)
    assert (named[0], named[-1]) == (0.1, 0.999)
    logs = -np.log(1 - np.array(named))
    assert np.diff(logs).min() > np.log(900) / 12
