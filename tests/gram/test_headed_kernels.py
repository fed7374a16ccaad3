"""Layers on top of an average: the same as by hand, as sampled networks, and on every engine."""

import mpmath
import numpy as np
import pytest

import nngp
from nngp import images, symmetries
from nngp.gram import TRIVIAL_SPLIT

RNG = np.random.default_rng(3)
BASE = nngp.Architecture(2, "relu", 1.7, 0.2)
HEADS = {
    "relu": nngp.Architecture(3, "relu", 2.0, 0.1),
    "erf": nngp.Architecture(2, "erf", 3.0, 0.3),
    "linear": nngp.Chain(nngp.Dense(1.5, 0.25)),
}


def average(d=9):
    return nngp.Invariant(BASE, [images.flips((3, 3)), images.shifts(1, (3, 3), width=0.8)])


def headed(head="relu"):
    return nngp.WithHead(average(), HEADS[head])


def rows(n, unit=True):
    X = np.random.default_rng(n).standard_normal((n, 9))
    return nngp.normalize(X) if unit else X


def by_hand(net, X, Z):
    """From the average's own kernel, and the head's between vectors of norm one in the plane."""
    K = nngp.kernel(net.average, X, Z)
    own, other = (nngp.kernel_diag(net.average, one) for one in (X, Z))
    c = np.clip(K / np.sqrt(np.outer(own, other)), -1, 1)
    first, out = np.sqrt(2) * np.array([[1.0, 0.0]]), np.empty_like(c)
    for index, value in np.ndenumerate(c):
        second = np.sqrt(2) * np.array([[value, np.sqrt(1 - value**2)]])
        out[index] = nngp.kernel(net.head, first, second)[0, 0]
    return out


@pytest.mark.parametrize(("head", "unit"), [("relu", True), ("erf", False), ("linear", False)])
def test_by_hand(head, unit):
    net, X, Z = headed(head), rows(12, unit), rows(7, unit)
    np.testing.assert_allclose(nngp.kernel(net, X, Z), by_hand(net, X, Z), rtol=1e-10)
    K = nngp.kernel(net, X)
    np.testing.assert_allclose(K, by_hand(net, X, X), rtol=1e-7)  # the plane has no near pairs
    assert (K == K.T).all()
    np.testing.assert_allclose(K.diagonal(), nngp.kernel_diag(net, X), rtol=1e-14)


def test_sampled_networks():
    """Wide networks: a layer, a relu, an average over mirror images, a norm, a layer and a relu."""
    width, draws, rng = 1000, 150, np.random.default_rng(5)
    net = nngp.WithHead(
        nngp.Invariant(nngp.Architecture(1, "relu", 2.0, 0.0), images.flips((1, 4))),
        nngp.Architecture(1, "relu", 2.0, 0.0),
    )
    X = nngp.normalize(rng.standard_normal((4, 4)))

    def weights(rows):
        return rng.standard_normal((rows, width)) * np.sqrt(2.0 / rows)

    total = np.zeros((4, 4))
    for _ in range(draws):
        first, second, third = weights(4), weights(width), weights(width)
        pooled = sum(np.maximum(one @ first, 0) @ second for one in (X, X[:, ::-1])) / 2
        pooled /= np.sqrt((pooled**2).mean(axis=1, keepdims=True))
        hidden = np.maximum(pooled @ third, 0)
        total += 2.0 * hidden @ hidden.T / width
    np.testing.assert_allclose(total / draws, nngp.kernel(net, X), rtol=0.03)


def tangent(net):
    below = nngp.Invariant(nngp.NTK(net.average.network), net.average.transformations)
    return nngp.WithHead(below, nngp.NTK(net.head))


@pytest.mark.parametrize("unit", [True, False])
def test_an_average_over_nothing_is_layer_norm(unit):
    """Then all of it is one network, whose tangent kernel the walk knows."""
    X, Z = rows(8, unit), rows(5, unit)
    average = nngp.Invariant(BASE, symmetries.signs(probability=0.0))
    for head in HEADS.values():
        net = tangent(nngp.WithHead(average, head))
        plain = nngp.NTK(nngp.Chain(BASE.chain, nngp.LayerNorm(), getattr(head, "chain", head)))
        np.testing.assert_allclose(nngp.kernel(net, X, Z), nngp.kernel(plain, X, Z), rtol=1e-12)
        np.testing.assert_allclose(nngp.kernel(net, X), nngp.kernel(plain, X), rtol=1e-12)
        np.testing.assert_allclose(nngp.kernel_diag(net, X), nngp.kernel_diag(plain, X), rtol=1e-12)


@pytest.mark.parametrize(("head", "unit"), [("relu", True), ("erf", False)])
def test_tangent_kernels_by_hand(head, unit):
    """Weights of the head, and those below it, which are moved by the slope of the head."""
    net, X, Z = headed(head), rows(7, unit), rows(4, unit)
    own, other = (nngp.kernel_diag(net.average, one) for one in (X, Z))
    c = nngp.kernel(net.average, X, Z) / np.sqrt(np.outer(own, other))
    below = nngp.kernel(tangent(net).average, X, Z) / np.sqrt(np.outer(own, other))
    curve, of_head = (
        nngp.curves.compile_curve(net.head),
        nngp.curves.compile_curve(nngp.NTK(net.head)),
    )
    slope = (curve(c + 1e-6) - curve(c - 1e-6)) / 2e-6
    expected = of_head(c) + slope * below
    np.testing.assert_allclose(nngp.kernel(tangent(net), X, Z), expected, rtol=1e-8)
    K = nngp.kernel(tangent(net), X)
    np.testing.assert_allclose(K.diagonal(), nngp.kernel_diag(tangent(net), X), rtol=1e-14)
    assert np.linalg.eigvalsh(K).min() > 0


def test_tangent_kernels_on_every_engine_and_for_training():
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    net, X, Z = headed(), rows(30), rows(5)
    y = RNG.standard_normal(30)
    K, cross = nngp.kernel(tangent(net), X), nngp.kernel(tangent(net), Z, X)
    mean = cross @ np.linalg.solve(K + 0.1 * np.eye(30), y)
    for engine in ("cpu", GpuEngine(jax.devices()[0], tile=16)):
        posterior = nngp.condition(tangent(net), X, y, noise_var=0.1, engine=engine)
        np.testing.assert_allclose(posterior.mean(Z), mean, atol=1e-9)
        assert posterior.report.kernel_error < 1e-9
        with pytest.raises(ValueError, match="derivatives of the tangent kernel"):
            posterior.evidence_gradient()
    trained = nngp.training.train_ensemble(net, X, y, engine="cpu")
    found = cross @ np.linalg.solve(K, y)
    np.testing.assert_allclose(trained.mean(Z), found, atol=1e-6)


@pytest.mark.parametrize("of", [lambda net: net, tangent])
def test_as_functions_of_jax(of):
    jax = pytest.importorskip("jax")
    net, X, Z = of(headed("erf")), rows(3, unit=False), rows(2, unit=False)
    with jax.enable_x64(True):
        k = jax.jit(nngp.jax_kernel(net))
        found = [[float(k(x, z)) for z in Z] for x in X]
        slope = float(jax.grad(k, argnums=4)(X[0], Z[0], None, None, 3.0))
        moved = [float(k(X[0], Z[0], None, None, 3.0 + step)) for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(found, nngp.kernel(net, X, Z), rtol=1e-12)
    assert slope == pytest.approx((moved[0] - moved[1]) / 2e-5, rel=1e-8)


def test_it_has_the_invariances_of_its_average():
    X = rows(6)
    turned = X.reshape(6, 3, 3)[:, :, ::-1].reshape(6, 9)
    net = nngp.WithHead(nngp.Invariant(BASE, images.flips((3, 3))), HEADS["relu"])
    K = nngp.kernel(net, X)
    np.testing.assert_allclose(nngp.kernel(net, X, turned), K, rtol=1e-7)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert net.products(9) == 2


@pytest.mark.parametrize(("head", "unit"), [("relu", True), ("erf", False)])
def test_posteriors_are_those_of_the_kernel(head, unit):
    """On the CPU and on JAX, against NumPy with the kernel matrix."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    net, X, Z = headed(head), rows(90, unit), rows(11, unit)
    Y = RNG.standard_normal((90, 2)) + 1.0
    K, cross, own = nngp.kernel(net, X), nngp.kernel(net, Z, X), nngp.kernel_diag(net, Z)
    system = K + 0.05 * np.eye(90)
    mean = cross @ np.linalg.solve(system, Y)
    var = own - np.einsum("ij,ji->i", cross, np.linalg.solve(system, cross.T))
    for engine in ("cpu", GpuEngine(jax.devices()[0], tile=64)):
        posterior = nngp.condition(net, X, Y, noise_var=0.05, engine=engine)
        found = posterior.predict(Z)
        np.testing.assert_allclose(found[0], mean, atol=1e-9)
        np.testing.assert_allclose(found[1], var, atol=1e-9)
        sign, log_det = np.linalg.slogdet(system)
        fit = np.vdot(Y, np.linalg.solve(system, Y))
        expected = -0.5 * (fit + 2 * (log_det + 90 * np.log(2 * np.pi)))
        assert sign == 1
        assert posterior.log_evidence == pytest.approx(expected, rel=1e-9)
        assert posterior.report.kernel_error < 1e-9
        posterior.update(rows(20, unit), RNG.standard_normal((20, 2)))
        assert posterior.n == 110


def exact_relu(c, depth, weight_var, bias_var):
    """The kernel of a relu chain for inputs of norm one and cosine c, by mpmath."""
    cov, var = weight_var * c + bias_var, weight_var + bias_var
    for _ in range(depth):
        r = cov / var
        angle = mpmath.sqrt(1 - r**2) + (mpmath.pi - mpmath.acos(r)) * r
        cov, var = (
            weight_var * var * angle / (2 * mpmath.pi) + bias_var,
            weight_var * var / 2 + bias_var,
        )
    return cov


@pytest.mark.parametrize("distance", [1e-2, 1e-8])
def test_near_pairs_are_as_exact_as_the_report_says(distance):
    """Against mpmath with 40 digits, on the CPU and on JAX."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    base, head = nngp.Architecture(1, "relu", 2.0, 0.1), nngp.Architecture(6, "relu", 2.0, 0.0)
    net = nngp.WithHead(nngp.Invariant(base, images.flips((1, 3))), head)
    X = np.array([[1.0, 0.3, -0.4], [1.0 + distance, 0.3, -0.4], [0.1, -0.7, 0.9]])
    X = nngp.normalize(X)
    with mpmath.workdps(40):
        rows = [[mpmath.mpf(float(v)) for v in row] for row in X]
        norm = [mpmath.sqrt(sum(v * v for v in row)) for row in rows]

        def averaged(i, j):
            turned = rows[j], rows[j][::-1]
            dots = [sum(a * b for a, b in zip(rows[i], one, strict=True)) for one in turned]
            values = [
                exact_relu(dot / (norm[i] * norm[j]), 1, *map(mpmath.mpf, ("2", "0.1")))
                for dot in dots
            ]
            return sum(values) / 2

        two, none = mpmath.mpf(2), mpmath.mpf(0)
        K = np.array(
            [
                [
                    float(
                        exact_relu(
                            averaged(i, j) / mpmath.sqrt(averaged(i, i) * averaged(j, j)),
                            6,
                            two,
                            none,
                        )
                    )
                    for j in range(3)
                ]
                for i in range(3)
            ]
        )
    for engine in ("cpu", GpuEngine(jax.devices()[0], tile=64)):
        backend = nngp.condition(net, X, np.ones(3), engine=engine).problem.engine.kernels
        matrix = backend.matrix(net, backend.inputs(X), split=TRIVIAL_SPLIT)
        found = np.asarray(matrix.block(slice(0, 3), slice(0, 3)))[:3, :3]
        error = np.abs(found - K).max() / K[0, 0]
        assert error <= matrix.error() < 1e-9


VALUES = {
    "weight_var": 1.7,
    "bias_var": 0.2,
    "flips.probability": 0.3,
    "shifts.width": 0.8,
    "head.weight_var": 2.0,
    "head.bias_var": 0.1,
    "noise_var": 0.05,
}


def with_values(values, head="relu"):
    families = [
        images.flips((3, 3), probability=values["flips.probability"]),
        images.shifts(1, (3, 3), width=values["shifts.width"]),
    ]
    base = nngp.Architecture(2, "relu", values["weight_var"], values["bias_var"])
    top = nngp.Architecture(2, head, values["head.weight_var"], values["head.bias_var"])
    return nngp.WithHead(nngp.Invariant(base, families), top)


@pytest.mark.parametrize(
    ("head", "unit", "relative"), [("relu", True, True), ("erf", False, False)]
)
def test_gradients_against_differences(head, unit, relative):
    """In all that the average, its families and the head have, on the CPU and on JAX."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    X = rows(40, unit)
    X[3] = X[1]  # a duplicate: what its pair has does not depend on the average
    Y = np.column_stack([X[:, 0] * X[:, 2], X[:, 4]]) + 0.3

    def conditioned(values, engine="cpu"):
        options = {"noise_var": values["noise_var"], "relative_noise": relative}
        return nngp.condition(with_values(values, head), X, Y, engine=engine, **options)

    slopes = {}
    for name, value in VALUES.items():
        h = 1e-5 * value
        more, less = (conditioned({**VALUES, name: value + s}).log_evidence for s in (h, -h))
        slopes[name] = (more - less) / (2 * h)
    for engine in ("cpu", GpuEngine(jax.devices()[0], tile=16)):
        posterior = conditioned(VALUES, engine)
        found = posterior.evidence_gradient()
        assert sorted(found) == sorted(VALUES)
        for name, slope in slopes.items():
            assert found[name] == pytest.approx(slope, rel=1e-6), name
        by_layer = posterior.evidence_gradient(per_layer=True)
        for name in ("weight_var", "bias_var", "head.weight_var", "head.bias_var"):
            assert by_layer[name].shape == (3,)
            assert by_layer[name].sum() == pytest.approx(found[name], rel=1e-10)
        assert by_layer["shifts.width"] == pytest.approx(found["shifts.width"])


def test_a_device_takes_gradients_of_heads_itself():
    pytest.importorskip("jax")
    from nngp.gram import Inputs
    from nngp.gram.device.backend import DeviceBackend, DeviceHeadGradient

    sums = DeviceBackend().gradient(
        headed(), Inputs.of(rows(5)), split=TRIVIAL_SPLIT, per_layer=False
    )
    assert isinstance(sums, DeviceHeadGradient)


def test_gradients_through_functions_of_rows():
    """Whose values, squared, have other norms."""
    X, y = rows(25), rows(25)[:, 0]

    def conditioned(bias, top):
        base, head = nngp.Architecture(1, "erf", 1.3, bias), nngp.Architecture(1, "relu", top, 0.2)
        average = nngp.Invariant(base, [symmetries.functions(lambda X: X[:, ::-1] ** 2 - 0.1)])
        return nngp.condition(nngp.WithHead(average, head), X, y, noise_var=0.1)

    found = conditioned(0.3, 1.9).evidence_gradient()
    for name, k, h in (("bias_var", 0, 3e-6), ("head.weight_var", 1, 2e-5)):
        step = h * np.eye(2)[k]
        more, less = (conditioned(*([0.3, 1.9] + s * step)).log_evidence for s in (1, -1))
        assert found[name] == pytest.approx((more - less) / (2 * h), rel=1e-6), name


@pytest.mark.parametrize("bias", [1e-2, 1e-9])
def test_little_that_an_average_leaves_has_the_error_of_all(bias):
    """An odd network, averaged over signs, keeps its bias alone."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve import CpuEngine
    from nngp.linsolve.engines.gpu import GpuEngine

    base = nngp.Architecture(1, "erf", 1.0, (0.0, bias))
    odd = nngp.Invariant(base, symmetries.signs())
    net, X = nngp.WithHead(odd, nngp.Architecture(1, "relu", 2.0, 0.0)), rows(6)
    for engine in (CpuEngine(), GpuEngine(jax.devices()[0], tile=64)):
        backend = engine.kernels
        matrix = backend.matrix(net, backend.inputs(X), split=TRIVIAL_SPLIT)
        with engine.run() as run:
            found = run.fetch(matrix.block(slice(0, 6), slice(0, 6)))[:6, :6]
        assert np.abs(found - 2.0).max() / 2.0 <= matrix.error()  # all inputs are alike
        assert matrix.error() < 1e-12 / bias


def test_an_average_of_zero_has_no_head():
    odd = nngp.Invariant(nngp.Architecture(1, "erf", 1.0, 0.0), symmetries.signs())
    net = nngp.WithHead(odd, nngp.Architecture(1))
    with pytest.raises(nngp.errors.VarianceError, match="nothing for the head"):
        nngp.kernel(net, rows(5))
    without_bias = nngp.Invariant(nngp.Architecture(1, "relu", 2.0, 0.0), images.flips((3, 3)))
    X = np.concatenate([np.zeros((1, 9)), rows(3)])
    with pytest.raises(nngp.errors.VarianceError, match="nothing for the head"):
        nngp.kernel(nngp.WithHead(without_bias, nngp.Architecture(1)), X)


def test_a_diagnosis_is_that_of_the_head():
    deep = nngp.Architecture(200, "tanh", 0.3, 0.1)
    found = nngp.regimes.diagnose(nngp.WithHead(average(), deep))
    assert found.recommendation == nngp.regimes.diagnose(deep).recommendation
    assert not found.recommendation.startswith("keep")


def test_relative_noise_is_in_units_of_the_head():
    X, y = rows(30), RNG.standard_normal(30)
    net = headed()
    scale = nngp.curves.compile_curve(net.head, 1.0).scale
    one = nngp.condition(net, X, y, noise_var=0.1, relative_noise=True).log_evidence
    assert one == pytest.approx(nngp.condition(net, X, y, noise_var=0.1 * scale).log_evidence)


def test_saved_printed_and_compared(tmp_path):
    net = headed()
    assert nngp.Network.from_dict(net.as_dict()) == net
    assert hash(net) == hash(headed())
    assert net != headed("erf")
    assert net.depth == 5
    text = str(net)
    for word in ("average over flips", "layer normalisation", "relu"):
        assert word in text
    assert repr(net).startswith("WithHead(Invariant(")
    model = nngp.NNGPRegressor(network=net).fit(rows(25), RNG.standard_normal(25))
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    np.testing.assert_array_equal(again.predict(rows(4)), model.predict(rows(4)))


def test_estimators_take_it():
    X = np.abs(rows(120))
    labels = (X[:, 0] + X[:, 2] > X[:, 6] + X[:, 8]).astype(int)
    model = nngp.NNGPClassifier(network=headed()).fit(X, labels)
    assert model.score(X, labels) > 0.9
    assert [one.name for one in model.invariance_] == ["flips", "shifts"]
    assert model.network_ == headed()


def test_zero_norms():
    """An input of zeros is like any other where there are biases."""
    X = np.concatenate([np.zeros((1, 9)), rows(8)])
    K = nngp.kernel(headed(), X)
    assert np.isfinite(K).all()
    assert K[0, 0] == pytest.approx(K[1, 1])


def test_what_is_not_available_says_so():
    cases = [
        (lambda: nngp.WithHead(BASE, BASE), TypeError, "takes an nngp.Invariant"),
        (lambda: nngp.WithHead(average(), average()), TypeError, "without transformations"),
        (lambda: nngp.WithHead(average(), "relu"), TypeError, "got str"),
        (lambda: nngp.WithHead(average(), nngp.NTK(BASE)), TypeError, "tangent kernel"),
        (
            lambda: nngp.WithHead(average(), nngp.Architecture(np.inf, "tanh")),
            ValueError,
            "finite depth",
        ),
        (lambda: nngp.NTK(headed()), TypeError, "tangent"),
        (lambda: nngp.Invariant(headed(), symmetries.signs()), TypeError, "not invariant yet"),
        (lambda: nngp.curves.compile_curve(headed()), TypeError, "nngp.WithHead"),
        (lambda: nngp.FiniteNetwork(headed(), 10), TypeError, "nngp.WithHead"),
        (
            lambda: nngp.condition(headed(), rows(9), np.ones(9)).evidence_gradient(per_input=True),
            ValueError,
            "not available for an nngp.WithHead",
        ),
        (
            lambda: nngp.Network.from_dict(
                {"part": "headed", "of": BASE.as_dict(), "head": BASE.as_dict()}
            ),
            ValueError,
            "average",
        ),
    ]
    for make, error, words in cases:
        with pytest.raises(error, match=words):
            make()
