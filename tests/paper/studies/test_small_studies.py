"""Draws of the prior, angular structure, critical lines and the spread of kernels: runs whose
numbers are compared with formulas written out here."""

from functools import partial

import numpy as np
import pytest

import nngp
from nngp.finite import requirements as checks
from nngp.paper.scope import Scope
from nngp.paper.studies import angular as angular_module
from nngp.paper.studies.angular import angular_study
from nngp.paper.studies.critical import critical_study
from nngp.paper.studies.prior import prior_study
from nngp.paper.studies.rounding import rounded
from nngp.paper.studies.spread import spread_study
from nngp.plots.angular import angular_structure
from nngp.runs import RunStore
from nngp.runs.study import carry_out

SCOPE = Scope("digits", (100,))


def relu_layer(K, weight_var, bias_var):
    """App. B for a whole matrix: any norms."""
    deviations = np.sqrt(np.diag(K))
    both = np.outer(deviations, deviations)
    theta = np.arccos(np.clip(K / both, -1, 1))
    shape = np.sin(theta) + (np.pi - theta) * np.cos(theta)
    return bias_var + weight_var / (2 * np.pi) * both * shape


def test_numbers_are_short_and_plain():
    values = rounded(np.array([[np.pi * 1e-20, -1e5 / 3], [np.inf, 0.0]]))
    assert values == [[3.1415927e-20, -33333.333], [np.inf, 0.0]]
    assert type(values[0][0]) is float
    assert rounded(2 / 3) == 0.66666667
    assert rounded([]) == []


def test_draws_of_the_prior_have_its_covariance():
    (config,) = prior_study(SCOPE).configs
    network = {"activation": "relu", "depth": 10, "weight_var": 1.8, "bias_var": 0.01}
    assert config == {**network, "points": 401, "draws": 10, "seed": 0}
    result = prior_study(SCOPE).work({**config, "points": 5, "draws": 20_000}).result
    assert result["x"] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    x = np.array(result["x"])
    K = 0.01 + 1.8 * np.outer(x, x)
    for _ in range(10):
        K = relu_layer(K, 1.8, 0.01)
    values = np.array(result["values"])
    assert values.shape == (20_000, 5)
    np.testing.assert_allclose(values.T @ values / 20_000, K, atol=0.05 * K.max())


def test_draws_depend_on_the_seed_only():
    (config,) = prior_study(SCOPE).configs
    work = prior_study(SCOPE).work
    first, again, other = (work({**config, "points": 9, "seed": s}).result for s in (0, 0, 1))
    assert first == again
    assert first["values"] != other["values"]


def test_angular_structure_is_the_arc_cosine_formula(monkeypatch):
    table = nngp.LookupTable("relu", n_g=101, n_v=101, n_c=100, s_max=10.0)
    coarse = partial(angular_structure, table=table)  # the real one takes long
    monkeypatch.setattr(angular_module, "angular_structure", coarse)
    (config,) = angular_study(SCOPE).configs
    assert config == {"activation": "relu", "depth": 9, "weight_var": 1.6, "bias_var": 0.1}
    result = angular_study(SCOPE).work(config).result
    theta = np.array(result["theta"])
    assert (theta[0], theta[-1]) == (0.0, pytest.approx(np.pi, abs=1e-7))
    K, q = 0.1 + 1.6 * np.cos(theta), 1.7
    for row in result["exact"]:
        np.testing.assert_allclose(row, K, atol=1e-6)
        angle = np.arccos(np.clip(K / q, -1, 1))
        K = 0.1 + 0.8 * q / np.pi * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
        q = 0.1 + 0.8 * q
    assert np.shape(result["exact"]) == (10, 400)
    at = [np.interp(result["sparse_theta"], theta, row) for row in result["exact"]]
    np.testing.assert_allclose(result["lookup"], at, atol=0.02)


def test_the_plane_is_the_experiments_in_finer_steps():
    study = critical_study(Scope("digits", (100,), activations=("erf", "relu"), grid=3))
    assert [config["activation"] for config in study.configs] == ["erf", "relu"]
    config = study.configs[0]
    assert (config["weight_vars"][0], config["weight_vars"][-1]) == (0.1, 5.0)
    assert (config["bias_vars"][0], config["bias_vars"][-1]) == (0.0, 2.0)
    assert len(config["weight_vars"]) > 30
    assert len(config["bias_vars"]) > 30
    assert 2.0 not in config["weight_vars"]
    assert critical_study(SCOPE).configs[0]["weight_vars"] == config["weight_vars"]


def test_relu_is_critical_at_two():
    axes = {"weight_vars": [0.5, 1.5, 3.0], "bias_vars": [0.0, 0.5, 1.0, 2.0]}
    result = critical_study(SCOPE).work({"activation": "relu", **axes}).result
    np.testing.assert_allclose(result["line_weight_vars"], 2.0)
    assert (result["line_bias_vars"][0], result["line_bias_vars"][-1]) == (0.0, 2.0)
    assert result["phase"][1:] == [["bounded", "bounded", "unbounded"]] * 3
    scales = 1 / np.abs(np.log(np.array(axes["weight_vars"]) / 2))
    np.testing.assert_allclose(result["depth_scale"], [scales] * 4, rtol=1e-6)


def test_the_line_of_erf_is_where_chi_is_one():
    axes = {"weight_vars": [0.5, 3.0], "bias_vars": [0.0, 1.0]}
    result = critical_study(SCOPE).work({"activation": "erf", **axes}).result
    weights, biases = np.array(result["line_weight_vars"]), np.array(result["line_bias_vars"])
    q = ((4 * weights / np.pi) ** 2 - 1) / 4  # weight_var E[phi'²] = 1
    second = 2 / np.pi * np.arcsin(2 * q / (1 + 2 * q))
    np.testing.assert_allclose(q - weights * second, biases, atol=1e-6)
    assert biases[1] < 1e-3  # close where the line is steep
    assert np.max(np.diff(weights)) < 0.1
    assert result["phase"][1] == ["ordered", "chaotic"]


def test_an_activation_without_a_line_has_none():
    axes = {"weight_vars": [0.5], "bias_vars": [0.5, 1.0]}
    result = critical_study(SCOPE).work({"activation": "sign", **axes}).result
    assert result["line_weight_vars"] == result["line_bias_vars"] == []
    assert result["phase"] == [["chaotic"], ["chaotic"]]


def test_kernels_of_one_layer_spread_as_moments_say():
    pytest.importorskip("jax")
    (config,) = spread_study(SCOPE).configs
    assert config["inputs"] == 3
    network = {"depth": 1, "weight_var": 1.6, "bias_var": 0.1}
    small = {"widths": [8, 32], "networks": 1500, "inputs": 1, "seed": 3}
    outcome = spread_study(SCOPE).work({**config, **network, **small})
    result = outcome.result
    assert result["widths"] == [8, 32]
    q = 1.7  # of the units, whose relu² has the variance 5 q² / 4
    theory = 1.6 * q * np.sqrt(5 / 4 / np.array([8, 32])) / (0.1 + 0.8 * q)
    error, doubt = np.array(result["error"])[:, 0], np.array(result["error_of_error"])[:, 0]
    assert np.all(np.abs(error - theory) < 4 * doubt)
    assert np.all(doubt < 0.05 * theory)  # 1500 networks
    slope = np.log(error[1] / error[0]) / np.log(4)
    assert result["slope"] == pytest.approx([slope], abs=1e-6)
    relative = np.hypot(*(doubt / error)) / np.log(4)
    assert result["slope_error"] == pytest.approx([relative], rel=1e-5)
    assert outcome.device


def test_without_jax_the_spread_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ImportError, match=r"need jax; install it with: pip install 'nngp\[fi"):
            carry_out(store, spread_study(SCOPE))
        assert store.counts()["pending"] == 1
