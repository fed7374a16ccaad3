"""Parameters of activations as hyper-parameters.

The oracle is exact: erf(s x) behind units of variance q is erf behind units of variance s² q, so a
derivative in s is one in the variances of the layers before, which closed forms give.
"""

import numpy as np
import pytest
from scipy import special

import nngp

X = np.random.default_rng(0).standard_normal((12, 3))
Y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(12)
POINTS = {"equal norms": nngp.normalize(X), "any norms": X}


def steep(x, s):
    return special.erf(s * x)


def bent(x, place, height):
    return np.where(x > place, x, height * x + (1 - height) * place)


def networks(depth, s=0.8):
    own = nngp.Activation(steep, params={"s": s})
    known = nngp.Activation.scaled("erf", b=s)
    return [nngp.Architecture(depth, phi, 1.7, 0.3) for phi in (own, known)]


def in_s(known, by_layer, s=0.8):
    """dE/ds from the derivatives in the variances of all layers but the last."""
    total = 0.0
    for name, values in (("weight_var", known.weight_vars), ("bias_var", known.bias_vars)):
        total += np.dot(values[:-1], by_layer[name][:-1])
    return 2 * total / s


@pytest.mark.parametrize("norms", POINTS)
def test_gradient_of_the_evidence(norms):
    own, known = networks(3)
    found, exact = (nngp.condition(net, POINTS[norms], Y, noise_var=0.02) for net in (own, known))
    expected = in_s(known, exact.evidence_gradient(per_layer=True))
    assert found.evidence_gradient()["s"] == pytest.approx(expected, rel=1e-7)
    expected = in_s(known, exact.leave_one_out_density(per_layer=True)[1])
    assert found.leave_one_out_density()[1]["s"] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("depth", "noise"), [(4, 1e-3), (25, 1e-13)])
def test_deep_networks_and_relative_noise(depth, noise):
    """Where the kernel is a constant and a remainder, of a few per cent or of 1e-9."""
    own, known = networks(depth, s=0.5)
    inputs = POINTS["equal norms"]
    curve = nngp.curves.compile_curve(known)
    assert curve.scale < 0.1 * curve.variance
    for options in ({"noise_var": noise}, {"noise_var": 0.1, "relative_noise": True}):
        found, exact = (nngp.condition(net, inputs, Y, **options) for net in (own, known))
        expected = in_s(known, exact.evidence_gradient(per_layer=True), s=0.5)
        assert found.evidence_gradient()["s"] == pytest.approx(expected, rel=1e-6)


def test_kinks_that_move_with_a_parameter():
    """Against a quotient of differences of the evidence itself."""
    phi = nngp.Activation(bent, params={"place": 0.4, "height": 0.2})
    part = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Act(phi), nngp.Dense(1.0))
    for net in (part, nngp.Invariant(part, nngp.symmetries.permutations([0, 1]))):
        inputs = POINTS["equal norms"]

        def evidence(net=net, inputs=inputs, **values):
            return nngp.condition(net.with_params(**values), inputs, Y, noise_var=0.1).log_evidence

        found = nngp.condition(net, inputs, Y, noise_var=0.1).evidence_gradient()
        for name, value in net.params.items():
            step = 1e-3
            slope = [evidence(**{name: value + k * step}) for k in (-1, 1)]
            quotient = (slope[1] - slope[0]) / (2 * step)
            assert found[name] == pytest.approx(quotient, rel=1e-4)


def test_jax_kernel():
    import jax
    import jax.numpy as jnp

    phi = nngp.Activation(lambda x, s: jnp.tanh(s * x), params={"s": 0.8})
    one = nngp.Architecture(1, phi, 1.5, 0.2)
    for net in (one, nngp.NTK(one)):
        with jax.enable_x64(True):
            k = nngp.jax_kernel(net)
            x1, x2 = jnp.asarray(X[0]), jnp.asarray(X[1])
            expected = nngp.kernel(net, X[:2])[0, 1]
            assert float(k(x1, x2)) == pytest.approx(expected, rel=1e-9)
            moved = nngp.kernel(net.with_params(s=1.1), X[:2])[0, 1]
            assert float(k(x1, x2, params={"s": 1.1})) == pytest.approx(moved, rel=1e-9)
            slope = jax.grad(lambda s: k(x1, x2, params={"s": s}))(0.8)  # noqa: B023
            step = [nngp.kernel(net.with_params(s=0.8 + h), X[:2])[0, 1] for h in (-1e-4, 1e-4)]
            assert float(slope) == pytest.approx((step[1] - step[0]) / 2e-4, rel=1e-7)


@pytest.mark.slow
def test_the_estimators_learn_them():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((30, 1))
    targets = np.sin(4 * rows[:, 0])
    phi = nngp.Activation(lambda x, w: np.cos(w * x), params={"w": 0.5})
    model = nngp.NNGPRegressor(activation=phi, depth=1, effort="fast", random_state=0)
    model.fit(rows, targets)
    assert model.network_.params["w"] != 0.5
    new = np.linspace(-1, 1, 9)[:, None]
    np.testing.assert_allclose(model.predict(new), np.sin(4 * new[:, 0]), atol=0.2)


def test_parameters_are_checked():
    phi = nngp.Activation(steep, params={"s": 1})
    assert phi == nngp.Activation(steep, params={"s": 1.0}) != phi.with_params(s=2.0)
    with pytest.raises(ValueError, match="has no parameter 't'; it has s"):
        phi.with_params(t=1.0)
    with pytest.raises(ValueError, match="must be a finite number"):
        nngp.Activation(steep, params={"s": np.nan})
    with pytest.raises(ValueError, match="cannot be the name of a parameter"):
        nngp.Activation(steep, params={"noise_var": 1.0})
    with pytest.raises(TypeError, match="dictionary of names and numbers"):
        nngp.Activation(steep, params=["s"])
    with pytest.raises(TypeError, match="use with_params"):
        phi.params["s"] = 2.0
    two = nngp.Chain(
        nngp.Dense(1.0),
        nngp.Act(phi),
        nngp.Dense(1.0),
        nngp.Act(phi.with_params(s=2.0)),
        nngp.Dense(1.0),
    )
    with pytest.raises(ValueError, match="give one of them another name"):
        nngp.condition(two, X, Y, noise_var=0.1).evidence_gradient()
    with pytest.raises(ValueError, match="must be scaled inside"):
        nngp.Activation.scaled(phi, 2.0)
