"""Angular structure of the kernel: the look-up table agrees with the exact curve."""

import numpy as np

import nngp
from nngp.plots.angular import compute_angular_structure


def test_the_table_lies_on_the_exact_curve():
    table = nngp.LookupTable("relu", 201, 501, 201, s_max=10.0)  # smaller than by default
    data = compute_angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), table)
    assert data.exact.shape == (10, 400)
    for depth in range(10):
        at = np.interp(data.sparse_theta, data.theta, data.exact[depth])
        np.testing.assert_allclose(data.lookup[depth], at, atol=5e-3)
    # flattening with depth, as the paper describes
    spread = np.ptp(data.exact, axis=1)
    assert np.all(np.diff(spread) < 0)
