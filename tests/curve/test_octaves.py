"""The fast table agrees with the octaves that it is computed from, at every edge of its index."""

import numpy as np

import nngp
from nngp.curve import NEAR, Workspace


def test_fast_look_up_against_the_curve():
    for name in ["relu", "erf", "sign", "cos"]:
        curve = nngp.curves.compile_curve(nngp.Architecture(8, name, 3.0, 0.05))
        rng = np.random.default_rng(0)
        edges = 1 - np.ldexp(1.0, -np.arange(0, 16))
        corr = np.concatenate(
            [rng.uniform(-1, 1, 20_000), edges, -edges, np.nextafter(edges, 0), [0.0, -0.0, 1e-300]]
        )
        corr = corr[1 - np.abs(corr) >= NEAR]
        values = corr.copy()
        curve.profile.fast.apply(values, Workspace(len(values)), any_negative=True)
        assert np.max(np.abs(values - curve(corr))) <= curve.error * curve.variance


def test_without_negative_numbers():
    curve = nngp.curves.compile_curve(nngp.Architecture(3, "relu", 1.6, 0.1))
    values = np.linspace(0, 0.9999, 1001)
    corr = values.copy()
    curve.profile.fast.apply(values, Workspace(2000), any_negative=False)
    np.testing.assert_allclose(values, curve(corr), rtol=1e-13)
