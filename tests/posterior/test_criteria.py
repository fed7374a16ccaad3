"""The formulas of the criteria against mpmath: densities of Gaussians, points held out one by one,
and numerical derivatives in K."""

import mpmath as mp
import numpy as np
import pytest

from nngp.posterior.evidence import criteria

N, OUTPUTS = 5, 2
RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(N, N))
K, Y = ROOT @ ROOT.T + 0.3 * np.eye(N), RNG.normal(size=(N, OUTPUTS))
WEIGHTS = RNG.uniform(0.5, 2.0, N)
P = np.linalg.inv(K)
ALPHA, PRECISION = P @ Y, np.diagonal(P)
FIT, LOG_DET = float(np.vdot(Y, ALPHA)), float(np.linalg.slogdet(K)[1])


def evidence_of(matrix):
    """log N(Y; 0, matrix), summed over outputs, in 40 digits."""
    with mp.workdps(40):
        columns = [mp.matrix(y) for y in Y.T.tolist()]
        fit = sum((y.T * mp.lu_solve(matrix, y))[0] for y in columns)
        constant = mp.log(mp.det(matrix)) + N * mp.log(2 * mp.pi)
        return -(fit + OUTPUTS * constant) / 2


def predictions_of(matrix):
    """Residuals and variance of each point from the others, by solving with their matrix alone."""
    with mp.workdps(40):
        residuals, variances = [], []
        for i in range(N):
            rest = [j for j in range(N) if j != i]
            own = mp.matrix([[matrix[j, k] for k in rest] for j in rest])
            w = mp.lu_solve(own, mp.matrix([matrix[j, i] for j in rest]))
            variances.append(matrix[i, i] - sum(w[a] * matrix[j, i] for a, j in enumerate(rest)))
            residuals.append(
                [Y[i, k] - sum(w[a] * Y[j, k] for a, j in enumerate(rest)) for k in range(OUTPUTS)]
            )
        return residuals, variances


def density_of(matrix):
    """The weighted log density of those predictions."""
    with mp.workdps(40):
        total = mp.mpf(0)
        for w, row, variance in zip(WEIGHTS, *predictions_of(matrix), strict=True):
            for miss in row:
                total -= w * (mp.log(2 * mp.pi * variance) + miss**2 / variance) / 2
        return total


def slope_of(value):
    """2 dE/dK of an entry and its mirror image together, half of that on the diagonal."""
    out = np.empty((N, N))
    with mp.workdps(40):
        h = mp.mpf(10) ** -12
        for i in range(N):
            for j in range(N):
                ends = []
                for sign in (1, -1):
                    moved = mp.matrix(K.tolist())
                    moved[i, j] += sign * h
                    if i != j:
                        moved[j, i] += sign * h
                    ends.append(value(moved))
                out[i, j] = float((ends[0] - ends[1]) / (2 * h)) * (1 if i != j else 2)
    return out


def test_the_evidence_and_its_slope():
    whole = mp.matrix(K.tolist())
    found = criteria.log_evidence(FIT, LOG_DET, N, OUTPUTS)
    assert found == pytest.approx(float(evidence_of(whole)), rel=1e-12)
    slope = criteria.evidence_slope(ALPHA, ALPHA.T, -OUTPUTS * P)
    np.testing.assert_allclose(slope, slope_of(evidence_of), rtol=1e-9, atol=1e-9)
    diagonal = criteria.evidence_slope_diagonal(ALPHA, PRECISION, OUTPUTS)
    np.testing.assert_allclose(diagonal, 0.5 * np.diagonal(slope), rtol=1e-12)


def test_predictions_of_points_held_out():
    residuals, variance = criteria.held_out(ALPHA, PRECISION)
    expected = predictions_of(mp.matrix(K.tolist()))
    np.testing.assert_allclose(residuals, np.array(expected[0], dtype=float), rtol=1e-11)
    np.testing.assert_allclose(variance, np.array(expected[1], dtype=float), rtol=1e-11)
    single = criteria.held_out(ALPHA[:, 0], PRECISION)
    np.testing.assert_array_equal(single.residuals, residuals[:, 0])


def test_the_density_and_its_slope():
    found = criteria.held_out_density(ALPHA, PRECISION, WEIGHTS)
    assert found == pytest.approx(float(density_of(mp.matrix(K.tolist()))), rel=1e-12)
    C, d = criteria.held_out_rates(ALPHA, PRECISION, WEIGHTS)
    slope = criteria.held_out_slope(-(P * C) @ P, P @ d, ALPHA)
    np.testing.assert_allclose(slope, slope_of(density_of), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_a_scale_apart_changes_no_value(scale):
    """K = scale · M with M kept: what is passed are α, P and the determinant of M."""
    unit = np.sqrt(scale)  # targets in proportion, so that the data fit as well as before
    evidence = criteria.log_evidence(FIT, LOG_DET, N, OUTPUTS)
    moved = criteria.log_evidence(FIT * scale, LOG_DET, N, OUTPUTS, scale)
    shift = N * OUTPUTS * np.log(unit)
    assert moved == pytest.approx(evidence - shift, rel=1e-12)
    density = criteria.held_out_density(ALPHA, PRECISION)
    moved = criteria.held_out_density(ALPHA * unit, PRECISION, scale=scale)
    assert moved == pytest.approx(density - shift, rel=1e-12)
    C, d = criteria.held_out_rates(ALPHA, PRECISION)
    C_moved, d_moved = criteria.held_out_rates(ALPHA * unit, PRECISION, scale=scale)
    np.testing.assert_allclose(C_moved, C, rtol=1e-12)
    np.testing.assert_allclose(d_moved, d * unit, rtol=1e-12)


def test_log_normal():
    with mp.workdps(30):
        expected = float(mp.log(mp.npdf(mp.mpf(0.7), 0, mp.sqrt(mp.mpf(2.5)))))
    assert criteria.log_normal(np.array([0.7]), np.array([2.5]))[0] == pytest.approx(expected)
