"""Strips become arrays: every score in its place, holes as NaN; choices are those of a loop."""

import math

import numpy as np
import pytest
from stored_grids import SIZES, put, put_grid, scores

from nngp_paper.grids.arrays import SCORES, read_grids
from nngp_paper.grids.candidates import candidates, shortfalls
from nngp_paper.grids.choice import by_evidence, by_validation
from nngp_paper.scope import Scope

SCOPE = Scope("mnist", (1000, 2000), depths=(1, 3), activations=("relu", "tanh"), grid=4)


def test_every_score_is_in_its_place(store):
    rows = put_grid(store, SCOPE, 1000, "relu", 3)
    grid = read_grids(store, SCOPE).get(1000, "relu", 3)
    for row in rows:
        place = (
            SCOPE.weight_vars.index(row["weight_var"]),
            SCOPE.bias_vars.index(row["bias_var"]),
        )
        assert {score: grid.scores[score][place] for score in SCORES} == {
            score: row[score] for score in SCORES
        }
    assert (grid.train, grid.activation, grid.depth) == (1000, "relu", 3)
    assert (grid.validation, grid.test) == (500, 2000)
    assert (grid.networks, grid.wanted, grid.complete) == (16, 16, True)
    assert (grid.seconds, grid.devices) == (8.0, ("abacus",))
    assert tuple(grid.weight_vars) == SCOPE.weight_vars
    assert tuple(grid.bias_vars) == SCOPE.bias_vars


def strip(weight_var, bias_vars, **more):
    return {
        **{"dataset": "mnist", "train": 1000, **SIZES, "activation": "relu", "depth": 1},
        **{"weight_var": weight_var, "bias_vars": bias_vars, **more},
    }


def test_networks_without_kernel_were_tried_and_have_no_scores(store):
    result = {score: [0.5, None, 0.25] for score in SCORES}
    biases = [SCOPE.bias_vars[3], SCOPE.bias_vars[0], SCOPE.bias_vars[2]]
    put(store, "grid", strip(SCOPE.weight_vars[1], biases), result)
    grid = read_grids(store, SCOPE).get(1000, "relu", 1)
    expected = np.full((4, 4), np.nan)
    expected[1, 3], expected[1, 2] = 0.5, 0.25
    for score in SCORES:
        np.testing.assert_array_equal(grid.scores[score], expected)
    assert grid.tried.nonzero()[1].tolist() == [0, 2, 3]
    assert (grid.networks, grid.wanted, grid.complete) == (3, 16, False)


def test_what_is_not_of_the_scope_is_left_out(store):
    rng = np.random.default_rng(0)
    first = SCOPE.weight_vars[0]
    for more in ({"dataset": "cifar10"}, {"train": 500}, {"activation": "erf"}, {"depth": 2}):
        put(store, "grid", strip(first, [0.0], **more), scores(rng, 1))
    assert read_grids(store, SCOPE).by_name == {}
    result = {score: [0.1, 0.2] for score in SCORES}
    put(store, "grid", strip(first, [0.3, 2.0]), result)  # 0.3 is not on the grid
    put(store, "grid", strip(1.0, [0.0]), scores(rng, 1))  # neither is 1.0
    put(store, "grid", strip(first, [0.3], depth=3), scores(rng, 1))  # so depth 3 has no network
    store.declare("grid", [strip(5.0, [0.0])])  # not done yet
    grids = read_grids(store, SCOPE)
    assert list(grids.by_name) == [(1000, "relu", 1)]
    grid = grids.get(1000, "relu", 1)
    assert np.argwhere(grid.tried).tolist() == [[0, 3]]
    assert grid.seconds == 1.0  # what is not on the grid took its time for others
    assert [grid.scores[score][0, 3] for score in SCORES] == [0.2] * len(SCORES)
    assert grids.get(2000, "relu", 1) is None


def test_of_two_test_sets_the_larger_counts(store):
    for test, accuracy in ((300, 0.1), (2000, 0.2), (400, 0.3)):
        result = {score: [accuracy] for score in SCORES}
        put(store, "grid", strip(SCOPE.weight_vars[0], [0.0], test=test), result)
    grid = read_grids(store, SCOPE).get(1000, "relu", 1)
    assert (grid.scores["test_accuracy"][0, 0], grid.test, grid.seconds) == (0.2, 2000, 1.0)


def test_all_networks_of_a_training_set_are_judged_alike(store):
    """Accuracies on different test sets are not to be compared, whatever the depth."""
    first, result = SCOPE.weight_vars[0], {score: [0.5] for score in SCORES}
    for more in ({"depth": 1, "test": 300}, {"depth": 3}, {"train": 2000, "test": 300}):
        put(store, "grid", strip(first, [0.0], **more), result)
    found = read_grids(store, SCOPE).by_name
    assert {name: grid.test for name, grid in found.items()} == {
        (1000, "relu", 3): 2000,
        (2000, "relu", 1): 300,
    }


def test_choices_are_those_of_a_loop(store):
    rows = [row for depth in (1, 3) for row in put_grid(store, SCOPE, 1000, "tanh", depth)]
    put_grid(store, SCOPE, 2000, "tanh", 3)
    own = read_grids(store, SCOPE).of(1000, "tanh")
    assert [grid.depth for grid in own] == [1, 3]
    ranked = sorted(rows, key=lambda row: (-row["val_accuracy"], row["val_mse"]))
    assert [vars(one) for one in by_validation(own, 32)] == ranked
    assert [vars(one) for one in by_validation(own, 99)] == ranked
    assert vars(by_validation(own)[0]) == ranked[0]
    assert vars(by_evidence(own)) == max(rows, key=lambda row: row["log_evidence"])


def test_nothing_is_chosen_from_nothing(store):
    assert by_validation([]) == []
    assert by_evidence([]) is None
    put(store, "grid", strip(SCOPE.weight_vars[1], [0.0]), {score: [None] for score in SCORES})
    own = read_grids(store, SCOPE).of(1000, "relu")
    assert len(own) == 1
    assert by_validation(own) == []
    assert by_evidence(own) is None


def test_a_missing_kernel_is_never_the_best(store):
    result = {score: [None, 0.5, None] for score in SCORES}
    put(store, "grid", strip(SCOPE.weight_vars[2], list(SCOPE.bias_vars[:3])), result)
    (best,) = by_validation(read_grids(store, SCOPE).of(1000, "relu"), 5)
    assert (best.weight_var, best.bias_var) == (SCOPE.weight_vars[2], SCOPE.bias_vars[1])
    assert best.setting == "1-3.37-0.67"
    assert math.isclose(best.log_evidence, 0.5)


@pytest.mark.parametrize("dataset", ["mnist", "cifar10"])
def test_depths_come_from_the_shallowest(store, dataset):
    scope = Scope(dataset, (1000,), depths=(7, 1, 3), activations=("relu",), grid=2)
    for depth in (7, 3, 1):
        put_grid(store, scope, 1000, "relu", depth)
    assert [grid.depth for grid in read_grids(store, scope).of(1000, "relu")] == [1, 3, 7]


def test_a_coarser_grid_is_complete_without_the_others(store):
    scope = Scope("mnist", (1000,), depths=(1, 3), activations=("relu", "erf"), grid=30)
    coarse = list(scope.bias_vars[::3])
    for weight_var in scope.weight_vars[::3]:
        put(store, "grid", strip(weight_var, coarse, activation="erf"), constant(10))
    grids = read_grids(store, scope)
    grid = grids.get(1000, "erf", 1)
    assert (grid.networks, grid.wanted, grid.complete) == (100, 100, True)
    assert grids.row_wanted(1000, "erf") == 200
    assert grids.row_wanted(1000, "relu") == 1800
    assert not grids.row_complete(1000, "erf")  # depth 3 is missing
    whole = strip(scope.weight_vars[1], list(scope.bias_vars), activation="erf", depth=3)
    put(store, "grid", whole, constant(30))  # a strip that nobody asks for any more
    grid = read_grids(store, scope).get(1000, "erf", 3)
    assert (grid.networks, grid.wanted, grid.complete) == (30, 130, False)


def constant(count):
    return {score: [0.5] * count for score in SCORES}


def test_candidates_are_as_near_as_the_best_have_been(store):
    """The best of 1,000 points has error 0.2, that of 2,000 had 0.22 there: a tenth more."""
    scope = Scope("mnist", (1000, 2000, 20_000), (1,), ("relu",), grid=2)
    validation = {1000: [0.8, 0.78, 0.1, 0.1], 2000: [0.89, 0.9, 0.891, 0.888]}
    for train, accuracies in validation.items():
        for i, weight_var in enumerate(scope.weight_vars):
            own = constant(2) | {"val_accuracy": accuracies[2 * i : 2 * i + 2]}
            put(store, "grid", strip(weight_var, list(scope.bias_vars), train=train), own)
    grids = read_grids(store, scope)
    assert shortfalls(grids, scope.sizes, "relu") == {(1000, 2000): pytest.approx(0.1)}
    found = candidates(grids, 20_000, "relu")
    assert [one.val_accuracy for one in found.networks] == [0.9, 0.891, 0.89]
    assert (found.train, found.pairs) == (2000, 1)
    assert found.bound == pytest.approx(0.1)
    nothing = candidates(grids, 2000, "relu")  # no pair is known below 2,000
    assert (nothing.train, nothing.bound, len(nothing.networks)) == (1000, None, 4)
    assert candidates(grids, 1000, "relu") is None
