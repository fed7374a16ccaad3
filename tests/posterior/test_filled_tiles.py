"""On a device the last tile is filled up with rows of the identity. No result knows of it, and few
programs serve every number of points."""

import subprocess
import sys

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")

from nngp.gram.device import arrays as programs  # noqa: E402
from nngp.linsolve.engines.gpu import GpuEngine, _compiled  # noqa: E402

RNG = np.random.default_rng(5)
N, D, TILE = 150, 3, 64
EQUAL = nngp.Architecture(3, "tanh", 1.5, 0.2)
UNEQUAL = nngp.Architecture(2, "relu", 1.5, 0.2)
Y = RNG.standard_normal((N, 2)) + 1.0
NOISE = {"one": 0.05, "by row": RNG.uniform(0.02, 0.1, N)}


def engine():
    return GpuEngine(jax.devices()[0], tile=TILE)


def inputs(net, n=N):
    X = np.random.default_rng(n).standard_normal((n, D))
    return nngp.normalize(X) if net is EQUAL else X


def everything(net, noise, engine, n=N):
    """All that a posterior can say, as one array."""
    X = inputs(net, n)
    noise_var = NOISE[noise]
    posterior = nngp.condition(net, X, Y, noise_var=noise_var, engine=engine)
    others = inputs(net, 40)
    density, by_name = posterior.leave_one_out_density(per_layer=True)
    found = [
        *posterior.predict(others),
        posterior.covariance(others[:9]),
        posterior.log_evidence,
        *posterior.leave_one_out(),
        density,
        *by_name.values(),
        *posterior.evidence_gradient(per_layer=True).values(),
        posterior.solution.weights,
    ]
    more = inputs(net, 30)
    added = None if noise == "one" else np.full(30, 0.03)
    posterior.update(more, np.zeros((30, 2)), noise_var=added)
    found += [*posterior.predict(others), posterior.log_evidence, *posterior.leave_one_out()]
    return [np.asarray(one) for one in found], posterior


@pytest.mark.parametrize(
    ("net", "noise"),
    [(EQUAL, "by row"), pytest.param(UNEQUAL, "one", marks=pytest.mark.slow)],
    ids=["equal norms", "unequal norms"],
)
def test_filled_tiles_change_nothing(net, noise):
    """Against the CPU, whose last tile is smaller."""
    filled, posterior = everything(net, noise, engine())
    whole, _ = everything(net, noise, "cpu")
    assert posterior.solution.factor.filled == 3 * TILE - (N + 30)
    assert posterior.n == N + 30
    for one, two in zip(filled, whole, strict=True):
        assert one.shape == two.shape
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_a_filled_factor_is_saved_without_its_filling(tmp_path):
    model = nngp.NNGPRegressor(selection=None, engine=engine())
    X, others = RNG.standard_normal((N, D)), RNG.standard_normal((20, D))
    model.fit(X, Y[:, 0])
    assert model.posterior_.solution.factor.filled > 0
    model.save(tmp_path / "model.nngp")
    read = nngp.load(tmp_path / "model.nngp", engine="cpu")
    assert read.posterior_.solution.factor.edges == (0, TILE, 2 * TILE, N)
    np.testing.assert_allclose(read.predict(others), model.predict(others), rtol=1e-10, atol=1e-12)


def test_blocks_beyond_the_inputs_are_of_the_identity():
    """Those that the host computes, as those of the device."""
    uploaded = nngp.Architecture(1, "elu", 1.2, 0.1)
    for net in (EQUAL, UNEQUAL, uploaded):
        X = inputs(net, 5)
        with engine().run():
            kernels = engine().kernels
            matrix = kernels.matrix(net, kernels.inputs(X))
            cross = kernels.matrix(net, kernels.inputs(X), kernels.inputs(X[:3]))
            block = np.array(matrix.block(slice(4, 7), slice(4, 7), shift=0.5))
            other = np.asarray(cross.block(slice(0, 5), slice(2, 6)))
        assert block[0, 0] == pytest.approx(matrix.diagonal[4] + 0.5)
        block[0, 0] = 1.0
        np.testing.assert_array_equal(block, np.eye(3))
        np.testing.assert_array_equal(other[:, 1:], np.zeros((5, 3)))
        assert other[:, 0].all()


def test_test_inputs_of_another_norm():
    """Their blocks are K / scale - offset, and zero all the same where no training inputs are."""
    net = nngp.Architecture(2, "relu", 1.7, 0.2)  # whose offset is not zero
    X, tests = inputs(EQUAL, N), 1.3 * inputs(EQUAL, 7)
    found, expected = (
        nngp.condition(net, X, Y[:N], noise_var=0.05, engine=one).predict(tests)
        for one in (engine(), "cpu")
    )
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-11)


def test_other_numbers_of_points_need_no_other_programs():
    """But two: the sums of a mean and of a variance over tiles."""
    _compiled.cache_clear()  # another test of this process may have made these
    tests = inputs(EQUAL, 5 * TILE)

    def run(n):
        posterior = nngp.condition(EQUAL, inputs(EQUAL, n), Y[:n], noise_var=0.05, engine=engine())
        posterior.predict(np.concatenate([tests, tests]))

    run(N)
    known = len(programs.made)
    run(N - 7)
    assert len(programs.made) == known
    run(N - TILE)
    assert programs.made[known:] == ["total", "total"]


COUNT = """
import sys, numpy as np, jax, nngp
from nngp.gram.device import arrays as programs
from nngp.linsolve.engines.gpu import GpuEngine

compiled = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration_secs, **_: compiled.append(event)
    if event.endswith("backend_compile_duration") else None
)
rng = np.random.default_rng(0)
X = nngp.normalize(rng.standard_normal((1300, 5)))
posterior = nngp.condition(
    nngp.Architecture(2, "relu", 1.5, 0.1), X[:150], X[:150, :2], noise_var=0.1,
    engine=GpuEngine(jax.devices()[0], tile=64),
)
posterior.predict(X[150:])
print(len(compiled), len(programs.made), jax.config.jax_enable_x64)
"""


@pytest.mark.slow
def test_how_many_programs_a_first_call_compiles():
    """All of them ours: nothing is compiled for a single operation."""
    done = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    in_all, ours, double = done.stdout.split()
    assert int(in_all) == int(ours) <= 22
    assert double == "False"
