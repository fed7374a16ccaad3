"""One program a network gives what conditioning on each network gives."""

import math

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
X = nngp.normalize(RNG.standard_normal((90, 5)))
X[41], X[71], X[72], X[73] = X[3], X[3], -X[4], nngp.normalize(X[5:6] + 1e-7)[0]  # and near pairs
Y = np.eye(3)[RNG.integers(0, 3, 90)] - 1 / 3
NETS = [
    nngp.Architecture(depth, name, w, b)
    for depth, name, w, b in [
        (1, "relu", 1.0, 0.1),
        (3, "erf", 2.0, 0.0),
        (60, "tanh", 1.0, 0.5),
        (20, "tanh", 4.0, 0.0),
        (math.inf, "erf", 0.5, 0.1),
    ]
]


@pytest.fixture
def device():
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    return GpuEngine(jax.devices()[0])


# The same in all tests: each number of points has a program of its own, which takes seconds to
# compile.
OTHERS = X[40:70], Y[40:70], X[70:], Y[70:]


def sweep_of(device, **more):
    sweep = nngp.Sweep(X[:40], Y[:40], *OTHERS, engine=device, **more)
    assert sweep._in_one_piece is not None
    return sweep


@pytest.mark.filterwarnings("ignore:the kernel has become constant")
@pytest.mark.parametrize("relative", [pytest.param(False, marks=pytest.mark.slow), True])
def test_against_condition(device, relative):
    sweep = sweep_of(device, noise_var=1e-4, relative_noise=relative)
    for net, result in zip(NETS, sweep.run(NETS), strict=True):
        posterior = nngp.condition(
            net, X[:40], Y[:40], noise_var=1e-4, relative_noise=relative, engine="cpu"
        )
        for rows, mse, accuracy in (
            (slice(40, 70), result.mse, result.accuracy),
            (slice(70, 90), result.test_mse, result.test_accuracy),
        ):
            mean = posterior.mean(X[rows])
            assert mse == pytest.approx(np.mean((mean - Y[rows]) ** 2), rel=1e-9)
            assert accuracy == np.mean(mean.argmax(1) == Y[rows].argmax(1))
        assert result.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-9)
        assert result.noise_var == pytest.approx(posterior.report.noise_var, rel=1e-12)
        assert (result.architecture, result.failed_attempts, result.error) == (net, 0, "")


def test_the_ladder_is_climbed_as_elsewhere(device):
    data = X[:40].copy()
    data[30:] = data[:10]  # duplicates have no factor without noise
    sets = data, Y[:40], *OTHERS
    net = nngp.Architecture(2, "relu", 1.0, 0.0)
    ours, tiled = (
        next(nngp.Sweep(*sets, noise_var=0.0, engine=engine).run([net]))
        for engine in (device, "cpu")
    )
    assert ours.failed_attempts == tiled.failed_attempts > 0
    assert ours.noise_var == tiled.noise_var
    assert ours.mse == pytest.approx(tiled.mse, rel=1e-4)


def test_order_and_failures(device):
    bad = [nngp.Architecture(0, "relu", 1e18, 0.0), nngp.Architecture(3000, "relu", 50.0, 0.0)]
    nets = [bad[0], *NETS, bad[1], *NETS, *NETS]
    results = list(sweep_of(device).run(nets))
    assert [result.architecture for result in results] == nets
    assert [bool(result.error) for result in results] == [net in bad for net in nets]
    assert "far above the noise" in results[0].error
    assert results[0].failed_attempts == 10
    assert "past the range" in results[6].error


def test_a_kernel_that_is_not_known_is_an_error(device, monkeypatch):
    from nngp.posterior import sweep_scores as system

    net = nngp.Architecture(50, "gelu", 5.0, 0.0)  # nearly relu, and known to 4e-5
    for limit, sentence in ((1e-5, "known to 4e-05 of its scale only"), (system.UNKNOWN, "")):
        monkeypatch.setattr(system, "UNKNOWN", limit)
        for engine in (device, "cpu"):
            result = next(nngp.Sweep(X[:40], Y[:40], *OTHERS, engine=engine).run([net]))
            assert sentence in result.error
            assert bool(result.error) == bool(sentence) == np.isnan(result.mse)


def test_unequal_norms_and_large_data_take_tiles(device):
    sets = 2 * X[:40], Y[:40], X[40:], Y[40:]
    assert nngp.Sweep(*sets, engine=device)._in_one_piece is None
    small = type(device)(device.device, tile=16)
    sweep = nngp.Sweep(X[:40], Y[:40], X[40:], Y[40:], engine=small)
    assert sweep._in_one_piece is None


def test_pairs_nearer_than_the_table_take_tiles(device):
    data = X.copy()
    data[1] = data[0]
    data[1, 0] = np.nextafter(data[1, 0], 9)
    sweep = nngp.Sweep(data[:40], Y[:40], data[40:], Y[40:], engine=device)
    assert sweep._in_one_piece is None


def test_test_points_on_the_host_too():
    sweep = nngp.Sweep(X[:40], Y[:40], X[40:70], Y[40:70], X[70:], Y[70:], engine="cpu")
    result = next(sweep.run(NETS[:1]))
    mean = nngp.condition(NETS[0], X[:40], Y[:40]).mean(X[70:])
    assert result.test_mse == pytest.approx(np.mean((mean - Y[70:]) ** 2), rel=1e-9)
    with pytest.raises(ValueError, match="go together"):
        nngp.Sweep(X, Y, X, Y, X_test=X)


def test_the_solve_by_blocks(device, monkeypatch):
    import jax

    from nngp.posterior import sweep_in_one_piece

    rng = np.random.default_rng(1)
    for n, size in ((12, 4), (13, 4), (5, 4), (3, 4)):
        solve = jax.jit(
            lambda L, z: sweep_in_one_piece._by_blocks(L, z)
        )  # one program instead of many
        monkeypatch.setattr(sweep_in_one_piece, "BLOCK", size)
        L, z = np.tril(rng.standard_normal((n, n))) + 3 * np.eye(n), rng.standard_normal((2, n))
        with device.run() as run:
            found = np.asarray(solve(run.put(L), run.put(z)))
        np.testing.assert_allclose(found @ L, z, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_the_authors_table(device, monkeypatch):
    """In tiles on either engine, at any size: eq. 8 with a matrix that `nngp.kernel` gives."""
    table = nngp.LookupTable("relu", 51, 51, 50, 20.0)
    net = nngp.Architecture(3, "relu", 1.5, 0.2)
    K = nngp.kernel(net, X[:40], method="lookup", table=table) + 0.1 * np.eye(40)
    cross = nngp.kernel(net, X[40:70], X[:40], method="lookup", table=table)
    mean = cross @ np.linalg.solve(K, Y[:40])
    small = type(device)(device.device, tile=32)
    monkeypatch.setattr(small, "largest_whole_matrix", 40)
    for engine in (small, "cpu"):
        sweep = nngp.Sweep(X[:40], Y[:40], *OTHERS[:2], noise_var=0.1, engine=engine)
        assert (sweep._in_one_piece is None) == (engine == "cpu")
        result = next(sweep.run([net], table=table))
        assert result.mse == pytest.approx(np.mean((mean - Y[40:70]) ** 2), rel=1e-7)
        assert result.accuracy == np.mean(mean.argmax(1) == Y[40:70].argmax(1))
    exact = next(sweep.run([net]))
    assert exact.mse != pytest.approx(result.mse, rel=1e-4)


def test_duplicates_and_opposites_have_values_of_their_own(device):
    """An activation that jumps tears apart all but equal inputs, however near they are."""
    from nngp.curve import curve_at
    from nngp.gram.device.gaps import gap_values
    from nngp.gram.device.profiles import DEEP

    curve = curve_at(nngp.Architecture(6, "sign", 1.0, 0.0), 1.0)
    deficit, one = curve.profile.deficit, curve.variance
    gaps = np.array([0.0, -0.0, 2.0**-50, -(2.0**-50)])
    with device.run() as run:
        coefs, ends = run.put(deficit.coefs[:, :DEEP]), (one, one - deficit.ends[1])
        found = np.asarray(gap_values(coefs, *ends, run.put(gaps)))
    exact = curve(one_minus=np.array([0.0, 2.0, 2.0**-50])).tolist()
    np.testing.assert_allclose(found[:3], exact, rtol=0, atol=1e-12)
    assert found[0] == one
    assert one - found[2] > 1e-3
