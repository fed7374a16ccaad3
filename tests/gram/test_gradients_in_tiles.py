"""Sums Σ G dK/dθ over tiles that are not square, in several strips: against forward derivatives."""

import numpy as np
import pytest

import nngp
from nngp.gram import (
    TRIVIAL_SPLIT,
    EvaluationArrays,
    HostBackend,
    Inputs,
    LowerTriangle,
    kernel_derivatives,
)
from nngp.gram.host import lower_triangle, tiles

Act, Dense, Norm = nngp.Act, nngp.Dense, nngp.LayerNorm
BLOCK = nngp.Residual(Norm(), Act("erf"), Dense(1.3, 0.2))
NORMED = nngp.Chain(Dense(1.3, 0.2), nngp.Repeat(BLOCK, 2), Norm(), Act("relu"), Dense(0.9, 0.1))
NETWORKS = {
    "layer norm": NORMED,
    "its tangent kernel": nngp.NTK(NORMED),
    "an average": nngp.Invariant(NORMED, nngp.symmetries.signs([0], probability=0.3)),
    "chain": nngp.Architecture(2, "gelu", 1.4, 0.2),
}
CUTS = [(slice(0, 5), slice(0, 13)), (slice(5, 13), slice(0, 3)), (slice(5, 13), slice(3, 13))]


def contracted(net, X, G, cuts, *, per_layer=False, **options):
    sums = HostBackend().gradient(
        net, Inputs.of(X), split=TRIVIAL_SPLIT, per_layer=per_layer, **options
    )
    for rows, columns in cuts:
        sums.contract(G[rows, columns], rows, columns)
    return sums.result(float(G.sum()))


@pytest.fixture
def problem(monkeypatch):
    """Inputs, and numbers that are not symmetric; a strip has two rows at most."""
    monkeypatch.setattr(tiles, "STRIP", 26)
    rng = np.random.default_rng(4)
    X = rng.normal(size=(13, 3))
    X[7] = X[2]  # a duplicate, whose entry is a variance
    return X, rng.normal(size=(13, 13))


@pytest.mark.parametrize("name", NETWORKS)
def test_in_the_variances(name, problem):
    (X, G), net = problem, NETWORKS[name]
    found = contracted(net, X, G, CUTS)
    if isinstance(net, nngp.Invariant):
        turned = X * [-1.0, 1.0, 1.0]
        both = kernel_derivatives(net.network, Inputs.of(np.concatenate([X, turned])))
        # Signs on either side: equal with probability 0.7² + 0.3², different with the rest.
        expected = {k: 0.58 * K[:13, :13] + 0.42 * K[:13, 13:] for k, K in both.items()}
    else:
        expected = kernel_derivatives(net, Inputs.of(X))
    for kind in ("weight_var", "bias_var"):
        assert found[kind] == pytest.approx(np.vdot(G, expected[kind]), rel=1e-10)


@pytest.mark.parametrize("name", ["layer norm", "its tangent kernel", "chain"])
def test_in_the_inputs(name, problem):
    (X, G), net, h = problem, NETWORKS[name], 1e-5
    found = contracted(net, X, G, CUTS, per_input=True)["relevance"]
    for j in range(3):  # of a factor of x_j x'_j, at one
        moved = []
        for sign in (1, -1):
            scaled = X.copy()
            scaled[:, j] *= np.sqrt(1 + sign * h)
            moved.append(np.vdot(G, nngp.kernel(net, scaled)))
        assert found[j] == pytest.approx((moved[0] - moved[1]) / (2 * h), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("activation", ["erf", "gelu", "sin", "leaky_relu"])
def test_the_lower_triangle_in_strips(activation, monkeypatch):
    """Of a symmetric G, whose pairs it meets once and its diagonal half."""
    monkeypatch.setattr(lower_triangle, "TALLEST", 16)
    rng, net = np.random.default_rng(5), nngp.Architecture(2, activation, [1.5, 0.8, 1.1], 0.2)
    X, G = rng.normal(size=(40, 3)), rng.normal(size=(40, 40))
    G += G.T
    triangle = LowerTriangle(net, X, None, EvaluationArrays())
    K = np.tril(triangle.matrix(), -1)
    np.testing.assert_allclose(K, np.tril(nngp.kernel(net, X), -1), rtol=1e-12)
    found = triangle.backward(lambda rows: 2 * G[rows, : rows.stop])
    every = [(slice(0, 40), slice(0, 40))]
    expected = contracted(net, X, G, every, per_layer=True, per_input=True)
    np.testing.assert_allclose(found.weight_vars, expected["weight_var"], rtol=1e-10)
    np.testing.assert_allclose(found.bias_vars, expected["bias_var"], rtol=1e-10)
    relevance = 0.5 * np.einsum("ij,ij->j", X, found.inputs)
    np.testing.assert_allclose(relevance, expected["relevance"], rtol=1e-9)
