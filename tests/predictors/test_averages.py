"""A search computes kernels of averages where the fit will be computed, and gets the same."""

import numpy as np
import pytest

import nngp
from nngp import images
from nngp._machine import _blas, blas_threads
from nngp.predictors.maps.family import MapFamily
from nngp.predictors.selection import averages

NET = nngp.Architecture(3, "relu", 1.6, 0.1)
SHIFTED = nngp.Invariant(NET, images.shifts(1, (5, 5)))


@pytest.mark.parametrize("unit", [True, False])
def test_on_a_device_and_here(monkeypatch, unit):
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.choose import EngineChoice
    from nngp.linsolve.engines.gpu import GpuEngine

    X = np.random.default_rng(0).standard_normal((150, 25))
    X = nngp.normalize(X) if unit else X
    fetched = []
    original = averages._fetched
    monkeypatch.setattr(averages, "_fetched", lambda *a: fetched.append(a) or original(*a))
    device = GpuEngine(jax.devices()[0], tile=64)
    monkeypatch.setattr(averages, "pick_engine", lambda *a: EngineChoice(device, "for a test"))
    found, K = averages.kernel_on("gpu", SHIFTED, X), nngp.kernel(SHIFTED, X)
    assert np.abs(found - K).max() < 1e-12 * K.max()
    assert (found == found.T).all()
    assert len(fetched) == unit  # a device has no average over inputs of unequal norms
    averages.kernel_on("gpu", NET, X)
    assert len(fetched) == unit  # one product is not worth it


def test_threads_of_blas_are_limited_for_a_while():
    def now():
        return {one["num_threads"] for one in _blas().select(user_api="blas").info()}

    before = now()
    with blas_threads(0):
        assert now() == {1}
    with blas_threads(1000):
        assert now() == before
    assert now() == before


@pytest.mark.parametrize("values", [9, 10])
def test_columns_with_few_values_are_found_among_many_rows(values):
    x = np.zeros(3000)
    x[-values:] = np.arange(values)
    x[: len(x) // 2] = 1.0  # a middle half that is not constant
    assert MapFamily(x, True).can_move == (values >= 10)
