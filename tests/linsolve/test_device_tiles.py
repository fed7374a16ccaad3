"""Sizes of tiles and of blocks of test points on a device."""

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")

from nngp.linsolve.engines import gpu  # noqa: E402


def engine(tile=None):
    return gpu.GpuEngine(jax.devices()[0], tile=tile)


def test_tiles_hardly_need_filling():
    """A factor of 20,000 points or more has 3% more rows at most; a small one is a single tile."""
    for n in (1, 64, 65, 1000, 1537, 2048, 2049, 5000, 50_000, 60_000, 180_000):
        size = engine().tile_size(n)
        filled = engine().filled(n)
        assert filled >= n
        assert filled % size == 0
        assert filled <= (1.03 * n if n >= 20_000 else max(64, 2 * n))
        assert size in (*gpu.SMALL_TILES, *gpu.TILES)
        assert n > gpu.SMALL_TILES[-1] or filled == size


def test_larger_tiles_where_both_fit():
    assert engine().tile_size(3584 * 2048) == 3584


def test_few_points_are_one_block():
    for m, rows, height in ((3, 64, 64), (512, 512, 512), (600, 1024, 1024)):
        assert engine().test_blocks(m, 50_000)[:2] == (rows, height)


def test_many_points_are_cut_into_equal_blocks():
    filled, height, at_once = engine().test_blocks(10_000, 50_000)
    assert (filled, height) == (10_240, 2560)
    assert at_once >= 3


def test_new_rows_come_in_the_tiles_that_are_there(monkeypatch):
    """Other sizes would be other programs."""
    monkeypatch.setattr(gpu, "SMALL_TILES", (8,))
    monkeypatch.setattr(gpu, "TILES", range(16, 41, 8))
    rng = np.random.default_rng(3)
    X, y = nngp.normalize(rng.standard_normal((200, 5))), rng.standard_normal(200)
    one, net = engine(), nngp.Architecture(2, "tanh")
    sizes = {one.tile_size(n) for n in (90, 130, 200)}
    assert len(sizes) > 1  # or nothing is tested
    posterior = nngp.condition(net, X[:90], y[:90], noise_var=0.1, engine=one)
    first = posterior.solution.factor.edges[1]
    posterior.update(X[90:130], y[90:130]).update(X[130:], y[130:])
    assert set(np.diff(posterior.solution.factor.edges)) == {first}
    whole = nngp.condition(net, X, y, noise_var=0.1, engine="cpu")
    assert posterior.log_evidence == pytest.approx(whole.log_evidence, rel=1e-10)
