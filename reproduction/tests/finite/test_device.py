"""The device: how many lanes fit, and the memory of a search, for one shape and many."""

import pytest
from clouds import three_clouds

pytest.importorskip("jax")
pytest.importorskip("optax")

import nngp
from nngp_paper.finite import device
from nngp_paper.finite.cells import Cell
from nngp_paper.finite.device import search_memory
from nngp_paper.finite.lanes import program_shape
from nngp_paper.finite.recipe import Plan

DATA, PLAN = three_clouds(), Plan(steps=1000)
CELL = Cell("clouds", 60, "tanh", 1, 500)
WEIGHTS = 3 * 500 + 501 * 3
NETWORK = nngp.FiniteNetwork(nngp.Architecture(1, "tanh"), 7, 3)


def test_memory_is_that_of_the_largest_and_of_the_data():
    narrow = Cell("clouds", 60, "tanh", 1, 5)
    one, three = (search_memory([narrow, CELL], DATA, PLAN, 9, lanes) for lanes in (1, 3))
    data = 4 * 180 * 2
    assert three.bytes - data == 3 * (one.bytes - data)
    assert one.bytes - data > 4 * 5 * WEIGHTS  # weights, gradient, two moments, the best
    assert search_memory([CELL], DATA, PLAN, 2, lanes=3).lanes == 2
    assert str(one).startswith("1 at a time, ")


def test_as_many_lanes_as_the_device_holds(monkeypatch):
    shape = program_shape(NETWORK, DATA, Plan(), 60)

    class Gpu:
        platform, device_kind = "gpu", "a large one"

        def memory_stats(self):
            return {"bytes_limit": self.limit}

    gpu = Gpu()
    monkeypatch.setattr(device.jax, "devices", lambda: [gpu])
    for lanes in (1, 5, 64):
        gpu.limit = shape.lane_bytes() * (lanes + 0.5) / device.SHARE
        assert device.lanes_that_fit(shape) == lanes
    gpu.limit = 1
    assert device.lanes_that_fit(shape) == 1
    gpu.limit = 10**15
    assert device.lanes_that_fit(shape) == device.MOST_LANES


def test_large_networks_fill_lanes_again_and_small_ones_do_not(monkeypatch):
    shape = program_shape(NETWORK, DATA, Plan(), 60)
    monkeypatch.setattr(device, "lanes_that_fit", lambda shape: 64)
    assert device.lanes_for(shape, 40) == 40
    assert device.lanes_for(shape, 400) == 64
    monkeypatch.setattr(device, "ENOUGH", 3 * shape.weights)
    assert device.lanes_for(shape, 40) == 10
    assert device.lanes_for(shape, 8) == 3
    assert device.lanes_for(shape, 2) == 2


def test_a_device_without_memory_is_said():
    with (
        pytest.raises(MemoryError, match="7 networks side by side"),
        device.explained_memory_error(7),
    ):
        raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")
    with pytest.raises(RuntimeError, match="something else"), device.explained_memory_error(7):
        raise RuntimeError("something else")
