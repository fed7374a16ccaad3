"""Gradients of predictions: against finite differences of predictions, against mpmath, and against
autodiff of the kernel, for inputs of equal norm and of any norms."""

import math

import mpmath
import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(4)
X, XS = RNG.normal(size=(30, 3)), RNG.normal(size=(5, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
BLOCK = nngp.Residual(nngp.LayerNorm(), nngp.Act("erf"), nngp.Dense(0.7, 0.1))
RESIDUAL = nngp.Chain(
    nngp.Dense(1.5, 0.2), nngp.Repeat(BLOCK, 2), nngp.Act("relu"), nngp.Dense(1.0)
)
NETS = {
    "linear": nngp.Architecture(0, "relu", 1.5, 0.2),
    "relu": nngp.Architecture(3, "relu", 1.6, 0.1),
    "erf": nngp.Architecture(2, "erf", 2.0, 0.3),
    "tanh": nngp.Architecture(2, "tanh", 1.5, 0.2),
    "residual": RESIDUAL,
    "tangent": nngp.NTK(nngp.Architecture(2, "erf", 2.0, 0.3)),
    "tangent relu": nngp.NTK(nngp.Architecture(2, "relu", 2.0, 0.3)),
    "tangent residual": nngp.NTK(RESIDUAL),
}


def differences(function, points, h=1e-4):
    """Central differences of fourth order in every coordinate: (m, d, ...)."""
    out = []
    for axis in np.eye(points.shape[1]):
        far, near = (function(points + s * h * axis) for s in (2, 1))
        nearer, farther = (function(points - s * h * axis) for s in (1, 2))
        out.append((8 * (near - nearer) - (far - farther)) / (12 * h))
    return np.stack(out, axis=1)


@pytest.mark.parametrize("norms", ["any", "one", "training", "test"])
@pytest.mark.parametrize("net", NETS)
def test_gradients_are_those_of_differences(net, norms):
    train = nngp.normalize(X) if norms in ("one", "training") else X
    test = nngp.normalize(XS) if norms in ("one", "test") else XS
    posterior = nngp.condition(NETS[net], train, Y, noise_var=0.01)
    mean, variance = posterior.predict_gradient(test)
    assert mean.shape == (5, 3, 2)
    assert variance.shape == (5, 3)
    np.testing.assert_allclose(mean, differences(posterior.mean, test), atol=2e-8)
    np.testing.assert_allclose(variance, differences(posterior.variance, test), atol=2e-8)
    alone = posterior.predict_gradient(test, variance=False)
    np.testing.assert_array_equal(alone.mean, mean)
    assert alone.variance is None


def exact_gradient(net, train, y, x, noise, digits=60):
    """The gradient of mean and variance by mpmath, from differences with many digits."""
    with mpmath.workdps(digits):
        d, h = len(x), mpmath.mpf(10) ** (-digits // 3)

        def kernel(a, b):
            dot = [mpmath.fdot(p, q) / d for p, q in ((a, a), (b, b), (a, b))]
            q, r, s = (net.bias_vars[0] + net.weight_vars[0] * one for one in dot)
            for w, bias in zip(net.weight_vars[1:], net.bias_vars[1:], strict=True):
                root = mpmath.sqrt(q * r)
                angle = mpmath.acos(min(s / root, mpmath.mpf(1)))
                s = (
                    root
                    / (2 * mpmath.pi)
                    * (mpmath.sin(angle) + (mpmath.pi - angle) * mpmath.cos(angle))
                )
                q, r, s = bias + w * q / 2, bias + w * r / 2, bias + w * s
            return s

        rows = [[mpmath.mpf(float(v)) for v in row] for row in train]
        K = mpmath.matrix([[kernel(a, b) for b in rows] for a in rows])
        K += noise * mpmath.eye(len(rows))
        alpha = mpmath.lu_solve(K, mpmath.matrix([mpmath.mpf(float(v)) for v in y]))

        def predict(point):
            k = mpmath.matrix([kernel(point, b) for b in rows])
            left = kernel(point, point) - (k.T * mpmath.lu_solve(K, k))[0]
            return (k.T * alpha)[0], left

        point, found = [mpmath.mpf(float(v)) for v in x], []
        for i in range(d):
            moved = [[p + (s * h if j == i else 0) for j, p in enumerate(point)] for s in (1, -1)]
            found.append([(a - b) / (2 * h) for a, b in zip(*map(predict, moved), strict=True)])
        return np.array(found, dtype=float).T


@pytest.mark.parametrize(("net", "rtol"), [(NETS["relu"], 1e-9), (nngp.Architecture(25), 2e-7)])
def test_gradients_are_those_of_mpmath(net, rtol):
    """Of a deep network too, whose kernel hardly depends on its inputs."""
    train, test = nngp.normalize(X[:6]), nngp.normalize(XS[:1])
    noise = 1e-3 * nngp.curves.compile_curve(net).scale
    posterior = nngp.condition(net, train, Y[:6, 0], noise_var=noise)
    mean, variance = posterior.predict_gradient(test)
    exact_mean, exact_variance = exact_gradient(net, train, Y[:6, 0], test[0], noise)
    np.testing.assert_allclose(mean[0], exact_mean, atol=rtol * np.abs(exact_mean).max())
    np.testing.assert_allclose(
        variance[0], exact_variance, atol=rtol * np.abs(exact_variance).max()
    )


@pytest.mark.parametrize("norms", ["any", "one"])
def test_test_points_may_be_training_points(norms):
    """A kernel of relu has a derivative there; its tangent kernel has two, and this is their
    mean."""
    train = nngp.normalize(X) if norms == "one" else X
    for net in (NETS["relu"], NETS["tangent relu"], NETS["erf"]):
        posterior = nngp.condition(net, train, Y[:, 0], noise_var=0.01)
        mean, variance = posterior.predict_gradient(train[:4])
        for function, found in ((posterior.mean, mean), (posterior.variance, variance)):
            one, other = (differences(function, train[:4], h) for h in (1e-4, 1e-5))
            np.testing.assert_allclose(found, one, atol=3 * np.abs(one - other).max() + 1e-7)


def test_parallel_inputs_and_zeros():
    net = NETS["relu"]
    train = np.vstack([X, -X[:2], 2.0 * X[2:4]])
    posterior = nngp.condition(net, train, np.sin(train[:, 0]), noise_var=0.01)
    points = np.vstack([3.0 * X[:1], 0.5 * X[2:3], np.zeros((1, 3))])
    mean, variance = posterior.predict_gradient(points)
    np.testing.assert_allclose(mean, differences(posterior.mean, points), atol=1e-6)
    np.testing.assert_allclose(variance, differences(posterior.variance, points), atol=1e-6)


def test_infinite_depth_stays_on_the_sphere():
    net = nngp.Architecture(math.inf, "erf", 1.2, 0.3)
    train, test = nngp.normalize(X), nngp.normalize(XS)
    posterior = nngp.condition(net, train, Y[:, 0], noise_var=0.01)
    mean, variance = posterior.predict_gradient(test)
    on_sphere = [lambda P, f=f: f(nngp.normalize(P)) for f in (posterior.mean, posterior.variance)]
    np.testing.assert_allclose(mean, differences(on_sphere[0], test), atol=1e-7)
    np.testing.assert_allclose(variance, differences(on_sphere[1], test), atol=1e-7)
    assert np.abs(np.sum(mean * test, axis=1)).max() < 1e-12


@pytest.mark.parametrize("norms", ["any", "one"])
def test_averages_over_orders_of_the_columns(norms):
    net = nngp.Invariant(
        NETS["erf"], [nngp.symmetries.permutations([[0], [1], [2]], kind="cyclic")]
    )
    train, test = (nngp.normalize(P) if norms == "one" else P for P in (X, XS))
    posterior = nngp.condition(net, train, Y[:, 0], noise_var=0.01)
    mean, variance = posterior.predict_gradient(test)
    np.testing.assert_allclose(mean, differences(posterior.mean, test), atol=2e-8)
    np.testing.assert_allclose(variance, differences(posterior.variance, test), atol=2e-8)


def test_tiles_and_several_blocks_change_nothing(monkeypatch):
    posterior = nngp.condition(NETS["relu"], X, Y, noise_var=0.01)
    mean, variance = posterior.predict_gradient(XS)
    monkeypatch.setattr("nngp.gram.host.input_gradient.COLUMNS", 7)
    monkeypatch.setattr("nngp.gram.host.tiles.STRIP", 14)
    monkeypatch.setattr("nngp.posterior.predictive_gradient.TEST_ROWS", 3)
    again = posterior.predict_gradient(XS)
    np.testing.assert_allclose(again.mean, mean, atol=1e-13)
    np.testing.assert_allclose(again.variance, variance, atol=1e-13)


def test_without_a_factor_there_is_the_mean_alone():
    posterior = nngp.condition(NETS["relu"], X, Y[:, 0], noise_var=0.1, solver="cg")
    wanted = nngp.condition(NETS["relu"], X, Y[:, 0], noise_var=0.1).predict_gradient(XS)
    found = posterior.predict_gradient(XS, variance=False).mean
    np.testing.assert_allclose(found, wanted.mean, atol=1e-6)
    with pytest.raises(nngp.errors.NoFactorError, match="derivative of the variance"):
        posterior.predict_gradient(XS)


def test_what_has_no_derivative_is_said():
    headed = nngp.WithHead(
        nngp.Invariant(NETS["erf"], [nngp.symmetries.permutations([[0], [1], [2]], kind="cyclic")]),
        nngp.Architecture(1),
    )
    posterior = nngp.condition(headed, X, Y[:, 0], noise_var=0.1)
    with pytest.raises(TypeError, match=r"nngp\.WithHead"):
        posterior.predict_gradient(XS)
    with pytest.raises(ValueError, match="has 2 features"):
        nngp.condition(NETS["erf"], X, Y[:, 0]).predict_gradient(XS[:, :2])
