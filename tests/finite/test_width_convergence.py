"""Convergence with width. Without biases and with weight_var 2 a relu network can be done by hand:
the kernel k of layer l at one input is, over its exact value, a product of l independent means of
`width` terms 2 max(u, 0)², which have mean 1 and variance 5; so E k² = (1 + 5/width)^l (E k)²."""

import numpy as np
import pytest
from plain_posterior import kernel as plain_kernel
from scipy import stats

import nngp
from nngp.finite.width_convergence import convergence, three_inputs

pytest.importorskip("jax")

NET = nngp.Architecture(2, "relu", 2.0, 0.0)
X = 3.0 * three_inputs()[:2]
WIDTHS, COUNT = (8, 32, 128), 1000
ONE_LAYER = nngp.Architecture(1, "relu", 2.0, 0.0)


@pytest.fixture(scope="module")
def study():
    return convergence(NET, X, WIDTHS, COUNT, seed=1)


@pytest.fixture(scope="module")
def repeats():
    """One input, one layer, many times."""
    return [convergence(ONE_LAYER, [[1.0]], (4, 16), 200, seed) for seed in range(40)]


def second_moment(width, layer):
    return (1 + 5 / width) ** layer


def test_the_exact_kernel_is_a_correlation(study):
    for layer in (1, 2):
        K = plain_kernel(X, X, layer, 2.0, 0.0)
        np.testing.assert_allclose(study.exact[layer - 1], K / 18.0, rtol=1e-10)


def test_kernels_scatter_as_they_should(study):
    """Mean and spread on the diagonal, whose moments are known at any width."""
    for w, width in enumerate(WIDTHS):
        for layer in (1, 2):
            mean, spread = study.mean[w, layer - 1], study.spread[w, layer - 1]
            assert np.all(np.abs(np.diagonal(mean) - 1) < 4 * np.diagonal(spread) / np.sqrt(COUNT))
            expected = np.sqrt(second_moment(width, layer) - 1)
            np.testing.assert_allclose(np.diagonal(spread), expected, rtol=4.5 / np.sqrt(width))


def test_the_error_is_that_of_mean_and_spread(study):
    """Over the pairs (0, 0), (0, 1), (1, 1)."""
    scatter = study.spread**2 * (COUNT - 1) / COUNT + (study.mean - study.exact) ** 2
    pairs = scatter[:, :, [0, 0, 1], [0, 1, 1]].mean(axis=2)
    np.testing.assert_allclose(study.error, np.sqrt(pairs), rtol=1e-10)


def test_the_slope_is_minus_a_half(study):
    assert study.fitted == slice(-2, None)
    logs = np.log(WIDTHS[-2:]), np.log(study.error[-2:])
    np.testing.assert_allclose(study.slope, np.polyfit(*logs, 1)[0], rtol=1e-10)
    relative = study.error_of_error[-2:] / study.error[-2:]
    np.testing.assert_allclose(study.slope_error, np.hypot(*relative) / np.log(4), rtol=1e-10)
    # the next order in 1/width, by hand on the diagonal
    theory = np.array(
        [np.log((second_moment(128, m) - 1) / (second_moment(32, m) - 1)) for m in (1, 2)]
    ) / (2 * np.log(4))
    np.testing.assert_allclose(theory, -0.5, atol=0.03)
    assert np.all(np.abs(study.slope - theory) < 4 * study.slope_error)
    assert np.all(study.slope_error < 0.05)


@pytest.mark.slow
def test_errors_of_errors_are_honest(repeats):
    errors = np.array([one.error[:, 0] for one in repeats])
    stated = np.mean([one.error_of_error[:, 0] for one in repeats], axis=0)
    np.testing.assert_allclose(errors.std(axis=0, ddof=1) / stated, 1.0, atol=0.4)
    theory = np.sqrt([second_moment(4, 1) - 1, second_moment(16, 1) - 1])
    doubt = errors.std(axis=0) / np.sqrt(len(repeats))
    # the root of a mean is a little too small on average
    assert np.all(np.abs(errors.mean(axis=0) - theory) < 4 * doubt + stated**2 / theory)


@pytest.mark.slow
def test_outputs_are_one_of_each_network(repeats):
    """Standardised, at the first input, and of other networks for each width."""
    for w, width in enumerate((4, 16)):
        sampled = nngp.FiniteNetwork(ONE_LAYER, width).sample([[1.0]], 200, seed=3)[:, 0, 0]
        np.testing.assert_allclose(repeats[3].outputs[w], sampled / np.sqrt(2), rtol=1e-12)
    correlation = np.corrcoef(repeats[3].outputs)[0, 1]
    assert abs(correlation) < 4 / np.sqrt(200)


def test_outputs_have_the_scale_of_the_exact_kernel(study):
    doubt = np.sqrt((3 * second_moment(np.array(WIDTHS), 2) - 1) / COUNT)
    assert np.all(np.abs(np.mean(study.outputs**2, axis=1) - 1) < 4 * doubt)


@pytest.mark.slow
def test_tails_are_heavy_and_become_normal(study, repeats):
    theory = 3 * (second_moment(np.array(WIDTHS), 2) - 1)
    np.testing.assert_allclose(study.expected_kurtosis, theory, rtol=0.3)
    shared = np.mean([one.expected_kurtosis for one in repeats], axis=0)
    np.testing.assert_allclose(shared, 3 * (second_moment(np.array([4, 16]), 1) - 1), rtol=0.1)
    z = (study.outputs - study.outputs.mean(axis=1)[:, None]) / study.outputs.std(axis=1)[:, None]
    np.testing.assert_allclose(study.kurtosis, np.mean(z**4, axis=1) - 3, rtol=1e-10)
    scatter = np.std([one.kurtosis for one in repeats], axis=0)
    stated = np.mean([one.kurtosis_error for one in repeats], axis=0)
    np.testing.assert_allclose(stated[1] / scatter[1], 1.0, atol=0.35)
    assert study.kurtosis_error[2] == pytest.approx(np.sqrt(24 / COUNT), rel=0.3)
    assert study.kurtosis[0] > 1.5
    assert abs(study.kurtosis[2]) < 4 * np.sqrt(24 / COUNT)


def test_the_statistic_and_its_p_value(study):
    for w, values in enumerate(study.outputs):
        z = stats.skewtest(values).statistic, stats.kurtosistest(values).statistic
        assert study.statistic[w] == pytest.approx(np.hypot(*z) ** 2)
        assert study.p_value[w] == pytest.approx(np.exp(-study.statistic[w] / 2))
    assert study.p_value[0] < 1e-10
    assert study.p_value[-1] > 1e-3


def test_progress_covers_all_widths():
    seen = []
    convergence(ONE_LAYER, [[1.0]], (4, 16), 200, progress=seen.append)
    done = [step.done for step in seen]
    assert len(done) == 2
    assert done[0] < 0.5
    assert done[1] == pytest.approx(1)


def test_three_inputs_of_one_norm():
    inputs = three_inputs()
    r = np.sqrt(0.5)
    np.testing.assert_allclose(
        inputs @ inputs.T / 2, [[1, r, -r], [r, 1, 0], [-r, 0, 1]], atol=1e-15
    )


BAD = [
    ((nngp.Architecture(0), X), "depth 0 has no width to converge in"),
    ((nngp.Architecture(np.inf), X), "infinite depth cannot be drawn"),
    (("relu", X), "must be an nngp.Architecture"),
    ((NET, X, (8,)), "widths must be two or more"),
    ((NET, X, 8), "widths must be two or more"),
    ((NET, X, (8, 8)), "widths must become larger"),
    ((NET, X, (0, 8)), "width must be a whole number of at least 1, got 0"),
    ((NET, X, (4, 8), 19), "networks must be a whole number of at least 20, got 19"),
    ((NET, [[np.inf]]), "X holds inf"),
    ((NET, [[1.0], [0.0]]), "zero at row 1 of X whatever its weights"),
]


def test_bad_input_is_said():
    for arguments, sentence in BAD:
        with pytest.raises((TypeError, ValueError), match=sentence):
            convergence(*arguments)


def test_what_is_exact_at_every_width_does_not_converge():
    with pytest.raises(ValueError, match="exact at every width, so nothing converges"):
        convergence(nngp.Architecture(1, "sign"), [[1.0, 2.0]], (4, 8), n_networks=20)


def test_networks_that_have_died_out_are_said():
    with pytest.raises(ValueError, match="networks of width 1 have died out"):
        convergence(nngp.Architecture(8, "relu", 2.0, 0.0), three_inputs(), (1, 2), n_networks=20)


def test_other_shapes_converge_in_every_affine_map():
    """Those that read inputs are exact, and the output is one more kernel if it is a sum."""
    block = nngp.Chain(nngp.Dense(2.0), nngp.Act("relu"), nngp.Dense(1.0))
    net = nngp.Sum(block, nngp.Dense(0.5))
    found = convergence(net, X, (8, 64), 200, seed=1)
    K = plain_kernel(X, X, 1, 2.0, 0.0) / 2  # of the block
    np.testing.assert_allclose(found.exact[0], K / 9.0, rtol=1e-10)
    np.testing.assert_allclose(found.exact[1], (K + 0.5 * X @ X.T / 2) / 13.5, rtol=1e-10)
    assert found.error.shape == (2, 2)
    expected = np.sqrt(second_moment(64, 1) - 1) * np.array([1, 9 / 13.5])
    np.testing.assert_allclose(found.spread[1, :, 0, 0], expected, rtol=0.25)
    assert np.all(np.abs(found.slope + 0.5) < 4 * found.slope_error + 0.05)
    assert np.var(found.outputs[1]) == pytest.approx(1.0, abs=0.4)


def test_tangent_kernels_converge():
    """At one input of one hidden layer Θ = k + 2 |g|², with k as above, and |g|² the mean of 2 v²
    over all units, in which units below zero count as 0."""
    found = convergence(nngp.NTK(ONE_LAYER), [[1.0]], (8, 64), 400, seed=1)
    assert found.exact.shape == (1, 1, 1)
    assert found.mean.shape == (2, 1, 1, 1)
    doubt = found.spread / np.sqrt(400)
    assert np.all(np.abs(found.mean - found.exact) < 4 * doubt)
    # Var k = 4 (5 / width), Var 2 |g|² = 16 (3/2 - 1/4) / width, their covariance is
    # 8 (1 - 1/2) / width; and Θ = 4.
    expected = np.sqrt((20 + 20 + 2 * 4) / np.array([8, 64])) / 4
    np.testing.assert_allclose(found.spread.ravel(), expected, rtol=0.2)
    assert abs(found.slope[0] + 0.5) < 4 * found.slope_error[0] + 0.03
    with pytest.raises(nngp.errors.ActivationError, match="jumps, so its gradient"):
        convergence(nngp.NTK(nngp.Architecture(1, "sign")), X, (4, 8), 20)
