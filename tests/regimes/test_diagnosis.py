"""A diagnosis names the phase, measures the output geometry, and recommends accordingly."""

import math

import numpy as np
import pytest

import nngp
from nngp import regimes


def test_numbers_are_those_of_the_theory():
    net = nngp.Architecture(3, "tanh", 1.5, 0.1)
    found = regimes.diagnose(net)
    assert found.phase == "ordered"
    assert found.variance == regimes.variance_fixed_point("tanh", 1.5, 0.1)
    assert found.critical_weight_var == regimes.critical_line("tanh", 0.1)
    assert found.distance == pytest.approx(math.log(1.5 / found.critical_weight_var))
    assert found.trainable_depth == pytest.approx(6 * found.xi_c)
    assert found.trainable_depth == regimes.trainable_depth(net)
    k = nngp.curves.compile_curve(net)
    assert found.spread == pytest.approx(float((k(1.0) - k(0.0)) / k(1.0)), rel=1e-12)
    assert found.contrast == found.spread


def test_spread_over_the_angles_of_the_data():
    angles = np.array([0.0, 0.3, 0.8])
    X = 5.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    net = nngp.Architecture(2, "relu", 1.6, 0.1)
    found = regimes.diagnose(net, X)
    K = nngp.kernel(net, X)
    assert found.spread == pytest.approx((K[0, 0] - K[0, 2]) / K[0, 0], rel=1e-10)


def test_the_recommendation_follows_the_output_geometry():
    shallow = regimes.diagnose(nngp.Architecture(3, "tanh", 1.5, 0.1))
    assert shallow.recommendation.startswith("keep it")
    deep = regimes.diagnose(nngp.Architecture(200, "erf", 0.5, 0.1))
    assert deep.spread < 1e-20
    assert "below rounding" in deep.recommendation
    noisy = regimes.diagnose(nngp.Architecture(50, "relu", 1.6, 0.1), noise_var=1e-3)
    assert "below the noise" in noisy.recommendation
    chaotic = regimes.diagnose(nngp.Architecture(150, "erf", 3.0, 0.1))
    assert chaotic.spread > 0.4
    assert chaotic.contrast < 1e-6  # all pairs alike
    assert "fewer layers" in chaotic.recommendation
    critical = regimes.diagnose(nngp.Architecture(20, "relu", 2.0, 0.0))
    assert critical.trainable_depth == math.inf
    assert critical.recommendation.startswith("keep it")


def test_the_summary_in_words():
    lines = str(regimes.diagnose(nngp.Architecture(50, "relu", 1.6, 0.1))).splitlines()
    assert "bounded phase" in lines[0]
    assert "below the critical 2" in lines[1]
    assert any("rounding 2.2e-16" in line for line in lines)
    assert "advice" in lines[-1]
    no_line = str(regimes.diagnose(nngp.Architecture(2, "sign", 1.0, 0.1)))
    assert "no critical weight_var" in no_line


def test_an_overflowing_variance_is_reported():
    found = regimes.diagnose(nngp.Architecture(3000, "relu", 3.0, 0.1))
    assert found.spread is None
    assert "leaves float64" in str(found)


def test_infinite_depth_is_the_limit_kernel():
    found = regimes.diagnose(nngp.Architecture(math.inf, "erf", 0.8, 0.1))
    assert found.spread is None
    assert "the limit kernel is used" in str(found)
    chaotic = regimes.diagnose(nngp.Architecture(math.inf, "erf", 3.0, 0.1))
    assert "use a finite depth" in chaotic.recommendation


@pytest.mark.parametrize(
    ("net", "has_limit"),
    [
        (nngp.Architecture(math.inf, "relu", 2.0, 0.0), False),  # too near criticality
        (nngp.Architecture(math.inf, "gelu", 1.0, 0.0), True),  # though its variance vanishes
        (nngp.Architecture(math.inf, "step", 1.0, 0.1), False),
    ],
)
def test_the_recommendation_at_infinite_depth_agrees_with_the_kernel(net, has_limit):
    advice = regimes.diagnose(net).recommendation
    assert ("the limit kernel is used" in advice) == has_limit
    assert ("has no limit kernel; use a finite depth" in advice) != has_limit


@pytest.mark.parametrize(
    ("name", "weight_var", "fate"),
    [("tanh", 0.5, "vanishes"), ("relu", 1.0, "vanishes"), ("relu", 3.0, "explodes")],
)
def test_a_signal_without_a_finite_limit_is_reported(name, weight_var, fate):
    words = str(regimes.diagnose(nngp.Architecture(3, name, weight_var, 0.0)))
    assert f"correlations freeze while the signal {fate}" in words
    assert "inf layers" not in words
    deep = regimes.diagnose(nngp.Architecture(60, name, weight_var, 0.0))
    assert ("below the noise" in deep.recommendation) == (fate == "vanishes")


def test_parallel_inputs_are_reported():
    for X in (np.ones((4, 2)), [[1.0], [2.0], [3.0]]):
        found = regimes.diagnose(nngp.Architecture(3), X)
        assert "the data, not the depth" in found.recommendation
    assert regimes.diagnose(nngp.Architecture(3), [[1.0], [-2.0], [3.0]]).spread > 0.1


@pytest.mark.parametrize("depth", [3, math.inf])
@pytest.mark.parametrize("height", [0.0, 2.0])
def test_a_constant_activation_is_reported(depth, height):
    found = regimes.diagnose(nngp.Architecture(depth, lambda x: 0 * x + height))
    assert "is constant" in found.recommendation
    assert "relative_noise" not in found.recommendation


NET = nngp.Architecture(1)
BAD = [
    (lambda: regimes.trainable_depth(nngp.Architecture(1, "relu", [1.0, 2.0], 0.1)), "one weight"),
    (lambda: regimes.trainable_depth(nngp.Dense(1.0)), "known for an nngp.Architecture"),
    (lambda: regimes.diagnose(nngp.Architecture(3, "tanh", 1e70, 0.1)), r"between 0 and 1e\+30"),
    (lambda: regimes.trainable_depth(nngp.Architecture(3, "tanh", 1e70)), r"between 0 and 1e\+30"),
    (lambda: regimes.diagnose("tanh"), "must be an nngp.Architecture"),
    (lambda: regimes.trainable_depth("tanh"), "must be an nngp.Architecture"),
    (lambda: regimes.diagnose(NET, np.ones((2, 3, 4))), "two-dimensional"),
    (lambda: regimes.diagnose(NET, [["a"], ["b"]]), "must hold real numbers"),
    (lambda: regimes.diagnose(NET, [[1.0, 2.0]]), "at least two points"),
    (lambda: regimes.diagnose(NET, np.zeros((3, 2))), "no direction"),
    (lambda: regimes.diagnose(NET, [[1.0, np.nan], [1, 2]]), "holds nan"),
    (lambda: regimes.diagnose(NET, 1e200 * np.eye(3)), "so large that"),
    (lambda: regimes.diagnose(NET, 1e-200 * np.eye(3)), "so small that"),
    (lambda: regimes.diagnose(NET, noise_var=-1.0), "noise_var must be"),
    (lambda: regimes.diagnose(NET, noise_var="low"), "noise_var must be"),
    (lambda: regimes.diagnose(NET, noise_var=None), "noise_var must be"),
]


def test_bad_input_is_refused_in_one_sentence():
    for call, message in BAD:
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
