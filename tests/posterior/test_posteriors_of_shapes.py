"""Networks of any shape and tangent kernels behind the kernel matrix: every engine and solver gives
what dense linear algebra gives, derivatives of the evidence are those of differences,
draws work, and what is saved comes back."""

import numpy as np
import pytest
from engines import SmallTiles, jax_engine

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Residual, Sum

RNG = np.random.default_rng(0)
X, XS = RNG.standard_normal((30, 3)), RNG.standard_normal((5, 3))
X[7] = X[3]
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
NOISE = 0.05
NETWORKS = {
    "residual": Chain(Dense(1.5, 0.1), Residual(Act("relu"), Dense(0.8, 0.1)), Dense(1.0, 0.2)),
    "norm": Chain(Dense(1.5, 0.1), LayerNorm(), Act("erf"), Dense(1.2, 0.1)),
    "dropout": Chain(Dense(1.5, 0.1), Act("relu"), Dropout(0.8), Dense(1.0, 0.2)),
    "sum": Sum(Dense(1.0, 0.1), Chain(Dense(2.0, 0.1), Act("erf"), Dense(1.0, 0.1))),
    "product": Chain(Product(Dense(1.0, 0.2), Chain(Dense(2.0, 0.1), Act("gelu"))), Dense(1, 0.1)),
    "concat": Chain(Concat(Dense(1.0, 0.1), Chain(Dense(1.0, 0.1), Act("relu"))), Dense(1.3, 0.1)),
}
BOTH = [wrap(net) for net in NETWORKS.values() for wrap in (lambda net: net, nngp.NTK)]
# Each part once: the kernel of every other network, the tangent kernel of those between them.
EACH_PART = BOTH[0::4] + BOTH[3::4]
NORMS = (np.asarray, nngp.normalize)  # inputs of any norms, and of one


def dense(net, X, XS):
    """Posterior mean, variance and log evidence by plain NumPy."""
    K = nngp.kernel(net, X) + NOISE * np.eye(len(X))
    cross, inverse = nngp.kernel(net, XS, X), np.linalg.inv(K)
    variance = nngp.kernel_diag(net, XS) - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    _, log_det = np.linalg.slogdet(K)
    fit = np.einsum("ij,ik,kj->", Y, inverse, Y)
    evidence = -0.5 * (fit + 2 * log_det + Y.size * np.log(2 * np.pi))
    return cross @ inverse @ Y, variance, evidence


def check_conditioning(net, prepare, engine):
    inputs, test = prepare(X), prepare(XS)
    mean, variance, evidence = dense(net, inputs, test)
    posterior = nngp.condition(net, inputs, Y, noise_var=NOISE, engine=engine)
    found = posterior.predict(test)
    np.testing.assert_allclose(found[0], mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1], variance, rtol=0, atol=1e-9 * variance.max())
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-7)


@pytest.mark.parametrize("name", NETWORKS)
def test_conditioning(name):
    for net in (NETWORKS[name], nngp.NTK(NETWORKS[name])):
        for prepare in NORMS:
            check_conditioning(net, prepare, SmallTiles())


@pytest.mark.parametrize(
    "nets", [EACH_PART, pytest.param(BOTH, marks=pytest.mark.slow)], ids=["each part", "all"]
)
def test_conditioning_on_jax(nets):
    for k, net in enumerate(nets):
        check_conditioning(net, NORMS[k % 2], jax_engine())


def test_conjugate_gradients():
    inputs, test = nngp.normalize(X), nngp.normalize(XS)
    solver = nngp.CG(tolerance=1e-10)
    for net in EACH_PART:
        posterior = nngp.condition(net, inputs, Y, noise_var=NOISE, solver=solver)
        np.testing.assert_allclose(posterior.mean(test), dense(net, inputs, test)[0], atol=1e-7)


def moved(net, index, name, step):
    """The network with one variance of one affine map changed."""

    def change(values):
        if isinstance(values, list):
            return [change(one) for one in values]
        if not isinstance(values, dict):
            return values
        values = {key: change(one) for key, one in values.items()}
        if values.get("part") == "dense":
            if count[0] == index:
                values[name] += step
            count[0] += 1
        return values

    count = [0]
    return nngp.Network.from_dict(change(net.as_dict()))


GRADIENTS = [
    pytest.param(
        net,
        prepare,
        marks=[] if (net in EACH_PART) == (prepare is np.asarray) else pytest.mark.slow,
    )
    for net in BOTH
    for prepare in NORMS
]


@pytest.mark.parametrize(("net", "prepare"), GRADIENTS)
def test_evidence_gradients_are_those_of_differences(net, prepare):
    inputs, step = prepare(X[:6]), 1e-4

    def evidence(index, name, step):
        other = moved(net, index, name, step)
        return nngp.condition(other, inputs, Y[:6], noise_var=NOISE).log_evidence

    posterior = nngp.condition(net, inputs, Y[:6], noise_var=NOISE)
    each, whole = posterior.evidence_gradient(per_layer=True), posterior.evidence_gradient()
    for name in ("weight_var", "bias_var"):
        differences = [
            (evidence(i, name, step) - evidence(i, name, -step)) / (2 * step)
            for i in range(len(net.weight_vars))
        ]
        np.testing.assert_allclose(each[name], differences, rtol=2e-5, atol=2e-5)
        assert whole[name] == pytest.approx(each[name].sum(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("net", EACH_PART)
def test_derivatives_in_the_inputs(net):
    inputs, step = X[:10].copy(), 1e-5
    posterior = nngp.condition(net, inputs, Y[:10], noise_var=NOISE)
    found = posterior.evidence_gradient(per_input=True)["relevance"]
    for j in range(3):
        values = []
        for sign in (1, -1):
            scaled = inputs.copy()
            scaled[:, j] *= np.sqrt(1 + sign * step)
            values.append(nngp.condition(net, scaled, Y[:10], noise_var=NOISE).log_evidence)
        assert found[j] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("net", EACH_PART)
def test_leave_one_out_update_and_draws(net):
    posterior = nngp.condition(net, X, Y, noise_var=NOISE)
    mean, variance = posterior.leave_one_out()
    rest = np.delete(np.arange(30), 4)
    other = nngp.condition(net, X[rest], Y[rest], noise_var=NOISE)
    np.testing.assert_allclose(mean[4], other.mean(X[4:5])[0], atol=1e-9)
    np.testing.assert_allclose(variance[4], other.variance(X[4:5])[0], atol=1e-9)
    grown = nngp.condition(net, X[:20], Y[:20], noise_var=NOISE).update(X[20:], Y[20:])
    np.testing.assert_allclose(grown.mean(XS), posterior.mean(XS), atol=1e-9)
    assert posterior.sample(XS, n=3, seed=0).shape == (3, 5, 2)
    assert nngp.sample_prior(net, XS, n=2, seed=0).shape == (2, 5)
