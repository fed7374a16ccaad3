"""Three clouds of points in the plane as a data set: small enough to train on in a test."""

import numpy as np

from nngp_paper.datasets import Split


def three_clouds(n=60, noise=0.3):
    """n points each to train on, to validate and to test."""
    rng = np.random.default_rng(0)
    labels = np.arange(3 * n) % 3
    middles = np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    X = middles[labels] + noise * rng.standard_normal((3 * n, 2))
    parts = [slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)]
    rows = [part for cut in parts for part in (X[cut], labels[cut])]
    return Split("clouds", *rows, ("a", "b", "c"))
