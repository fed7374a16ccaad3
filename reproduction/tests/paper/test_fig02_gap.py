"""Figure 2: the generalisation gap of the largest training set that networks learned."""

import pytest
from stored_grids import SIZES, put

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results
from nngp_paper.parts import fig02_gap
from nngp_paper.scope import Scope

SCOPE = Scope("mnist", (100, 1000, 2000))


def learned(store, train, width, accuracy, **more):
    config = {
        **{"dataset": "mnist", "train": train, **SIZES, "activation": "relu", "depth": 5},
        **{"width": width, "loss": "cross_entropy", "steps": 6000, "interval": 300},
        **{"patience": 6, "monitor": "train", **more},
    }
    put(store, "gap", config, {"train_accuracy": accuracy, "test_accuracy": 0.75})


def test_the_gap_of_the_set_that_most_networks_learned(store):
    with pytest.raises(NothingMeasuredError, match="there are none; run nngp-paper gap"):
        fig02_gap.read(Results(store, SCOPE))
    learned(store, 2000, 8, 0.99)
    with pytest.raises(NothingMeasuredError, match="none of 1 networks learned"):
        fig02_gap.read(Results(store, SCOPE))
    learned(store, 100, 8, 1.0)
    learned(store, 1000, 8, 1.0)
    learned(store, 1000, 16, 1.0)
    learned(store, 1000, 32, 1.0, depth=3)
    learned(store, 1000, 64, 0.5, steps=300, trial=0)  # given up
    learned(store, 1000, 32, 0.5, steps=300, trial=0)  # trained to its end later
    learned(store, 1000, 32, 1.0, trial=0)
    learned(store, 1000, 128, 1.0, optimiser="sgd")
    learned(store, 1000, 256, 0.9, optimiser="sgd")
    learned(store, 10_000, 8, 1.0)  # not of the scope
    learned(store, 2000, 32, 1.0)
    data = fig02_gap.read(Results(store, SCOPE))
    assert (data.train, data.depth, data.left_out) == (1000, 5, 2)
    assert sorted((one.width, one.gap, one.optimiser) for one in data.learned) == [
        (8, 0.25, "adam"),
        (16, 0.25, "adam"),
        (32, 0.25, "adam"),
        (128, 0.25, "sgd"),
    ]
    assert data.tried == {"adam": 4, "sgd": 2}
    assert "4 of 6 networks learned all labels of 1,000 training points" in fig02_gap.finding(data)
    assert "(3 of 4 by Adam, 1 of 2 by plain gradient descent)" in fig02_gap.finding(data)
