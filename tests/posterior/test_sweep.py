"""A sweep gives what conditioning on each network gives."""

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5))
Y = np.eye(3)[RNG.integers(0, 3, 60)] - 1 / 3
NETS = [
    nngp.Architecture(depth, name, w, b)
    for depth, name, w, b in [(1, "relu", 1.0, 0.1), (3, "erf", 2.0, 0.0), (2, "relu", 1.5, 0.5)]
]


@pytest.mark.slow_on_jax(equal=False)
@pytest.mark.parametrize("equal", [True, False])
def test_against_condition(equal, engine):
    data = nngp.normalize(X) if equal else X
    sweep = nngp.Sweep(data[:40], Y[:40], data[40:], Y[40:], noise_var=1e-4, engine=engine)
    for net, result in zip(NETS, sweep.run(NETS), strict=True):
        posterior = nngp.condition(net, data[:40], Y[:40], noise_var=1e-4)
        mean = posterior.mean(data[40:])
        assert result.architecture == net
        assert result.mse == pytest.approx(np.mean((mean - Y[40:]) ** 2), rel=1e-9)
        assert result.accuracy == np.mean(mean.argmax(1) == Y[40:].argmax(1))
        assert result.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-9)
        assert (result.noise_var, result.failed_attempts, result.error) == (1e-4, 0, "")


@pytest.mark.parametrize("equal", [True, False])
def test_relative_noise_in_tiles_against_condition(equal):
    data = nngp.normalize(X) if equal else X
    deep = [nngp.Architecture(30, "relu", 0.3, 0.5)] * equal  # needs equal norms to keep its digits
    train = data[:40], Y[:40]
    sweep = nngp.Sweep(*train, data[40:], Y[40:], relative_noise=True, engine="cpu")
    for net, result in zip(deep + NETS, sweep._in_tiles.run(deep + NETS), strict=True):
        posterior = nngp.condition(net, *train, relative_noise=True, engine="cpu")
        error = np.mean((posterior.mean(data[40:]) - Y[40:]) ** 2)
        assert result.mse == pytest.approx(error, rel=1e-6)
        assert result.log_evidence == pytest.approx(posterior.log_evidence, rel=1e-6)
        assert result.noise_var == pytest.approx(posterior.report.noise_var)


def test_a_second_network_allocates_no_tile():
    sweep = nngp.Sweep(X[:40], Y[:40], X[40:], Y[40:], engine="cpu")
    list(sweep.run(NETS[:1]))
    rows = sweep._in_tiles._memory._rows
    before = [id(row) for row in rows.values()]
    list(sweep.run(NETS[1:]))
    assert [id(row) for row in rows.values()] == before


def test_a_network_without_a_factor_is_explained_with_more_points_than_are_looked_at(engine):
    """The cause is sought in the first 200 rows, which are a part of a stored block."""
    many = nngp.normalize(np.random.default_rng(1).standard_normal((300, 5)))
    many[299] = many[0]
    targets = np.ones((300, 1))
    wide = nngp.Architecture(0, "relu", 1e18, 0.0)
    results = list(nngp.Sweep(many, targets, many[:5], targets[:5], engine=engine).run([wide]))
    tiles = nngp.Sweep(many, targets, many[:5], targets[:5], engine=engine)._in_tiles.run([wide])
    for result in (*results, *tiles):
        assert "1 duplicated row" in result.error


def test_a_failing_network_does_not_end_the_sweep():
    sweep = nngp.Sweep(X[:40], Y[:40], X[40:], Y[40:])
    bad = [nngp.Architecture(0, "relu", 1e18, 0.0), nngp.Architecture(3000, "relu", 50.0, 0.0)]
    results = list(sweep.run([bad[0], NETS[0], bad[1], NETS[1]]))
    assert [bool(r.error) for r in results] == [True, False, True, False]
    assert np.isnan(results[0].mse)
    assert np.isnan(results[2].accuracy)
    assert "past the range" in results[2].error
    assert "far above the noise" in results[0].error
    assert results[0].failed_attempts == 10
    assert results[0].noise_var == pytest.approx(0.1)


def test_an_activation_that_cannot_be_integrated_does_not_end_the_sweep():
    sweep = nngp.Sweep(X[:10], Y[:10], X[40:], Y[40:])
    steep = nngp.Architecture(2, lambda x: np.exp(x * x), 3.0, 0.1)
    with np.errstate(all="ignore"):
        results = list(sweep.run([steep, NETS[0]]))
    assert [bool(r.error) for r in results] == [True, False]


def test_one_output_has_no_accuracy():
    sweep = nngp.Sweep(X[:40], X[:40, 0], X[40:], X[40:, 0])
    result = next(sweep.run(NETS[:1]))
    assert np.isnan(result.accuracy)
    assert np.isfinite(result.mse)


def test_results_come_one_by_one():
    sweep = nngp.Sweep(X[:40], Y[:40], X[40:], Y[40:])
    stream = sweep.run(iter(NETS))
    assert next(stream).architecture == NETS[0]
    with pytest.raises(TypeError, match="Architecture"):
        list(sweep.run(["relu"]))
    with pytest.raises(TypeError, match="run takes many networks"):
        list(sweep.run(NETS[0]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y, X[:, :3], Y), "X has 5 features and X_val 3"),
        ((X, Y, X, Y[:, :2]), "same number of outputs"),
        ((X, Y, X, Y[:10]), "Y_val has 10 rows"),
    ],
)
def test_bad_sets(arguments, message):
    with pytest.raises(ValueError, match=message):
        nngp.Sweep(*arguments)


def test_a_sweep_that_cannot_fit():
    with pytest.raises(MemoryError, match="too little for any number of points"):
        nngp.Sweep(X, Y, X, Y, memory=1000)
