"""A search computes kernels and the evidence of a noise where the fit will be computed, and gets
the same; the more points there are, the more of them it asks for the noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import nngp
from nngp import images
from nngp.errors import NotPositiveDefiniteError
from nngp.frames.maps import MapFamily
from nngp.posterior.evidence.dense_evidence import DenseEvidence
from nngp.selection import SearchSettings, choice_work, noise
from nngp.selection.cost import noise_subset, noise_work
from nngp.selection.noise import noise_evidence
from nngp.selection.problem import Candidate

NET = nngp.Architecture(3, "relu", 1.6, 0.1)
SHIFTED = nngp.Invariant(NET, images.shifts(1, (5, 5)))


@pytest.mark.parametrize("unit", [True, False])
def test_on_a_device_and_here(monkeypatch, unit):
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    X = np.random.default_rng(0).standard_normal((150, 25))
    X = nngp.normalize(X) if unit else X
    fetched = []
    original = noise._fetched
    monkeypatch.setattr(noise, "_fetched", lambda *a: fetched.append(a) or original(*a))
    device = GpuEngine(jax.devices()[0], tile=64)
    monkeypatch.setattr(noise, "choose_engine", lambda *a: device)
    found, K = noise.kernel_on("gpu", SHIFTED, X), nngp.kernel(SHIFTED, X)
    assert np.abs(found - K).max() < 1e-12 * K.max()
    assert (found == found.T).all()
    assert len(fetched) == 1  # computed on the device, whatever the norms


@pytest.mark.parametrize("network", [NET, SHIFTED])
def test_evidence_by_noise_on_a_device_and_here(network):
    """A whole matrix on a device, SciPy's density, and the exact posterior's evidence."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    rng = np.random.default_rng(1)
    X, Y = nngp.normalize(rng.standard_normal((120, 25))), rng.standard_normal((120, 2))
    noise = rng.uniform(0.05, 0.2, 120)
    K = nngp.kernel(network, X)
    normal = multivariate_normal(np.zeros(120), K + np.diag(noise))
    expected = normal.logpdf(Y.T).sum(), np.vdot(Y, np.linalg.solve(K + np.diag(noise), Y))
    for engine in ("cpu", GpuEngine(jax.devices()[0], tile=64)):
        found = noise_evidence(engine, DenseEvidence(), network, X)(Y, noise)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    posterior = nngp.condition(network, X, Y, noise_var=noise, engine="cpu")
    assert posterior.log_evidence == pytest.approx(expected[0], rel=1e-10)


def test_a_device_says_when_a_matrix_is_not_positive():
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    engine = GpuEngine(jax.devices()[0], tile=64)
    X = nngp.normalize(np.random.default_rng(2).standard_normal((70, 3)))
    evidence, Y = noise_evidence(engine, DenseEvidence(), NET, X), np.ones((70, 1))
    assert np.isfinite(evidence(Y, np.full(70, 0.1))).all()
    with pytest.raises(NotPositiveDefiniteError):
        evidence(Y, np.full(70, -0.1))


def settings(**more):
    relu = Candidate(NET.activation, 3)
    given = {"candidates": [relu], "criterion": "evidence", "size": 2000, "budget": None}
    return SearchSettings(**(given | {"columns": 25, "engine": "cpu"} | more))


NUMBERS_OF_POINTS = [
    (500, 500),
    (5000, 4000),
    (20_000, 5500),
    (40_000, 11_000),
    (10**6, 16_000),
]


def test_the_more_points_the_more_say_how_much_noise_there_is():
    for n, expected in NUMBERS_OF_POINTS:
        assert noise_subset(settings(), (), n) == expected


def test_points_of_the_noise_where_kernels_cost_more():
    """A network that was given takes fewer, and so do averages; but a share of all in any case."""
    given = settings(network=NET)
    assert [noise_subset(given, (), n) for n in (5000, 40_000)] == [2000, 11_000]
    wide = settings(columns=3072)
    families = images.flips((32, 32, 3)), images.shifts(4, (32, 32, 3))
    assert [noise_subset(wide, families, n) for n in (2000, 20_000)] == [1279, 10_000]
    assert noise_subset(wide, families, 40_000) == 16_000
    work = [noise_work(wide, families, n, 8) for n in (2000, 40_000)]
    assert work[0] == pytest.approx(3e12, rel=0.2)  # the kernel of 1,279 points
    assert work[1] > 50 * work[0]


@pytest.mark.parametrize("values", [9, 10])
def test_columns_with_few_values_are_found_among_many_rows(values):
    x = np.zeros(3000)
    x[-values:] = np.arange(values)
    x[: len(x) // 2] = 1.0  # a middle half that is not constant
    assert MapFamily(x, True).can_move == (values >= 10)


def test_work_of_what_is_not_chosen():
    """Noise that was given is not looked for; several networks are looked at one by one."""
    fixed = replace(settings().candidates[0], noise_var=0.1)
    assert choice_work(settings(network=NET, candidates=[fixed]), 60_000) == 0.0
    assert choice_work(settings(network=NET), 60_000) > 1e12
    several = [settings().candidates[0], Candidate(NET.activation, 2)]
    one, two = (choice_work(settings(candidates=several, networks=k), 60_000) for k in (1, 2))
    assert two > 1.8 * one
