"""Dropout: an input with itself has one mask, two equal inputs have two, so K jumps there."""

import numpy as np
import pytest

import nngp
from nngp import NTK, Act, Chain, Dense, Dropout

NET = Chain(Dense(1.2, 0.1), Act("relu"), Dropout(0.8), Dense(1.5, 0.2), Act("relu"), Dense(1.1))
X = nngp.normalize(np.random.default_rng(0).normal(size=(4, 3)))
TWINS = X[[0, 0, 1, 2]]


def relu(q, c):
    """E[phi phi] and E[phi' phi'] of Cho and Saul."""
    angle = np.arccos(c)
    return (
        q * (np.sin(angle) + (np.pi - angle) * c) / (2 * np.pi),
        (np.pi - angle) / (2 * np.pi),
    )


def by_hand():
    """Variance and covariance of two equal inputs, of K and of Θ."""
    q = k = 1.3
    theta_q = theta_k = 1.3
    q, k = q / 2 / 0.8, k / 2  # relu, then masks: 1/0.8 for an input with itself
    theta_q, theta_k = theta_q / 2 / 0.8, theta_k / 2
    q, k, theta_q, theta_k = 0.2 + 1.5 * q, 0.2 + 1.5 * k, 1.5 * theta_q, 1.5 * theta_k
    theta_q, theta_k = theta_q + q, theta_k + k
    value, slope = relu(q, k / q)
    theta_q, theta_k = theta_q / 2, theta_k * slope
    q, k = 1.1 * q / 2, 1.1 * value
    return (q, k), (q + 1.1 * theta_q, k + 1.1 * theta_k)


def test_twins_are_two_draws():
    for net, exact in list(zip((NET, NTK(NET)), by_hand(), strict=True)):
        variance, twins = exact
        K = nngp.kernel(net, TWINS)
        np.testing.assert_allclose(np.diagonal(K), variance, rtol=1e-13)
        np.testing.assert_allclose([K[0, 1], K[1, 0]], twins, rtol=1e-13)
        np.testing.assert_allclose(nngp.kernel_diag(net, TWINS), variance, rtol=1e-13)
        curve = nngp.curves.compile_curve(net)
        assert curve.variance == pytest.approx(variance, rel=1e-13)
        assert float(curve(1.0)) == pytest.approx(twins, rel=1e-13)
        assert curve.jump == pytest.approx(variance - twins, rel=1e-13)
        assert curve.jump > 0.01 * variance


def test_two_sets_of_inputs_have_no_mask_in_common():
    """Even the same array, given twice: its rows then are other draws."""
    for net in [NET, NTK(NET)]:
        square, rectangle = nngp.kernel(net, TWINS), nngp.kernel(net, TWINS, TWINS)
        off = ~np.eye(4, dtype=bool)
        np.testing.assert_allclose(rectangle[off], square[off], rtol=1e-14)
        np.testing.assert_allclose(np.diagonal(rectangle), square[0, 1], rtol=1e-14)


def test_the_same_for_inputs_of_other_norms():
    for net in [NET, NTK(NET)]:
        rows = TWINS * np.array([2.0, 2.0, 1.0, 0.5])[:, None]
        K, rectangle = nngp.kernel(net, rows), nngp.kernel(net, rows, rows)
        curve = nngp.curves.compile_curve(net, 4.0)
        np.testing.assert_allclose(K[[0, 1], [0, 1]], curve.variance, rtol=1e-13)
        np.testing.assert_allclose([K[0, 1], rectangle[0, 0]], curve(1.0), rtol=1e-13)
        np.testing.assert_allclose(np.diagonal(K), nngp.kernel_diag(net, rows), rtol=1e-13)


def test_nearly_equal_inputs_come_near_to_twins():
    for net in [NET, NTK(NET)]:
        curve = nngp.curves.compile_curve(net)
        near = curve.deficit(one_minus=np.array([1e-4, 1e-8, 1e-12, 1e-300]))
        assert np.all(np.diff(near) <= 0)
        assert near[-1] == pytest.approx(curve.jump, rel=1e-12)


def test_a_mask_that_keeps_all_changes_nothing():
    bare = Chain(*(part for part in NET.parts if not isinstance(part, Dropout)))
    all_kept = Chain(*(Dropout(1.0) if isinstance(p, Dropout) else p for p in NET.parts))
    for own, other in ((bare, all_kept), (NTK(bare), NTK(all_kept))):
        np.testing.assert_array_equal(nngp.kernel(own, TWINS), nngp.kernel(other, TWINS))
        assert nngp.curves.compile_curve(other).jump == 0
    assert NET.has_masks
    assert not bare.has_masks


def test_a_kernel_with_masks_is_positive_definite_where_rows_are_equal():
    for net in (NET, NTK(NET)):
        assert np.linalg.eigvalsh(nngp.kernel(net, TWINS)).min() > 0.01
