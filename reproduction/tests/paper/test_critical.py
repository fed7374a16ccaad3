"""Phases and critical lines: runs compared with formulas, and the finest diagram is read."""

import numpy as np
from stored_grids import put_line

from nngp_paper.scope import Scope
from nngp_paper.shared.critical import critical_study, read_theories

SCOPE = Scope("digits", (100,))


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


def test_the_finest_diagram_of_each_activation(store):
    put_line(store, "tanh", points=6)
    put_line(store, "tanh", line=(9.0, 9.0), points=5)
    put_line(store, "relu")
    put_line(store, "erf")
    found = read_theories(store, ["tanh", "relu"])
    assert sorted(found) == ["relu", "tanh"]
    theory = found["tanh"]
    assert theory.phase.shape == (6, 6)
    weights, biases = theory.line_within(np.array([1.5, 3.0]))
    assert (weights.tolist(), biases.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    assert np.isinf(theory.depth_scale).all()
