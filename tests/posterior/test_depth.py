"""Depth without loss: what a deep network leaves of its inputs is used whole, however little it is.

The oracle forms K in mpmath with 300 digits (`deep_posterior`); what it finds is in
oracles/deep_posteriors.json (see make_deep_posteriors.py there).
"""

import dataclasses
import json
import math
import warnings
from pathlib import Path

import deep_posterior as oracle
import mpmath as mp
import numpy as np
import pytest

import nngp
from nngp.posterior.report import warn

RNG = np.random.default_rng(3)
X = nngp.normalize(RNG.standard_normal((7, 3)))
XS = nngp.normalize(RNG.standard_normal((3, 3)))
Y = RNG.standard_normal(7)
DEEP = [
    ("relu", 300, 1.0, 0.1),  # scale 1e-91
    ("erf", 300, 0.6, 0.2),  # scale 1e-83
    ("relu", 300, 2.0, 0.0),  # critical
    ("erf", 40, 3.0, 0.1),  # chaotic
    ("relu", 3, 1.6, 0.1),
]


NAMES = ("weight_var", "bias_var", "noise_var")
NOISE = 1e-2


def case(net, relative, count=7, constant=False):
    return tuple(net), relative, count, constant


ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "deep_posteriors.json").read_text())
EXPECTED = {case(*(row[k] for k in ("net", "relative", "count", "constant"))): row for row in ROWS}


def close(found, expected, rtol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=0)


def test_the_table_is_the_oracles():
    """A network of three layers, for which it takes no time to compute again."""
    with mp.workdps(300):
        found = oracle.posterior(*DEEP[4], X, Y, XS, NOISE, True)
    for name, value in found.items():
        expected = EXPECTED[case(DEEP[4], True)][name]
        close(oracle.as_floats(np.atleast_1d(value)), expected, 1e-10)


def conditioned(net, relative, engine="cpu"):
    architecture = nngp.Architecture(net[1], net[0], *net[2:])
    return nngp.condition(
        architecture, X, Y, noise_var=NOISE, relative_noise=relative, engine=engine
    )


@pytest.mark.slow_on_jax("erf 300 0.6")
@pytest.mark.slow_on_jax("relu 300 2.0")
@pytest.mark.slow_on_jax("relu 3 1.6")
@pytest.mark.slow_on_jax("erf 40 3.0")
@pytest.mark.parametrize("net", DEEP, ids=lambda net: f"{net[0]} {net[1]} {net[2]}")
@pytest.mark.filterwarnings("ignore::nngp.errors.ConstantKernelWarning")
def test_everything_against_mpmath(net, engine):
    for relative in (True, False):
        expected, posterior = EXPECTED[case(net, relative)], conditioned(net, relative, engine)
        mean, variance = posterior.predict(XS)
        close(posterior.report.scale, expected["scale"][0], 1e-10)
        close(posterior.noise_var, NOISE * (expected["scale"][0] if relative else 1.0))
        spread = np.ptp(expected["mean"])
        np.testing.assert_allclose(mean, expected["mean"], rtol=1e-8, atol=1e-8 * spread)
        close(posterior.mean(XS), mean)
        close(variance, expected["variance"])
        close(np.diagonal(posterior.covariance(XS)), variance)
        close(posterior.log_evidence, expected["evidence"][0])
        left = posterior.leave_one_out(noise=True)
        close(left.mean, expected["left_mean"])
        close(left.variance, expected["left_variance"])
        close(posterior.leave_one_out_density()[0], expected["density"][0])


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("relative", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("net", [DEEP[0], DEEP[1], DEEP[4]], ids=lambda net: f"{net[0]} {net[1]}")
@pytest.mark.filterwarnings("ignore::nngp.errors.ConstantKernelWarning")
def test_gradients_against_mpmath(net, relative, engine):
    posterior = conditioned(net, relative, engine)
    found = posterior.evidence_gradient(), posterior.leave_one_out_density()[1]
    for by_name, expected in zip(found, EXPECTED[case(net, relative)]["gradients"], strict=True):
        close([by_name[name] for name in NAMES], expected)


def test_layers_add_up_to_the_shared_derivative():
    posterior = conditioned(("relu", 30, 1.0, 0.1), True)
    shared, layers = posterior.evidence_gradient(), posterior.evidence_gradient(per_layer=True)
    for name in ("weight_var", "bias_var"):
        close(np.sum(layers[name]), shared[name], 1e-9)


def test_the_limit_is_that_of_deep_networks():
    for net in (("relu", 1.0, 0.1), ("tanh", 0.8, 0.3), ("erf", 0.5, 0.0)):
        deep, limit = (
            nngp.condition(
                nngp.Architecture(depth, *net), X, Y, noise_var=1e-6, relative_noise=True
            )
            for depth in (150, math.inf)
        )
        close(limit.mean(XS), deep.mean(XS))
        left = limit.leave_one_out(noise=True), deep.leave_one_out(noise=True)
        close(left[0].mean, left[1].mean)
        for of_limit, of_deep in (
            (limit.variance(XS), deep.variance(XS)),
            (left[0][1], left[1][1]),
        ):
            close(of_limit, of_deep / deep.report.scale)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("net", [("relu", 1.0, 0.1), ("silu", 1.5, 0.0)])
def test_the_gradient_of_the_limit(net, engine):
    activation, *start = net

    def at(weight_var, bias_var, noise_var):
        network = nngp.Architecture(math.inf, activation, weight_var, bias_var)
        return nngp.condition(network, X, Y, noise_var=noise_var, engine=engine)

    start = [*start, 0.1]
    gradient, density = at(*start).evidence_gradient(), at(*start).leave_one_out_density()[1]
    for k, name in enumerate(NAMES):
        if start[k] > 0:
            up, down = ([v + h * (i == k) for i, v in enumerate(start)] for h in (1e-5, -1e-5))
            ends = at(*up), at(*down)
            slope = (ends[0].log_evidence - ends[1].log_evidence) / 2e-5
            assert gradient[name] == pytest.approx(slope, rel=1e-5)
            slope = (ends[0].leave_one_out_density()[0] - ends[1].leave_one_out_density()[0]) / 2e-5
            assert density[name] == pytest.approx(slope, rel=1e-5)


def test_a_flat_prior_follows_any_constant():
    net = nngp.Architecture(math.inf, "relu", 1.0, 0.1)
    here, there = (nngp.condition(net, X, Y + shift, noise_var=0.01) for shift in (0.0, 1e6))
    np.testing.assert_allclose(there.mean(XS) - 1e6, here.mean(XS), atol=1e-8)
    assert there.log_evidence == pytest.approx(here.log_evidence, rel=1e-8)


def test_near_neighbours_in_the_chaotic_phase_stay_apart():
    apart = np.array([1e-9, 1e-7, 1e-5])
    tangent = np.cross(X[0], X[1])
    near = nngp.normalize(X[0] + np.outer(apart, tangent))
    net = ("erf", 12, 9.0, 0.2)  # tears near inputs apart, some thousand times
    both = np.concatenate([X[:1], near])
    with mp.workdps(60):
        K, q = oracle.kernel(*net, oracle.cosines(both, both))
        deficits = np.array([[float(q - K[i, j]) for j in range(4)] for i in range(4)])
    curve = nngp.curves.compile_curve(nngp.Architecture(net[1], net[0], *net[2:]))
    gaps = 0.5 * np.sum((both[:, None] - both[None]) ** 2, axis=2) / 3
    np.testing.assert_allclose(curve.deficit(one_minus=gaps), deficits, rtol=1e-6, atol=1e-40)
    with mp.workdps(60):
        expected = oracle.posterior(*net, both, Y[:4], XS, 1e-10, False)
    found = nngp.condition(curve.network, both, Y[:4], noise_var=1e-10)
    close(found.mean(XS), oracle.as_floats(expected["mean"]), 1e-5)


def test_noise_drowns_a_vanishing_kernel_and_says_so():
    net = nngp.Architecture(200, "relu", 1.0, 0.1)
    with pytest.warns(nngp.errors.ConstantKernelWarning, match="has become constant") as told:
        posterior = nngp.condition(net, X, Y)
    assert len(told) == 1
    mean, variance = posterior.predict(XS)
    close(mean, np.full(3, np.mean(Y)))
    assert np.all(variance > 0)


def test_unequal_norms_say_so_too():
    net = nngp.Architecture(60, "relu", 1.0, 0.1)
    with pytest.warns(nngp.errors.ConstantKernelWarning, match="has become constant"):
        nngp.condition(net, X * np.linspace(1, 2, len(X))[:, None], Y, noise_var=1e-3)


def test_noise_relative_to_unequal_norms():
    many = X * np.linspace(1, 2, len(X))[:, None]
    net = nngp.Architecture(2, "relu", 1.6, 0.1)
    relative = nngp.condition(net, many, Y, noise_var=0.1, relative_noise=True)
    scale = nngp.curves.compile_curve(net, float(np.median((many**2).mean(axis=1)))).scale
    assert relative.noise_var == pytest.approx(0.1 * scale)

    def at(weight_var):
        network = nngp.Architecture(2, "relu", weight_var, 0.1)
        return nngp.condition(network, many, Y, noise_var=0.1, relative_noise=True)

    slope = (at(1.6 + 1e-5).log_evidence - at(1.6 - 1e-5).log_evidence) / 2e-5
    assert relative.evidence_gradient()["weight_var"] == pytest.approx(slope, rel=1e-6)


def test_test_inputs_of_another_norm():
    shallow = conditioned(DEEP[4], False)
    whole = nngp.condition(shallow.network, np.concatenate([X, 2 * X[:1]]), [*Y, 0.0])
    assert whole.report.offset == 0  # norms differ: K is taken whole
    others = 3 * XS
    K, cross = nngp.kernel(shallow.network, X), nngp.kernel(shallow.network, others, X)
    solved = np.linalg.solve(K + NOISE * np.eye(7), np.column_stack([Y, cross.T]))
    mean, variance = shallow.predict(others)
    np.testing.assert_allclose(mean, cross @ solved[:, 0], rtol=1e-10)
    own = nngp.kernel(shallow.network, others) - cross @ solved[:, 1:]
    np.testing.assert_allclose(shallow.covariance(others), own, atol=1e-11 * own.max())
    np.testing.assert_allclose(variance, np.diagonal(own), rtol=1e-9)
    deep = conditioned(DEEP[0], True)
    with pytest.raises(
        nngp.errors.VarianceError, match=r"another norm.*nngp\.normalize.*a smaller depth"
    ):
        deep.mean(others)
    limit = nngp.condition(nngp.Architecture(math.inf, "relu", 1.0, 0.1), X, Y)
    with pytest.raises(ValueError, match=r"inputs of equal norm.*nngp\.normalize"):
        limit.mean(others)


def test_an_update_of_a_deep_network():
    grown = nngp.condition(
        nngp.Architecture(300, "relu", 1.0, 0.1), X[:4], Y[:4], noise_var=NOISE, relative_noise=True
    )
    grown.update(X[4:], Y[4:])
    close(grown.mean(XS), EXPECTED[case(DEEP[0], True)]["mean"], 1e-7)
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match="has become constant"):
        grown.update(2 * XS, np.zeros(3))  # another norm: K has to be taken whole
    close(grown.mean(XS), EXPECTED[case(DEEP[0], True)]["mean"], 1e-7)
    shallow = conditioned(DEEP[4], False)
    shallow.update(2 * XS, np.zeros(3))
    assert shallow.report.offset == 0
    both = np.concatenate([X, 2 * XS])
    again = nngp.condition(shallow.network, both, [*Y, 0, 0, 0], noise_var=NOISE)
    close(shallow.mean(XS), again.mean(XS))


def test_draws_of_a_deep_network_have_its_scale():
    posterior = conditioned(("relu", 35, 1.0, 0.1), True)
    assert posterior.report.scale < 1e-11
    draws = posterior.sample(XS, 4000, seed=0)
    np.testing.assert_allclose(draws.var(axis=0), posterior.variance(XS), rtol=0.1)


def test_predictions_of_deep_networks_converge_to_those_of_infinite_depth():
    targets = np.eye(3)[np.argmax(X, axis=1)] - 1 / 3
    means = [
        nngp.condition(net, X, targets, noise_var=1e-6, relative_noise=True).mean(XS)
        for net in (nngp.Architecture(depth, "relu", 1.0, 0.1) for depth in (100, 500, math.inf))
    ]
    np.testing.assert_allclose(means[:2], [means[2]] * 2, rtol=1e-8, atol=1e-8)


def test_too_deep_for_relative_noise_points_to_the_limit():
    with pytest.raises(nngp.errors.VarianceError, match=r"math\.inf"):
        nngp.condition(nngp.Architecture(2000, "relu", 0.5, 0.1), X, Y, relative_noise=True)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("count", [1, 2, pytest.param(7, marks=pytest.mark.slow)])
def test_constant_targets_and_single_points(count, engine):
    """Where nothing is left but the constant, rounding must not pass for a residual."""
    for constant in (True, False):
        y = np.full(count, 3.0) if constant else Y[:count]
        expected = EXPECTED[case(DEEP[0], True, count, constant)]
        posterior = nngp.condition(
            nngp.Architecture(300, "relu", 1.0, 0.1),
            X[:count],
            y,
            noise_var=NOISE,
            relative_noise=True,
            engine=engine,
        )
        close(posterior.log_evidence, expected["evidence"][0])
        left = posterior.leave_one_out(noise=True)
        np.testing.assert_allclose(left.mean, expected["left_mean"], atol=1e-14)
        close(left.variance, expected["left_variance"])
        density, of_density = posterior.leave_one_out_density()
        close(density, expected["density"][0])
        found = posterior.evidence_gradient(), of_density
        for by_name, exact in zip(found, expected["gradients"], strict=True):
            close([by_name[name] for name in NAMES], exact)


def test_where_noise_is_all_there_is():
    """Scale 1e-181 beside noise 1e-2: products of what is left underflow, quotients do not."""
    net, few = ("relu", 600, 1.0, 0.1), slice(0, 3)
    expected = EXPECTED[case(net, False, 3)]
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        posterior = nngp.condition(
            nngp.Architecture(600, "relu", 1.0, 0.1), X[few], Y[few], noise_var=NOISE
        )
    left = posterior.leave_one_out(noise=True)
    close(left.mean, expected["left_mean"])
    close(left.variance, expected["left_variance"])
    density, of_density = posterior.leave_one_out_density()
    close(density, expected["density"][0])
    close([of_density[name] for name in NAMES], expected["gradients"][1])


def test_a_kernel_that_vanishes_as_a_whole_is_told():
    net = nngp.Architecture(100, "relu", 1.0, 0.0)
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        posterior = nngp.condition(net, X, Y)
    assert np.all(posterior.leave_one_out().variance <= posterior.report.variance)


def test_draws_beside_absolute_noise():
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        posterior = nngp.condition(nngp.Architecture(300, "erf", 0.6, 0.2), X, Y)
    assert np.isfinite(posterior.sample(XS, 3, seed=0)).all()


def test_derivatives_in_the_inputs_are_refused_where_they_would_be_wrong():
    with pytest.raises(ValueError, match="need absolute noise"):
        conditioned(DEEP[4], True).evidence_gradient(per_input=True)
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        deep = conditioned(DEEP[0], False)
    for call in (deep.evidence_gradient, deep.leave_one_out_density):
        with pytest.raises(nngp.errors.VarianceError, match="lost to rounding"):
            call(per_input=True)
    both = conditioned(DEEP[4], False).evidence_gradient(per_input=True)
    shared = conditioned(DEEP[4], False).evidence_gradient()
    close([both[name] for name in NAMES], [shared[name] for name in NAMES], 1e-8)


def test_what_cannot_be_is_said_in_a_sentence():
    limit = nngp.condition(nngp.Architecture(math.inf, "relu", 1.0, 0.1), X[:1], Y[:1])
    for call in (limit.leave_one_out, limit.leave_one_out_density):
        with pytest.raises(ValueError, match="use two points"):
            call()
    with pytest.raises(ValueError, match="finite depth only"):
        limit.evidence_gradient(per_layer=True)
    deep = nngp.Architecture(500, "relu", 1.0, 0.1)
    with pytest.raises(nngp.errors.VarianceError, match="targets are too large"):
        nngp.condition(deep, X, 1e100 * Y, relative_noise=True)
    with pytest.raises(nngp.errors.VarianceError, match="out of proportion"):
        nngp.condition(deep, X, Y, noise_var=1e200)
    with pytest.raises(TypeError, match="True or False"):
        nngp.condition(deep, X, Y, relative_noise="yes")


def test_the_residual_sees_a_wrong_constant():
    from dataclasses import replace

    from nngp.posterior.by_cholesky import residual

    posterior = conditioned(DEEP[4], False)
    system = posterior.solution
    blocks = posterior.problem.matrix()
    constant = system.constant
    moved = replace(constant, sums=constant.sums + 1.0)
    more = moved.mean - constant.mean
    pairs = zip(system.alpha, constant.alpha, strict=True)
    alpha = [tile - more[:, None] * one for tile, one in pairs]  # solves B α = Y - μ as well
    wrong = replace(system, constant=moved, alpha=alpha)
    arguments = posterior.problem.engine, blocks
    assert residual(*arguments, system, posterior.targets) < 1e-13
    assert residual(*arguments, wrong, posterior.targets) > 1e-3


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("net", [nngp.Architecture(1500, "relu", 0.5, 0.1), None])
def test_nothing_beside_the_constant(net, engine):
    """Deeper than 1e-290 of the variance, or inputs that are all zero: K is taken whole."""
    inputs = X if net else np.zeros((7, 3))
    net = net or nngp.Architecture(2, "relu", 1.0, 0.1)
    with pytest.warns(nngp.errors.ConstantKernelWarning):
        posterior = nngp.condition(net, inputs, Y, noise_var=NOISE, engine=engine)
    assert (posterior.report.scale, posterior.report.offset) == (1.0, 0.0)
    mean, variance = posterior.predict(inputs[:2] + 0.0)
    v = posterior.report.variance
    np.testing.assert_allclose(mean, Y.sum() / (7 + NOISE / v), rtol=1e-9)
    np.testing.assert_allclose(variance, 1 / (1 / v + 7 / NOISE), rtol=1e-6)
    h = 1e-4 * net.bias_var

    def evidence(bias_var):
        moved = nngp.Architecture(net.depth, "relu", net.weight_var, bias_var)
        return nngp.condition(moved, inputs, Y, noise_var=NOISE, engine=engine).log_evidence

    with pytest.warns(nngp.errors.ConstantKernelWarning):
        slope = (evidence(net.bias_var + h) - evidence(net.bias_var - h)) / (2 * h)
    if net.depth == 1500:  # zero inputs have no derivative in this form
        assert posterior.evidence_gradient()["bias_var"] == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("depth", [0, 1])
def test_messages_of_shallow_networks_do_not_speak_of_depth(depth):
    """Where there are no layers to spare, the advice is another."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=30)
    tiny = nngp.Architecture(depth, "relu", 1e-20, 1.0)
    found = []
    with pytest.warns(nngp.errors.ConstantKernelWarning, match="use a larger weight_var") as warned:
        nngp.condition(tiny, X, Y, noise_var=1e-3)
    found += [str(one.message) for one in warned]
    steep = nngp.Architecture(depth, "relu", [1e200] * (depth + 1), 0.1)
    flat = nngp.Architecture(depth, "relu", 1.0, 0.1)
    unit = nngp.normalize(X)
    calls = [
        lambda: nngp.condition(steep, 1e60 * X, Y),
        lambda: nngp.condition(steep, unit, 1e100 * Y),
        lambda: nngp.condition(nngp.Architecture(depth, "relu", 1e-300, 1.0), unit, 1e50 * Y),
        lambda: nngp.condition(flat, unit, Y, noise_var=1e-15).mean(3 * X),
        lambda: nngp.condition(nngp.Architecture(depth, "relu", 1e-150, 1e150), X, Y),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except (ValueError, np.linalg.LinAlgError) as error:
                found.append(str(error))
    assert len(found) > 2
    assert not [message for message in found if "deep" in message or "smaller depth" in message]


def test_a_constant_kept_apart_leaves_no_singular_matrix(engine):
    """A linear network has the rank of its inputs, and one more by its bias."""
    for seed, bias in ((37, 1.0), (1, 0.01), (2, 1e4)):
        rng = np.random.default_rng(seed)
        X, Y = nngp.normalize(rng.normal(size=(3, 2))), rng.normal(size=3)
        net = nngp.Architecture(3, "identity", 2.5, bias)
        posterior = nngp.condition(net, X, Y, noise_var=1e-12, engine=engine)
        K = nngp.kernel(net, X) + 1e-12 * np.eye(3)
        precision, allowed = np.linalg.inv(K), 1e-14 * np.linalg.cond(K)
        mean, variance = posterior.leave_one_out(noise=True)
        np.testing.assert_allclose(variance, 1 / np.diag(precision), rtol=allowed)
        np.testing.assert_allclose(
            mean, Y - precision @ Y / np.diag(precision), rtol=0, atol=allowed * np.abs(mean).max()
        )
        assert posterior.report.residual < allowed


def test_a_residual_of_the_targets_is_told():
    posterior = nngp.condition(nngp.Architecture(2, "relu"), np.eye(3), [1.0, 2.0, 3.0])
    report = dataclasses.replace(posterior.report, residual=7e-4)
    with pytest.warns(nngp.errors.ToleranceWarning, match="residual of 7.0e-04"):
        warn(report, posterior.network, stacklevel=2)
