"""Repeated parts: sequences are those of the kernel, laws are those of closed formulas."""

import math

import numpy as np
import pytest

import nngp
from nngp import Act, Chain, Dense, Dropout, LayerNorm, Repeat, Residual, regimes
from nngp.regimes.depth_laws import depth_law

L = np.arange(1, 1002, dtype=float)


@pytest.mark.parametrize(
    ("values", "kind", "limit", "rate"),
    [
        (3.0 + 0 * L, "constant", 3.0, 0.0),
        (2.0**-L, "exponential", 0.0, 1 / math.log(2)),
        (1.25 - 0.7**L, "exponential", 1.25, -1 / math.log(0.7)),
        (1.25 + (-0.5) ** L, "exponential", 1.25, 1 / math.log(2)),  # from both sides
        (1.5 ** L[:900], "exponential", math.inf, 1 / math.log(1.5)),
        (5 + 3 * L, "power", math.inf, 1.0),
        ((L + 40) ** 1.5, "power", math.inf, 1.5),
        ((L + 40) ** -2.0, "power", 0.0, 2.0),
        (0.6 + (L + 7) ** -0.5, "power", 0.6, 0.5),
        (0.6 - 0.5 * (L + 7) ** -1.0, "power", 0.6, 1.0),
        (np.log(20 * L) ** -2, "logarithmic", 0.0, 2.0),
        (np.log(20 * L) ** -1, "logarithmic", 0.0, 1.0),
    ],
)
def test_known_laws_are_found(values, kind, limit, rate):
    law = depth_law(values)
    assert law.kind == kind
    assert law.limit == pytest.approx(limit, rel=2e-3)
    assert law.rate == pytest.approx(rate, rel={"logarithmic": 0.05}.get(kind, 1e-2))


def test_too_few_repetitions_tell_nothing():
    law = depth_law((L[:30] + 7) ** -2)
    assert (law.kind, law.rate) == ("unclear", 0.0)
    assert depth_law(L, most=2.0).kind == "unclear"


BLOCKS = {
    "residual": Residual(Act("relu"), Dense(0.7, 0.1)),
    "pre-norm": Residual(LayerNorm(), Act("erf"), Dense(1.0)),
    "dropout": Chain(Act("relu"), Dropout(0.8), Dense(1.5, 0.1)),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_sequences_are_those_of_the_kernel(name):
    found = regimes.propagate(BLOCKS[name], 12, correlations=[0.3, -0.6])
    for times in (1, 5, 12):
        net = Chain(Dense(1.0), Repeat(BLOCKS[name], times), Dense(1.0))
        curve = nngp.curves.compile_curve(net)
        assert found.variance[times] == pytest.approx(curve.variance, rel=1e-13)
        apart = curve.deficit([0.3, -0.6]) / curve.variance
        np.testing.assert_allclose(found.one_minus[times], apart, rtol=1e-11)


@pytest.mark.parametrize("weight_var", [0.3, 1.0, 2.0])
def test_residual_relu(weight_var):
    """K doubles its way: q (1 + w/2)^l; 1 - c obeys e' = e - κ e^{3/2}, so e ~ (2 / (κ l))²."""
    found = regimes.propagate(Residual(Act("relu"), Dense(weight_var)), 900, correlations=[0.5])
    expected = (1 + weight_var / 2) ** np.arange(found.depth + 1)
    np.testing.assert_allclose(found.variance, expected, rtol=1e-12)
    assert found.variance_law.rate == pytest.approx(1 / math.log1p(weight_var / 2), rel=1e-9)
    (law,) = found.one_minus_laws
    assert (law.kind, law.limit) == ("power", 0.0)
    assert law.rate == pytest.approx(2, abs=0.02)
    kappa = weight_var / (2 + weight_var) * 2 * math.sqrt(2) / (3 * math.pi)
    tail = found.one_minus[:, 0] ** -0.5  # grows by κ / 2 with each repetition
    assert np.diff(tail)[-1] == pytest.approx(kappa / 2, rel=0.02)


def test_layer_norm_behind_a_residual_block_changes_its_variance_only():
    block = Residual(Act("relu"), Dense(1.0))
    bare = regimes.propagate(block, 300)
    normed = regimes.propagate(Chain(block, LayerNorm()), 300)
    assert normed.variance_law == regimes.DepthLaw("constant", 1.0)
    np.testing.assert_allclose(normed.one_minus, bare.one_minus, rtol=1e-12)


def test_layer_norm_in_the_branch_makes_the_law_logarithmic():
    """q = 1 + l w / 2, so de / d log l = -κ e^{3/2}: e ~ (2 / (κ log l))²."""
    found = regimes.propagate(Residual(LayerNorm(), Act("relu"), Dense(1.0)), 1000)
    np.testing.assert_allclose(found.variance, 1 + np.arange(1001) / 2, rtol=1e-12)
    assert found.variance_law.rate == pytest.approx(1.0, abs=1e-6)
    for law in found.one_minus_laws:
        assert (law.kind, law.limit) == ("logarithmic", 0.0)
        assert law.rate == pytest.approx(2, abs=0.06)
    kappa, tail = 2 * math.sqrt(2) / (3 * math.pi), found.one_minus[:, 1] ** -0.5
    assert tail[1000] - tail[500] == pytest.approx(kappa / 2 * math.log(2), rel=0.1)


def test_a_saturating_branch_has_a_slow_power():
    """At large q erf is a sign: q ~ l and dc / d log l = (2/π) asin(c) - c, near c = 0 a power
    1 - 2/π."""
    found = regimes.propagate(Residual(Act("erf"), Dense(1.0)), 1500, correlations=[0.0, 0.3])
    assert found.variance_law.rate == pytest.approx(1, abs=0.01)
    still, law = found.one_minus_laws
    assert still.kind == "constant"
    assert law.kind == "power"
    assert law.limit == pytest.approx(1.0, abs=2e-3)
    assert law.rate == pytest.approx(1 - 2 / math.pi, abs=0.01)


@pytest.mark.parametrize("weight_var", [1.0, 3.0])
def test_a_layer_has_the_depth_scales_of_the_theory(weight_var):
    found = regimes.propagate(Chain(Act("erf"), Dense(weight_var, 0.1)), 300, correlations=[0.5])
    scales = regimes.depth_scale("erf", weight_var, 0.1)
    fixed = regimes.correlation_fixed_point("erf", weight_var, 0.1)
    assert found.variance_law.rate == pytest.approx(scales.xi_q, rel=1e-4)
    assert found.variance_law.limit == pytest.approx(
        regimes.variance_fixed_point("erf", weight_var, 0.1), rel=1e-9
    )
    assert found.one_minus_laws[0].rate == pytest.approx(scales.xi_c, rel=1e-4)
    assert found.one_minus_laws[0].limit == pytest.approx(1 - fixed, abs=1e-9)


def test_branches_over_the_depth_have_a_limit():
    """Residual blocks with w / L in all L of them: q tends to exp(w/2), with an error like 1/L."""
    ends = [
        regimes.propagate(Residual(Act("relu"), Dense(3.0 / times)), times).variance[-1]
        for times in (50, 100, 200)
    ]
    errors = np.exp(1.5) - np.array(ends)
    np.testing.assert_allclose(errors[:-1] / errors[1:], 2.0, rtol=0.05)


def test_dropout_keeps_equal_inputs_apart():
    found = regimes.propagate(Chain(Act("relu"), Dropout(0.8), Dense(1.5)), 200, correlations=[1.0])
    assert found.one_minus[1, 0] == pytest.approx(0.2)
    assert found.one_minus_laws[0].limit > 0.2


def test_a_variance_that_overflows_ends_the_sequence():
    found = regimes.propagate(Residual(Act("relu"), Dense(2.0)), 2000, correlations=[0.5])
    assert not found.complete
    assert 950 < found.depth < 970
    assert "leaves float64" in str(found)


BAD = [
    (lambda: regimes.propagate("relu"), "takes a part of a network"),
    (lambda: regimes.propagate(nngp.NTK(Dense(1.0))), "takes a part of a network"),
    (lambda: regimes.propagate(Act("relu")), "needs Gaussian units"),
    (lambda: regimes.propagate(Dense(1.0), 0), "depth"),
    (lambda: regimes.propagate(Dense(1.0), correlations=[1.5]), "correlations must be"),
    (lambda: regimes.propagate(Dense(1.0), input_var=0.0), "input_var must be"),
]


def test_bad_arguments_are_refused():
    for call, message in BAD:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


def test_a_diagnosis_of_any_network_is_that_of_its_curve():
    net = Chain(Dense(1.2, 0.1), Repeat(Residual(Act("erf"), Dense(0.5)), 8), Dense(1.0))
    found, curve = regimes.diagnose(net), nngp.curves.compile_curve(net)
    assert found.variance == curve.variance
    assert found.correlation == pytest.approx(float(curve(0.0)) / curve.variance, rel=1e-12)
    assert found.spread == pytest.approx(1 - found.correlation, rel=1e-12)
    slope = float(curve.derivative(1.0)) / curve.variance
    assert found.chi == pytest.approx(slope, rel=1e-9)
    assert found.recommendation.startswith("keep it")


def test_equal_layers_spelled_out_agree_with_their_own_diagnosis():
    net = nngp.Architecture(20, "relu", 1.6, 0.1)
    whole, spelled = regimes.diagnose(net), regimes.diagnose(net.chain)
    assert isinstance(spelled, regimes.NetworkDiagnosis)
    assert spelled.spread == whole.spread
    assert spelled.noise == whole.noise
    with_layers = regimes.diagnose(nngp.Architecture(1, "relu", 1.0, [0.1, 0.2]))
    assert isinstance(with_layers, regimes.NetworkDiagnosis)


def test_recommendations_for_networks_of_other_shapes():
    def of(*parts, **more):
        return regimes.diagnose(Chain(Dense(1.0), *parts, Dense(1.0)), **more).recommendation

    deep = nngp.Architecture(100, "erf", 0.5, 0.1).chain
    assert "below rounding" in regimes.diagnose(deep).recommendation
    skip = Residual(Act("relu"), Dense(1.0))
    assert "mind the scale" in of(Repeat(skip, 100))
    assert "smaller weight_var" in of(Repeat(skip, 2000))
    assert "below the noise" in of(Repeat(skip, 5), noise_var=1e6)
    assert "one direction" in of(skip, X=np.outer([1.0, 2.0], [1.0, 1.0]))
    assert regimes.diagnose(Chain(Dense(1.0), Act("sign"), Dense(1.0))).chi == math.inf
    assert "tangent kernel" in str(regimes.diagnose(nngp.NTK(Chain(Dense(1.0), skip))))
