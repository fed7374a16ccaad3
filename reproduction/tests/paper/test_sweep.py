"""A sweep gives what conditioning on each network gives, by dense matrices and without them."""

import math
from dataclasses import replace

import numpy as np
import pytest

import nngp
from nngp_paper import sweep as module
from nngp_paper.pairs import Pairs, cubics_of
from nngp_paper.sweep import Sweep

RNG = np.random.default_rng(0)
X = nngp.normalize(RNG.standard_normal((160, 6)))
X[90], X[130], X[131] = X[3], X[3], -X[4]  # duplicates, opposites, and a near pair
X[132] = nngp.normalize(X[5:6] + 1e-7)[0]
Y = np.eye(3)[RNG.integers(0, 3, 160)] - 1 / 3
PARTS = slice(0, 80), slice(80, 120), slice(120, 160)
NETS = [
    nngp.Architecture(1, "relu", 1.0, 0.1),
    nngp.Architecture(3, "erf", 2.0, 0.0),
    nngp.Architecture(50, "tanh", 1.0, 0.5),
    nngp.Architecture(50, "relu", 0.5, 0.3),
    nngp.Architecture(20, "tanh", 4.0, 0.0),
    nngp.Architecture(math.inf, "erf", 0.5, 0.1),
    nngp.Architecture(6, "sign", 1.0, 0.0),  # tears apart all but equal inputs
    nngp.Architecture(0, "relu", [1.0], [0.0]),
    nngp.NTK(nngp.Architecture(3, "relu", 2.0, 0.1)),
]
QUIET = "ignore:the kernel has become constant"


def sweep_of(X, **more):
    sets = [array[part] for part in PARTS for array in (X, Y)]
    return Sweep(*sets, **{"engine": "cpu", **more})


def check(result, net, X, Y=Y, rel=1e-9, **options):
    """A result against `nngp.condition`."""
    train, *scored = PARTS
    posterior = nngp.condition(net, X[train], Y[train], engine="cpu", **options)
    scores = (result.mse, result.accuracy), (result.test_mse, result.test_accuracy)
    for (mse, accuracy), rows in zip(scores, scored, strict=True):
        mean = posterior.mean(X[rows])
        assert mse == pytest.approx(np.mean((mean - Y[rows]) ** 2), rel=rel)
        assert accuracy == np.mean(mean.argmax(axis=1) == Y[rows].argmax(axis=1))
    assert result.log_evidence == pytest.approx(posterior.log_evidence, rel=rel)
    assert result.noise_var == pytest.approx(posterior.report.noise_var, rel=1e-12)
    assert result.failed_attempts == posterior.report.failed_attempts
    assert (result.architecture, result.error) == (net, "")


@pytest.mark.filterwarnings(QUIET)
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_against_condition(relative, scale, monkeypatch):
    monkeypatch.setattr(Sweep, "_conditioned", None)
    options = {"noise_var": 1e-4, "relative_noise": relative}
    sweep = sweep_of(scale * X, **options)
    assert sweep.is_dense
    for net, result in zip(NETS, sweep.run(NETS), strict=True):
        check(result, net, scale * X, **options)


def test_means_are_those_of_condition(monkeypatch):
    """Each of them, and not the errors alone; in blocks of a few rows."""
    means = []
    monkeypatch.setattr(module, "BLOCK", 1000)
    monkeypatch.setattr("nngp_paper.pairs.AT_ONCE", 300)
    monkeypatch.setattr(Sweep, "_judged", lambda self, found: means.append(found) or {})
    options = {"noise_var": 1e-6, "relative_noise": True}
    list(sweep_of(X, **options).run(NETS[2:4]))
    for net, found in zip(NETS[2:4], means, strict=True):
        posterior = nngp.condition(net, X[PARTS[0]], Y[PARTS[0]], engine="cpu", **options)
        for mean, rows in zip(found, PARTS[1:], strict=True):
            np.testing.assert_allclose(mean, posterior.mean(X[rows]), rtol=0, atol=1e-9)


def test_the_ladder_is_that_of_condition(monkeypatch):
    monkeypatch.setattr(Sweep, "_conditioned", None)
    doubled = X.copy()
    doubled[40:80] = doubled[:40]  # duplicates have no factor without noise
    (result,) = sweep_of(doubled, noise_var=0.0).run(NETS[:1])
    assert result.failed_attempts == 1
    with pytest.warns(nngp.errors.NoiseWarning):
        check(result, NETS[0], doubled, rel=1e-5, noise_var=0.0)


@pytest.mark.parametrize("relative", [False, True])
def test_noise_is_ten_times_as_much_after_a_failure(relative, monkeypatch):
    real, failures = module._factor, [2]

    def failing(M, shift):
        if failures[0]:
            failures[0] -= 1
            M[:] = np.nan  # LAPACK leaves nothing of a matrix either
            raise np.linalg.LinAlgError
        return real(M, shift)

    monkeypatch.setattr(module, "_factor", failing)
    options = {"relative_noise": relative}
    (result,) = sweep_of(X, noise_var=1e-6, **options).run(NETS[:1])
    assert result.failed_attempts == 2
    check(replace(result, failed_attempts=0), NETS[0], X, noise_var=1e-4, **options)


@pytest.mark.parametrize("why", ["many points", "little memory", "norms", "transformations"])
def test_what_is_not_dense_is_conditioned(why, monkeypatch):
    data, nets, options = X, NETS[:2], {"noise_var": 1e-4}
    if why == "many points":
        monkeypatch.setattr(module, "LARGEST_DENSE", 79)
    if why == "little memory":
        monkeypatch.setattr(module, "held_bytes", lambda n, others: 10**15)
    if why == "norms":
        data = X * RNG.uniform(1, 2, (160, 1))
        options["relative_noise"] = True
    if why == "transformations":
        nets = [nngp.Invariant(NETS[0], nngp.symmetries.signs())]
    sweep = sweep_of(data, **options)
    assert sweep.is_dense == (why == "transformations")
    monkeypatch.setattr(Sweep, "_dense", None)
    for net, result in zip(nets, sweep.run(nets), strict=True):
        check(result, net, data, **options)


def test_a_network_that_fails_does_not_end_the_sweep():
    steep = nngp.Architecture(2, nngp.Activation(lambda x: np.exp(x * x), name="steep"), 3.0, 0.1)
    wide, chaotic = nngp.Architecture(0, "relu", 1e18, 0.0), nngp.Architecture(3000, "relu", 50.0)
    constant = nngp.Architecture(1500, "relu", 0.5, 0.1)
    nets = [wide, NETS[0], chaotic, steep, constant]
    with np.errstate(all="ignore"):
        results = list(sweep_of(X, noise_var=1e-10).run(nets))
    assert [bool(result.error) for result in results] == [True, False, True, True, False]
    assert np.isnan(results[0].mse)
    assert np.isnan(results[2].test_accuracy)
    assert "far above the noise" in results[0].error
    assert (results[0].failed_attempts, results[0].noise_var) == (10, pytest.approx(0.1))
    assert "past the range" in results[2].error
    (result,) = sweep_of(X, relative_noise=True).run([constant])
    assert "math.inf" in result.error
    (result,) = sweep_of(X, noise_var=1e-2).run([nngp.Architecture(250, "relu", 0.1, 1.0)])
    assert not result.error  # noise of 1e249 times its scale
    (result,) = sweep_of(X * np.linspace(1, 2, 160)[:, None]).run([NETS[5]])
    assert "equal norm" in result.error


def test_a_kernel_that_is_not_known_is_an_error(monkeypatch):
    net = nngp.Architecture(50, "gelu", 5.0, 0.0)  # nearly relu, and known to 4e-5
    for limit, sentence in ((1e-5, "known to 4e-05 of its scale only"), (1e-4, "")):
        monkeypatch.setattr(module, "UNKNOWN", limit)
        (result,) = sweep_of(X).run([net])
        assert sentence in result.error
        assert bool(result.error) == bool(sentence) == np.isnan(result.mse)


def test_one_output_has_no_accuracy_and_no_test_set_no_scores():
    sweep = Sweep(X[:40], X[:40, :1], X[40:80], X[40:80, :1], engine="cpu")
    (result,) = sweep.run(NETS[:1])
    assert np.isnan([result.accuracy, result.test_mse, result.test_accuracy]).all()
    assert np.isfinite(result.mse)


def test_results_come_one_by_one():
    stream = sweep_of(X).run(iter(NETS))
    assert [next(stream).architecture for _ in range(2)] == NETS[:2]


def test_a_table_of_the_papers():
    """Eq. 8 with the matrices that the table gives."""
    table, net = (
        nngp.curves.LookupTable("relu", 51, 51, 50, 20.0),
        nngp.Architecture(3, "relu", 1.5, 0.2),
    )
    numbers, (train, val, _) = {"depth": 3, "weight_var": 1.5, "bias_var": 0.2}, PARTS
    K = table.kernel(X[train], **numbers) + 0.1 * np.eye(80)
    mean = table.kernel(X[val], X[train], **numbers) @ np.linalg.solve(K, Y[train])
    evidence = -0.5 * (
        np.einsum("ij,ij->", Y[train], np.linalg.solve(K, Y[train]))
        + 3 * (np.linalg.slogdet(K)[1] + 80 * np.log(2 * np.pi))
    )
    (result,) = sweep_of(X, noise_var=0.1).run([net], table=table)
    assert result.mse == pytest.approx(np.mean((mean - Y[val]) ** 2), rel=1e-9)
    assert result.accuracy == np.mean(mean.argmax(axis=1) == Y[val].argmax(axis=1))
    assert result.log_evidence == pytest.approx(evidence, rel=1e-9)
    with pytest.raises(ValueError, match="past the table's s_max"):
        list(sweep_of(X).run([nngp.Architecture(3, "relu", 50.0)], table=table))
    with pytest.raises(ValueError, match="the table is for 'relu', the network has 'erf'"):
        list(sweep_of(X).run(NETS[1:2], table=table))
    with pytest.raises(TypeError, match="Architecture only"):
        list(sweep_of(X).run(NETS[-1:], table=table))


@pytest.mark.parametrize("net", [NETS[2], NETS[4], NETS[6]], ids=["ordered", "chaotic", "jump"])
def test_pairs_have_the_deficits_of_the_curve(net):
    """Relative to themselves at angles down to 1e-9. (Near c = -1 there is 1 - c only to rounding,
    which a jump, at 1e-9 from there, would see.)"""
    curve = nngp.curves.compile_curve(net)
    angles = np.concatenate([[0.0], np.geomspace(1e-9, np.pi / 2, 400)])
    angles = np.concatenate([angles, np.pi - np.geomspace(1e-3, np.pi / 2, 400)])
    y = np.column_stack([np.cos(angles), np.sin(angles)])
    pairs, out = Pairs(np.array([[1.0, 0.0]]), y), np.empty((1, len(y)))
    pairs.look_up(curve, cubics_of(curve), slice(0, 1), out)
    exact = curve.deficit(one_minus=2 * np.sin(np.arctan2(np.abs(y[:, 1]), y[:, 0]) / 2) ** 2)
    np.testing.assert_allclose(out[0, :401], exact[:401], rtol=1e-9)
    np.testing.assert_allclose(out[0], exact, rtol=1e-9, atol=1e-12 * curve.scale)
