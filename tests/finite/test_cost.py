"""What a search will take: by counting, for one shape and for many."""

import pytest
from clouds import three_clouds

pytest.importorskip("jax")
pytest.importorskip("optax")

from nngp.finite import cost
from nngp.finite.cost import search_cost
from nngp.finite.random_search import Cell
from nngp.finite.recipe import Plan

DATA, PLAN = three_clouds(), Plan(steps=1000)
CELL = Cell("clouds", 60, "tanh", 1, 500)
WEIGHTS = 3 * 500 + 501 * 3


def beside_compiling(cells, trials, plan=PLAN, programs=5):
    found = search_cost(cells, DATA, plan, trials, lanes=1)
    return found.seconds - programs * len(cells) * cost.COMPILE


def test_time_is_that_of_steps_and_looks(monkeypatch):
    monkeypatch.setattr(cost.CpuEngine, "rate", lambda self: 5e9)
    mean_batch = (16 + 32 + 64 + 128 + 256) / 5
    products = (1000 * 6 * mean_batch + 10 * 2 * 60) * WEIGHTS / 1e10
    moved = 1000 * 40 * WEIGHTS / 1e10
    assert beside_compiling([CELL], 1) == pytest.approx(products + moved)
    assert beside_compiling([CELL], 7) == pytest.approx(7 * (products + moved))
    assert beside_compiling([CELL, CELL], 7) == pytest.approx(14 * (products + moved))


def test_memory_is_that_of_the_largest_and_of_the_data():
    narrow = Cell("clouds", 60, "tanh", 1, 5)
    one, three = (search_cost([narrow, CELL], DATA, PLAN, 9, lanes) for lanes in (1, 3))
    data = 4 * 180 * 2
    assert three.bytes - data == 3 * (one.bytes - data)
    assert one.bytes - data > 4 * 5 * WEIGHTS  # weights, gradient, two moments, the best
    assert search_cost([CELL], DATA, PLAN, 2, lanes=3).lanes == 2
    assert str(one).startswith("1 at a time, ")
