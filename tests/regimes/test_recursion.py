"""Phases and depth scales agree with iterating the recursion itself."""

import numpy as np
import pytest
from plain_recursion import next_e, next_variance
from scipy.special import erf, ndtr

from nngp import regimes


def softsign(x):
    return x / (1 + np.abs(x))


SATURATING = {
    "tanh": np.tanh,
    "erf": erf,
    "sin": np.sin,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    softsign: softsign,
}
RECTIFYING = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * ndtr(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
}
SMOOTH = ("tanh", "erf", "sin", "gelu")
LAYERS = 10_000


def name_of(activation):
    return activation if isinstance(activation, str) else activation.__name__


def settings(activation):
    """Random networks on both sides of the critical line, none near it."""
    rng = np.random.default_rng(0)
    bias = rng.uniform(0.02, 2.0, 40)
    weight = regimes.critical_line(activation, bias) * np.exp(rng.uniform(-1.2, 1.0, 40))
    clear = np.abs(regimes.chi(activation, weight, bias) - 1) > 0.05
    return weight[clear][:12], bias[clear][:12]


def last_variance(phi, weight, bias):
    q = weight + bias
    for _ in range(LAYERS):
        before, q = q, np.clip(next_variance(phi, weight, bias, q), 0, 1e30)
        if np.all(np.abs(q - before) <= 1e-14 * q):
            break
    return q


def last_e(phi, weight, bias, q):
    e = np.full_like(q, 0.01)
    for _ in range(LAYERS):
        before, e = e, next_e(phi, weight, q, e, next_variance(phi, weight, bias, q))
        if np.all((np.abs(e - before) <= 1e-6 * e) | (e < 1e-8)):
            break
    return e


TAKE_LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("sin", "elu")]
OTHERS = [name for name in SATURATING | RECTIFYING if name not in ("sin", "elu")]


@pytest.mark.parametrize("activation", [*OTHERS, *TAKE_LONG], ids=name_of)
def test_phases(activation):
    phi = (SATURATING | RECTIFYING)[activation]
    weight, bias = settings(activation)
    q = last_variance(phi, weight, bias)
    finite = q < 1e29
    e = last_e(phi, weight[finite], bias[finite], q[finite])
    expected = np.full(weight.shape, "unbounded")
    quiet = "ordered" if activation in SATURATING else "bounded"
    expected[finite] = np.where(e < 1e-6, quiet, "chaotic")
    assert regimes.phase(activation, weight, bias).tolist() == expected.tolist()
    assert len(set(expected)) == 2  # both sides of the line were seen
    tolerance = 1e-5 if activation in SMOOTH else 0.02  # kinks between the nodes
    found = regimes.variance_fixed_point(activation, weight, bias)
    assert found[finite] == pytest.approx(q[finite], rel=tolerance)
    c = regimes.correlation_fixed_point(activation, weight[finite], bias[finite])
    assert 1 - c == pytest.approx(e, rel=10 * tolerance, abs=1e-6)


def test_a_vanishing_signal_without_bias():
    assert regimes.variance_fixed_point("tanh", 0.9, 0.0) == 0.0
    assert regimes.phase("tanh", [0.9, 1.0, 1.1], 0.0).tolist() == [
        "ordered",
        "critical",
        "chaotic",
    ]
    assert regimes.phase("gelu", 1.0, 0.0) == "unbounded"
    frozen = regimes.depth_scale("tanh", 0.9, 0.0)
    assert frozen.xi_c == np.inf
    assert frozen.xi_q == pytest.approx(-1 / np.log(0.9))
    assert regimes.correlation_fixed_point("tanh", 0.9, 0.0) == 1.0


@pytest.mark.parametrize(
    ("activation", "phi", "weight_var", "bias_var"),
    [
        ("tanh", np.tanh, 1.2, 0.3),
        ("tanh", np.tanh, 3.0, 0.1),
        ("erf", erf, 1.0, 0.1),
        ("sin", np.sin, 2.4, 0.2),
        ("gelu", RECTIFYING["gelu"], 1.7, 0.3),
        (softsign, softsign, 9.0, 0.1),
    ],
)
def test_depth_scales_are_the_measured_rates(activation, phi, weight_var, bias_var):
    scale = regimes.depth_scale(activation, weight_var, bias_var)
    weight, bias = np.array([weight_var]), np.array([bias_var])
    q, e = weight + bias, np.array([0.5])
    variances, es = [], []
    for _ in range(200):
        after = next_variance(phi, weight, bias, q)
        e, q = next_e(phi, weight, q, e, after), after
        variances.append(q[0])
        es.append(e[0])
    limit = 1 - regimes.correlation_fixed_point(activation, weight_var, bias_var)
    limit = limit if limit == 0 else es[-1]  # the plain quadrature's own fixed point
    assert measured(np.abs(np.array(es) - limit)) == pytest.approx(scale.xi_c, rel=0.01)
    assert measured(np.abs(np.array(variances) - variances[-1])) == pytest.approx(
        scale.xi_q, rel=0.01
    )


def measured(distance):
    """The depth scale from the last layers whose distance is well above rounding."""
    last = np.flatnonzero(distance > 1e-10)[-1] if distance[-1] == 0 else len(distance) - 1
    first = last - max(2, last // 3)
    return (last - first) / np.log(distance[first] / distance[last])
