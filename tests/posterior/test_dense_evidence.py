"""The lean evidence against the posterior, differences, and mpmath; duplicates and near points."""

import mpmath
import numpy as np
import pytest

import nngp
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.gram import has_lower_triangle
from nngp.gram.host import lower_triangle
from nngp.posterior.evidence.dense_evidence import DenseEvidence


def data(n=40, d=3, outputs=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    X[5], X[7] = X[3], X[6] + 1e-9  # a duplicate, and a near one
    return X, rng.normal(size=(n, outputs))


NETWORKS = [
    nngp.Architecture(2, "relu", (1.5, 2.0, 0.7), (0.2, 0.1, 0.3)),
    nngp.Architecture(3, "erf", (1.5, 2.0, 0.7, 3.0), (0.2, 0.1, 0.3, 0.4)),
    nngp.Architecture(1, "gelu", 1.5, 0.2),
    nngp.Architecture(2, "gaussian", 1.5, 0.2),
    nngp.Architecture(1, "relu2", 1.5, 0.2),
    nngp.Architecture(0, "relu", 1.5, 0.2),
    nngp.Chain(
        nngp.Dense(1.5, 0.2),
        nngp.Residual(nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(0.7, 0.3)),
        nngp.Product(nngp.Chain(nngp.Act("erf"), nngp.Dense(1.1, 0.1)), nngp.Act("gelu")),
        nngp.Dense(0.9, 0.2),
    ),
    nngp.Chain(
        nngp.Dense(1.5, 0.2),
        nngp.Repeat(nngp.Residual(nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(0.7, 0.3)), 2),
        nngp.Dense(0.9, 0.2),
    ),
    nngp.Chain(  # no state is used twice, so what enters a map may be overwritten
        nngp.Dense(1.5, 0.2),
        nngp.LayerNorm(),
        nngp.Dense(1.2, 0.3),
        nngp.Dense(0.7, 0.1),
        nngp.Act("erf"),
        nngp.Dropout(0.8),
        nngp.Dense(1.1, 0.4),
        nngp.LayerNorm(),
        nngp.Act("relu"),
        nngp.Dense(0.9, 0.2),
    ),
]


def test_against_the_posterior():
    for net in NETWORKS:
        X, Y = data()
        posterior = nngp.condition(net, X, Y, noise_var=0.05, engine="cpu")
        options = {"per_layer": True, "per_input": True}
        loo, of_loo = posterior.leave_one_out_density(**options)
        expected = {
            "evidence": (posterior.log_evidence, posterior.evidence_gradient(**options)),
            "loo": (loo, of_loo),
        }
        for criterion, (value, gradient) in expected.items():
            found = DenseEvidence().evaluate(net, X, Y, np.full(len(X), 0.05), criterion=criterion)
            assert found.value == pytest.approx(value, rel=1e-10)
            np.testing.assert_allclose(found.weight_vars, gradient["weight_var"], rtol=1e-8)
            np.testing.assert_allclose(found.bias_vars, gradient["bias_var"], rtol=1e-8)
            assert found.noise.sum() == pytest.approx(gradient["noise_var"], rel=1e-8)
            relevance = 0.5 * (found.inputs * X).sum(axis=0)
            np.testing.assert_allclose(relevance, gradient["relevance"], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    ("activation", "criterion"), [("relu", "evidence"), ("erf", "loo"), ("sin", "evidence")]
)
def test_inputs_and_row_noise_against_differences(activation, criterion):
    X, Y = data()
    net = nngp.Architecture(2, activation, 1.5, 0.3)
    rng = np.random.default_rng(1)
    noise, weights = rng.uniform(0.05, 0.2, len(X)), rng.uniform(0.5, 2.0, len(X))
    dX, dnoise, h = rng.normal(size=X.shape), rng.normal(size=len(X)), 1e-5
    dX[5] = dX[3]  # duplicates move together: apart they leave the kernel's kink

    def value(t, u, gradient=False):
        return DenseEvidence().evaluate(
            net, X + t * dX, Y, noise + u * dnoise, criterion=criterion, weights=weights,
            gradient=gradient,
        )  # fmt: skip

    exact = value(0, 0, True)
    by_inputs = (value(h, 0).value - value(-h, 0).value) / (2 * h)
    by_noise = (value(0, h).value - value(0, -h).value) / (2 * h)
    assert np.vdot(exact.inputs, dX) == pytest.approx(by_inputs, rel=2e-5)
    assert exact.noise @ dnoise == pytest.approx(by_noise, rel=1e-5)


def test_against_mpmath():
    """Five points, row-wise noise, ReLU of depth 2, in 40 digits."""
    X, Y = (part[8:13, : 2 - k].copy() for k, part in enumerate(data()))
    X[4] = X[3]
    noise, (w, b) = np.array([0.1, 0.2, 1e-3, 0.4, 1e-3]), (1.7, 0.2)
    net = nngp.Architecture(2, "relu", w, b)
    mpmath.mp.dps = 40
    rows = [[mpmath.mpf(float(x)) for x in row] for row in X]
    K = mpmath.matrix(5, 5)
    for i in range(5):
        for j in range(5):
            products = [sum(p * q for p, q in zip(rows[a], rows[c], strict=True)) / 2
                        for a, c in ((i, i), (j, j), (i, j))]  # fmt: skip
            q1, q2, k = (b + mpmath.mpf(w) * one for one in products)
            for _ in range(2):
                c = min(k / mpmath.sqrt(q1 * q2), mpmath.mpf(1))
                angle = mpmath.acos(c)
                k = mpmath.sqrt(q1 * q2) * (mpmath.sin(angle) + (mpmath.pi - angle) * c)
                k, q1, q2 = (b + w * one for one in (k / (2 * mpmath.pi), q1 / 2, q2 / 2))
            K[i, j] = k + (mpmath.mpf(float(noise[i])) if i == j else 0)
    y = mpmath.matrix([float(v) for v in Y[:, 0]])
    fit = (y.T * mpmath.lu_solve(K, y))[0]
    exact = -(fit + mpmath.log(mpmath.det(K)) + 5 * mpmath.log(2 * mpmath.pi)) / 2
    found = DenseEvidence().evaluate(net, X, Y, noise, gradient=False)
    assert found.value == pytest.approx(float(exact), rel=1e-11)


def test_strips_threads_and_memory_change_nothing(monkeypatch):
    """Many strips or one, layers kept or recomputed, used memory: one answer."""
    from concurrent.futures import ThreadPoolExecutor

    X, Y = data(150)
    net, noise = nngp.Architecture(2, "erf", 1.5, 0.3), np.full(150, 0.05)
    lean = DenseEvidence()
    first = lean.evaluate(net, X, Y, noise)
    lean.evaluate(nngp.Architecture(3, "relu", 1.0, 0.1), X[:90], Y[:90], noise[:90])
    monkeypatch.setattr(lower_triangle, "KEPT", 0)
    with ThreadPoolExecutor(2) as pool:
        threaded = DenseEvidence(pool).evaluate(net, X, Y, noise)
    for again in (lean.evaluate(net, X, Y, noise), threaded):
        assert again.value == first.value
        np.testing.assert_allclose(again.inputs, first.inputs, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(again.weight_vars, first.weight_vars, rtol=1e-12)


def test_what_it_refuses():
    assert not has_lower_triangle(nngp.Architecture(2, "tanh"))
    assert not has_lower_triangle(nngp.Architecture(2, "sign"))
    assert not has_lower_triangle(nngp.Architecture(50, "relu"))
    X, Y = np.array([[1.0], [1.0]]), np.zeros((2, 1))
    net = nngp.Architecture(1, "relu", 1.0, 0.0)
    with pytest.raises(NotPositiveDefiniteError):
        DenseEvidence().evaluate(net, 0.0 * X, Y, np.zeros(2), gradient=False)
    with pytest.raises(VarianceError):
        DenseEvidence().evaluate(net, 0.0 * X, Y, np.ones(2))
    assert np.isfinite(DenseEvidence().evaluate(net, 0.0 * X, Y, np.ones(2), gradient=False).value)
