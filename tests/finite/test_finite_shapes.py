"""Sampled networks of every part and of composed shapes: their kernels and tangent kernels are on
average those of the infinitely wide network, up to standard errors and a bias of order 1/width."""

import numpy as np
import pytest

import nngp

pytest.importorskip("jax")

from sampled_shapes import COMPOSED, PARTS, X, sampled

SHAPES = PARTS | COMPOSED
WIDTH, COUNT = 256, 100
LARGEST_BIAS = 3.0  # of a mean, in units of the largest entry, times width; measured: 0.03 to 1.7


@pytest.mark.parametrize("name", SHAPES)
def test_means_of_sampled_networks(name):
    net = SHAPES[name]
    wanted = nngp.kernel(net, X), nngp.kernel(nngp.NTK(net), X)
    for found, exact in zip(sampled(net, WIDTH, COUNT), wanted, strict=True):
        doubt = found.std(axis=0, ddof=1) / np.sqrt(COUNT)
        away = np.abs(found.mean(axis=0) - exact)
        assert np.all(doubt < 0.03 * exact.max())  # or the test would see nothing
        assert np.all(away < 4.5 * doubt + LARGEST_BIAS / WIDTH * exact.max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "widest"), [("dropout", 128), pytest.param("gates", 256, marks=pytest.mark.deep)]
)
def test_the_bias_falls_as_one_over_width(name, widest):
    widths = np.array([w for w in (16, 32, 64, 128, 256) if w <= widest])
    net, count = SHAPES[name], 6000
    exact = nngp.kernel(net, X), nngp.kernel(nngp.NTK(net), X)
    found = [sampled(net, int(width), count, seed=2) for width in widths]
    for which in (0, 1):
        traces = np.array([np.trace(one[which], axis1=1, axis2=2) for one in found])
        bias = traces.mean(axis=1) - np.trace(exact[which])
        doubt = traces.std(axis=1, ddof=1) / np.sqrt(count)
        assert np.all(bias[:3] < -5 * doubt[:3])  # it is there
        (slope, _), covariance = np.polyfit(
            np.log(widths), np.log(-bias), 1, w=-bias / doubt, cov="unscaled"
        )
        assert abs(slope + 1) < 4 * np.sqrt(covariance[0, 0])
        assert covariance[0, 0] < 0.1**2
