"""Compiled curves: within 1e-11 of mpmath at every depth, phase and correlation; right reports.

The exact kernels are in oracles/kernels.json (see make_kernels.py there).
"""

import json
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import nngp

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "kernels.json").read_text())
NAMES = sorted({row["activation"] for row in ROWS})


def test_the_oracle_covers_what_it_should():
    assert len(NAMES) == 12
    assert {row["depth"] for row in ROWS} == {1, 3, 10, 50}
    assert len({row["corr"] for row in ROWS}) >= 8
    assert len(ROWS) == 12 * 4 * 9


@pytest.mark.parametrize("name", NAMES)
def test_against_mpmath(name):
    for depth in (1, 3, 10, 50):
        check(name, depth)


def check(name, depth):
    rows = [r for r in ROWS if (r["activation"], r["depth"]) == (name, depth)]
    net = nngp.Architecture(depth, name, rows[0]["weight_var"], rows[0]["bias_var"])
    curve = nngp.curves.compile_curve(net)
    corr = np.array([float.fromhex(row["corr"]) for row in rows])
    with mp.workdps(50):
        variance = mp.mpf(rows[0]["variance"])
        errors = [
            float(abs(mp.mpf(float(k)) - mp.mpf(row["value"])) / variance)
            for k, row in zip(curve(corr), rows, strict=True)
        ]
    assert max(errors) <= curve.error <= 1e-12, depth


def relu_layer(q, c):
    return q / (2 * mp.pi) * (mp.sqrt(1 - c * c) + (mp.pi - mp.acos(c)) * c)


def erf_layer(q, c):
    return 2 / mp.pi * mp.asin(2 * q * c / (1 + 2 * q))


def exact_kernel(layer, depth, weights, biases, corr, input_var=1):
    q = biases[0] + weights[0] * input_var
    k = biases[0] + weights[0] * input_var * mp.mpf(corr)
    for w, b in zip(weights[1:], biases[1:], strict=True):
        k, q = b + w * layer(q, k / q), b + w * layer(q, mp.mpf(1))
    return k, q


@pytest.mark.parametrize(
    ("weight_var", "bias_var", "depth"),
    [(0.5, 0.0, 100), (0.5, 2.0, 30), (1.3, 0.3, 100), (2.0, 0.3, 30), (5.0, 0.0, 100)],
)
def test_ordered_critical_and_chaotic_erf(weight_var, bias_var, depth):
    curve = nngp.curves.compile_curve(nngp.Architecture(depth, "erf", weight_var, bias_var))
    with mp.workdps(80):
        w, b = [mp.mpf(weight_var)] * (depth + 1), [mp.mpf(bias_var)] * (depth + 1)
        for corr in (1 - 2.0**-50, 1 - 1e-9, 0.9, 0.1, -0.4, -1 + 1e-6, -1 + 2.0**-50):
            exact, q = exact_kernel(erf_layer, depth, w, b, corr)
            assert abs(float((mp.mpf(float(curve(corr))) - exact) / q)) <= min(curve.error, 1e-12)


@pytest.mark.parametrize(("weight_var", "bias_var"), [(0.5, 0.3), (1.3, 0.0), (5.0, 2.0)])
def test_tanh_in_every_phase_against_layer_by_layer(weight_var, bias_var):
    """The plain recursion shares no interpolation and carries c, not deficits."""
    net = nngp.Architecture(12, "tanh", weight_var, bias_var)
    curve = nngp.curves.compile_curve(net)
    corr = np.array([0.999, 0.7, 0.2, -0.3, -0.95])
    q, k = weight_var + bias_var, weight_var * corr + bias_var
    for _ in range(12):
        moved = nngp.curves.layer_covariance("tanh", q, q, k / q, method="series")
        q = bias_var + weight_var * nngp.curves.layer_covariance("tanh", q, q, 1.0, method="series")
        k = bias_var + weight_var * moved
    assert curve.variance == pytest.approx(q, rel=1e-13)
    # plain arithmetic amplifies its rounding by the slope of every layer in the chaotic phase
    np.testing.assert_allclose(curve(corr), k, rtol=0, atol=2e-11 * q)
    assert curve.error < 1e-12


def test_deficit_keeps_relative_precision_far_below_rounding():
    depth = 60
    curve = nngp.curves.compile_curve(nngp.Architecture(depth, "relu", 1.0, 0.1))
    e = np.array([1e-280, 1e-120, 1e-30, 1e-12, 1e-3, 0.5])
    with mp.workdps(400):
        w, b = [mp.mpf(1.0)] * (depth + 1), [mp.mpf(0.1)] * (depth + 1)
        for x, deficit in zip(e, curve.deficit(one_minus=e), strict=True):
            exact, q = exact_kernel(relu_layer, depth, w, b, 1 - mp.mpf(x))
            assert abs(mp.mpf(float(deficit)) / (q - exact) - 1) < 1e-11


@pytest.mark.parametrize("offset", [1e-3, pytest.param(1e-6, marks=pytest.mark.slow), 1e-9])
def test_a_nearly_odd_activation_reports_its_error(offset):
    """erf + offset is erf with a bias: E[(f + a)(f + a)] = E[f f] + a², for odd f."""
    from scipy.special import erf

    depth, w, corr = 25, 8.0, np.array([-1.0, -1 + 1e-9, -0.999, -0.4, 0.3, 1 - 1e-9])
    shifted = nngp.Activation(lambda x: erf(x) + offset)
    curve = nngp.curves.compile_curve(nngp.Architecture(depth, shifted, w, 0.0), tol=1)
    biases = (0.0, *([w * offset**2] * depth))
    exact = nngp.curves.compile_curve(nngp.Architecture(depth, "erf", w, biases))
    assert np.max(np.abs(curve(corr) - exact(corr))) <= 10 * curve.error * curve.variance


def test_a_constant_activation_leaves_a_constant_kernel():
    for constant in (0.0, 1.0):
        curve = nngp.curves.compile_curve(
            nngp.Architecture(3, lambda x, a=constant: 0 * x + a, 2.0, 0.1)
        )
        np.testing.assert_allclose(curve([1.0, 0.5, 0.0, -1.0]), 0.1 + 2 * constant, rtol=1e-14)


def test_a_variance_that_nearly_vanishes_keeps_its_curve():
    """erf without bias, weight_var 0.5: q falls to 1e-197, and the kernel becomes linear in c."""
    curve = nngp.curves.compile_curve(nngp.Architecture(1000, "erf", 0.5, 0.0), tol=1e-11)
    corr = np.array([1.0, 0.5, 0.0, -1.0])
    with mp.workdps(40):
        w, b = [mp.mpf(0.5)] * 1001, [mp.mpf(0)] * 1001
        exact = [exact_kernel(erf_layer, 1000, w, b, c) for c in corr]
        errors = [
            abs(float((mp.mpf(float(k)) - e) / q))
            for k, (e, q) in zip(curve(corr), exact, strict=True)
        ]
    assert max(errors) <= curve.error


def test_all_depths_come_from_one_pass():
    net = nngp.Architecture(6, "gelu", (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2), 0.1)
    corr = np.linspace(-1, 1, 41)
    for depth, curve in enumerate(nngp.curves.compile_curves(net, 0.7)):
        alone = nngp.curves.compile_curve(net.truncated(depth), 0.7)
        np.testing.assert_allclose(curve(corr), alone(corr), rtol=1e-14, atol=1e-15)


def test_depth_zero_is_the_linear_model():
    curve = nngp.curves.compile_curve(nngp.Architecture(0, "relu", 1.5, 0.2), 2.0)
    corr = np.linspace(-1, 1, 11)
    np.testing.assert_allclose(curve(corr), 0.2 + 3.0 * corr, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "weight_var"),
    [("relu", 2.0), ("erf", 1.2), pytest.param("tanh", 1.0, marks=pytest.mark.slow)],
)
def test_a_thousand_layers(name, weight_var):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nngp.errors.ToleranceWarning)
        curve = nngp.curves.compile_curve(nngp.Architecture(1000, name, weight_var, 0.01))
    values = curve(np.linspace(-1, 1, 101))
    assert np.isfinite(values).all()
    assert np.all(np.diff(values) >= -curve.error * curve.variance)
    assert curve.error < 1e-11


@pytest.mark.parametrize(("name", "layer"), [("relu", relu_layer), ("erf", erf_layer)])
def test_derivative_and_sensitivities(name, layer):
    depth, corr = 4, np.array([0.95, 0.3, -0.6])
    weights, biases = (1.1, 1.5, 1.2, 1.7, 1.3), (0.1, 0.0, 0.3, 0.2, 0.05)
    curve = nngp.curves.compile_curve(nngp.Architecture(depth, name, weights, biases))
    per_layer = curve.sensitivity(corr, per_layer=True)
    shared = curve.sensitivity(corr)
    with mp.workdps(40):

        def kernel(c, dw=(0,) * 5, db=(0,) * 5):
            w = [mp.mpf(x) + d for x, d in zip(weights, dw, strict=True)]
            b = [mp.mpf(x) + d for x, d in zip(biases, db, strict=True)]
            return exact_kernel(layer, depth, w, b, c)[0]

        def unit(i, h):
            return tuple(h if j == i else 0 for j in range(5))

        for n, c in enumerate(corr):
            slope = mp.diff(lambda x: kernel(x), mp.mpf(float(c)))
            assert curve.derivative(corr)[n] == pytest.approx(float(slope), rel=1e-11)
            for i in range(5):
                in_w = mp.diff(lambda h, i=i, c=c: kernel(c, dw=unit(i, h)), 0)
                in_b = mp.diff(lambda h, i=i, c=c: kernel(c, db=unit(i, h)), 0, h=1e-12)
                assert per_layer["weight_var"][i, n] == pytest.approx(float(in_w), rel=1e-10)
                assert per_layer["bias_var"][i, n] == pytest.approx(float(in_b), rel=1e-8)
    np.testing.assert_allclose(per_layer["weight_var"].sum(axis=0), shared["weight_var"])
    np.testing.assert_allclose(per_layer["bias_var"].sum(axis=0), shared["bias_var"])


@pytest.mark.parametrize("name", ["tanh", pytest.param("hard_tanh", marks=pytest.mark.slow)])
def test_numeric_sensitivities_against_differences(name):
    corr, h = np.array([1.0, 0.9, 0.2, -0.7]), 1e-4

    def curve(w, b):
        return nngp.curves.compile_curve(nngp.Architecture(2, name, w, b))(corr)

    got = nngp.curves.compile_curve(nngp.Architecture(2, name, 1.5, 0.2)).sensitivity(corr)
    for key, step in (("weight_var", (h, 0)), ("bias_var", (0, h))):
        up, down = curve(1.5 + step[0], 0.2 + step[1]), curve(1.5 - step[0], 0.2 - step[1])
        np.testing.assert_allclose(got[key], (up - down) / (2 * h), rtol=1e-6)


def test_one_minus_is_the_same_function():
    curve = nngp.curves.compile_curve(nngp.Architecture(5, "tanh", 1.4, 0.1))
    corr = np.linspace(-1, 1, 33)
    np.testing.assert_allclose(curve(one_minus=1 - corr), curve(corr), rtol=1e-14)


def test_at_one_the_value_is_the_variance_bit_for_bit():
    for name in ("relu", "sign", "tanh"):
        curve = nngp.curves.compile_curve(nngp.Architecture(7, name, 1.5, 0.1))
        assert curve(1.0) == curve.variance == curve(one_minus=0.0)


def test_a_missed_tolerance_gives_a_warning():
    net = nngp.Architecture(3, lambda x: np.tanh(x.astype(np.float32)), 1.5, 0.1)
    with pytest.warns(nngp.errors.ToleranceWarning, match="reached an error of"):
        curve = nngp.curves.compile_curve(net)
    exact = nngp.curves.compile_curve(nngp.Architecture(3, "tanh", 1.5, 0.1))
    corr = np.linspace(-1, 1, 21)
    assert np.max(np.abs(curve(corr) - exact(corr))) <= 10 * curve.error * curve.variance


def test_a_variance_out_of_range_is_refused():
    for weight_var in (50.0, 1e-6):
        net = nngp.Architecture(300, "relu", weight_var, 0.0)
        with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
            nngp.curves.compile_curve(net)


def test_bad_arguments():
    curve = nngp.curves.compile_curve(nngp.Architecture(1))
    for cosine in (1.5, np.nan):
        with pytest.raises(ValueError, match="cosines must lie in"):
            curve(cosine)
    with pytest.raises(ValueError, match="one_minus must lie in"):
        curve(one_minus=3.0)
    for both in ({}, {"corr": 0.5, "one_minus": 0.5}):
        with pytest.raises(ValueError, match="give either the cosines or one_minus"):
            curve(**both)
    with pytest.raises(ValueError, match="input_var must be finite"):
        nngp.curves.compile_curve(nngp.Architecture(1), -1.0)
