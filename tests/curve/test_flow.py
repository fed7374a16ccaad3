"""The limit of residual blocks with 1/depth of the variance: what an ODE solver finds, and what
deep networks approach."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nngp
from nngp import Act, Chain, ContinuousResidual, Dense, Repeat, Residual

CORR = np.array([-0.9, -0.3, 0.0, 0.4, 0.9, 0.999])


def relu(q, k):
    """E[relu relu] and E[relu' relu'] at equal variances."""
    angle = np.arccos(np.clip(k / q, -1, 1))
    value = q * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
    return value, (np.pi - angle) / (2 * np.pi)


@pytest.mark.parametrize(
    ("weight", "bias"), [(1.0, 0.1), pytest.param(3.0, 0.0, marks=pytest.mark.slow)]
)
def test_kernel_and_tangent_kernel_solve_their_equations(weight, bias):
    def slope(_, state):
        q, k, theta = np.split(state, 3)
        own, moved = relu(q, q)[0], relu(q, k)
        change = bias + weight * moved[0]
        return np.concatenate([bias + weight * own, change, change + weight * moved[1] * theta])

    start = 0.2 + 1.5 * np.concatenate([np.ones(6), CORR, CORR])
    solved = solve_ivp(slope, (0, 1), start, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    _, K, theta = np.split(solved, 3)
    net = Chain(Dense(1.5, 0.2), ContinuousResidual(Act("relu"), Dense(weight, bias)))
    np.testing.assert_allclose(
        nngp.curves.compile_curve(net, tol=1)(CORR), K, rtol=0, atol=1e-9 * K.max()
    )
    np.testing.assert_allclose(
        nngp.curves.compile_curve(nngp.NTK(net), tol=1)(CORR),
        theta,
        rtol=0,
        atol=1e-8 * theta.max(),
    )


def test_deep_networks_approach_it():
    net = Chain(Dense(1.0), ContinuousResidual(Act("erf"), Dense(1.0, 0.1)))
    flow = nngp.curves.compile_curve(net, tol=1e-10)(CORR)
    errors = []
    for depth in (50, 100, 200):
        block = Residual(Act("erf"), Dense(1 / depth, 0.1 / depth))
        deep = nngp.curves.compile_curve(Chain(Dense(1.0), Repeat(block, depth)), tol=1)(CORR)
        errors.append(np.abs(deep - flow).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    np.testing.assert_allclose(ratios, 2.0, rtol=0.05)  # first order in 1 / depth


def test_what_it_is_made_of():
    assert (
        nngp.Network.from_dict(ContinuousResidual(Act("relu"), Dense(2.0), steps=7).as_dict()).steps
        == 7
    )
    with pytest.raises(ValueError, match=r"must end in an nngp\.Dense"):
        ContinuousResidual(Dense(1.0), Act("relu"))
    with pytest.raises(ValueError, match="steps must be a whole number"):
        ContinuousResidual(Act("relu"), Dense(1.0), steps=0)
