"""Laplace's approximation of softmax classification, against dense algebra, refits and sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax, softmax

import nngp
from nngp.predictive.dirichlet import Labels
from nngp.predictive.softmax import (
    SPREADS,
    SoftmaxProcess,
    SoftmaxSetting,
    find_setting,
    mean_softmax,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 3))
K = nngp.kernel(nngp.Architecture(2, "relu", 1.6, 0.2), X)
INDEX = (X @ RNG.standard_normal((3, 3)) + 0.7 * RNG.standard_normal((40, 3))).argmax(axis=1)
TRAIN, TEST = np.arange(30), np.arange(30, 40)


def labels_of(rows, weights=None):
    return Labels(INDEX[rows], np.ones(len(rows)) if weights is None else weights, 3)


def process_of(rows, scale=4.0, weights=None):
    return SoftmaxProcess(K[np.ix_(rows, rows)], labels_of(rows, weights), SoftmaxSetting(scale))


def dense(process):
    """Kernel and curvature of all logits, (classes · n) on a side, and the prior precision."""
    n, classes = process.mode.table.shape
    table, weights = process.mode.table, process.labels.weights
    W = np.zeros((classes, n, classes, n))
    for i in range(n):
        own = np.diag(table[i]) - np.outer(table[i], table[i])
        W[:, i, :, i] = weights[i] * own
    prior = np.kron(np.eye(classes), process.scale * process.kernel)
    return prior, W.reshape(classes * n, classes * n)


WEIGHTS = RNG.choice([0.5, 1.0, 3.0], 30)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("scale", [0.1, 4.0, 1e3])
def test_the_mode_is_where_the_gradient_vanishes(scale, weights):
    process = process_of(TRAIN, scale, weights)
    labels, mode = process.labels, process.mode
    assert_allclose(mode.logits - mode.prior, scale * process.kernel @ mode.a, atol=1e-8)
    assert_allclose(mode.table, softmax(mode.logits, axis=1), atol=1e-14)
    slope = labels.weights[:, None] * (np.eye(3)[labels.index] - mode.table)
    assert_allclose(scale * process.kernel @ (slope - mode.a), 0.0, atol=2e-8)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_evidence_and_covariance_are_those_of_the_dense_formulas(weights):
    process = process_of(TRAIN, 4.0, weights)
    labels, mode = process.labels, process.mode
    prior, W = dense(process)
    assert_allclose(
        process.curvature.log_det, np.linalg.slogdet(np.eye(90) + prior @ W)[1], rtol=1e-9
    )
    u = (mode.logits - mode.prior).T.ravel()
    log_likelihood = log_softmax(mode.logits, axis=1)[np.arange(30), labels.index]
    expected = (labels.weights * log_likelihood).sum() - 0.5 * u @ np.linalg.solve(prior, u)
    expected -= 0.5 * np.linalg.slogdet(np.eye(90) + prior @ W)[1]
    assert process.log_evidence == pytest.approx(expected, rel=1e-8)
    cross = 4.0 * K[np.ix_(TEST, TRAIN)]
    wide = np.kron(np.eye(3), cross)
    inner = np.kron(np.eye(3), 4.0 * K[np.ix_(TEST, TEST)])
    covariance = inner - wide @ np.linalg.solve(np.eye(90) + W @ prior, W @ wide.T)
    covariance = covariance.reshape(3, 10, 3, 10)[:, np.arange(10), :, np.arange(10)]
    own = 4.0 * K[TEST, TEST]
    assert_allclose(process.curvature.covariance(cross, own), covariance, atol=1e-9)


def test_rows_left_out_are_near_what_a_fit_without_them_says():
    process = process_of(TRAIN)
    found = process.left_out()
    assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
    for i in range(0, 30, 3):
        rest = np.delete(TRAIN, i)
        without = process_of(rest)
        # the frequencies of the classes stay those of all rows, as they do in the closed form
        cross = K[np.ix_([i], rest)]
        again = without.probabilities(cross, K[[i], [i]])[0]
        assert_allclose(found[i], again, atol=0.03)


def test_of_a_row_that_stands_for_three_one_copy_is_left_out():
    weights = np.ones(30)
    weights[4] = 3.0
    copies = np.concatenate([TRAIN, [4, 4]])
    expected = process_of(copies).left_out()
    assert_allclose(process_of(TRAIN, weights=weights).left_out(), expected[:30], atol=1e-6)


def elliptical_slice(prior, log_likelihood, draws, rng):
    """Murray, Adams and MacKay (2010): samples of a Gaussian prior times a likelihood."""
    factor = np.linalg.cholesky(prior + 1e-9 * np.eye(len(prior)))
    now = np.zeros((len(prior), 3))
    level = log_likelihood(now)
    for _ in range(draws):
        nu, bar = factor @ rng.standard_normal(now.shape), level + np.log(rng.random())
        angle = rng.uniform(0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            moved = now * np.cos(angle) + nu * np.sin(angle)
            level = log_likelihood(moved)
            if level > bar:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        now = moved
        yield now


@pytest.mark.parametrize(
    ("scale", "draws", "within"),
    [(0.3, 3000, 0.02), pytest.param(4.0, 40_000, 0.05, marks=pytest.mark.slow)],
)
def test_probabilities_are_near_those_of_elliptical_slice_sampling(scale, draws, within):
    """The exact posterior, by sampling. Laplace's Gaussian is an approximation: the larger the
    scale, the further it is from that, towards probabilities that are less sure."""
    process = process_of(TRAIN, scale)
    labels, prior = process.labels, process.mode.prior
    found = process.probabilities(K[np.ix_(TEST, TRAIN)], K[TEST, TEST])
    rows, kept = np.arange(30), []

    def log_likelihood(f):
        return log_softmax(prior + f[:30], axis=1)[rows, labels.index].sum()

    samples = elliptical_slice(scale * K, log_likelihood, draws, np.random.default_rng(1))
    kept = [softmax(prior + f[30:], axis=1) for f in samples][draws // 10 :]
    exact = np.mean(kept, axis=0)
    assert np.abs(found - exact).mean() < within
    assert np.abs(found - exact).max() < 2.5 * within
    assert np.abs(exact - labels.frequencies).mean() > 2 * within  # the rows have said something


def test_the_setting_predicts_rows_left_out_best():
    labels, matrix = labels_of(TRAIN), K[np.ix_(TRAIN, TRAIN)]
    found = find_setting([(TRAIN, matrix)], labels)
    weak = 0.5 * (1 / 3.0) ** 2 / 30  # of the prior on the logarithm of the scale, per unit

    def loss(scale, spread):
        table = SoftmaxProcess(matrix, labels, SoftmaxSetting(scale, spread)).left_out()
        return -np.log(table[TRAIN, labels.index]).mean()

    best = loss(found.scale, found.spread)
    assert all(best <= loss(found.scale, spread) + 1e-3 for spread in SPREADS)
    assert all(best <= loss(found.scale * f, found.spread) + 10 * weak for f in (0.2, 5.0))


def test_parts_are_predicted_by_their_own_kernels():
    """As where each part of the rows has a network that was chosen without it."""
    from nngp.predictive.softmax import held_out_table

    labels, setting = labels_of(TRAIN), SoftmaxSetting(4.0, 0.3)
    matrix = K[np.ix_(TRAIN, TRAIN)]
    kernels = [(TRAIN[::2], matrix), (TRAIN[1::2], 1.7 * matrix)]
    found = held_out_table(kernels, labels, setting)
    for part, kernel in kernels:
        assert_allclose(found[part], SoftmaxProcess(kernel, labels, setting).left_out()[part])
    assert SPREADS[0] <= find_setting(kernels, labels).spread <= SPREADS[-1]


def test_the_mean_of_softmax_is_that_of_many_draws():
    rng = np.random.default_rng(2)
    mean, root = rng.standard_normal((4, 5)), rng.standard_normal((4, 5, 5))
    covariance = root @ root.transpose(0, 2, 1) / 3
    found = mean_softmax(mean, covariance)
    for i in range(4):
        draws = rng.multivariate_normal(mean[i], covariance[i], 200_000)
        assert_allclose(found[i], softmax(draws, axis=1).mean(axis=0), atol=4e-3)
    # a shift of all logits is no information, however uncertain
    assert_allclose(mean_softmax(mean, covariance + 1e3), found, atol=1e-9)
