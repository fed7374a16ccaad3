"""The recursion by plain quadrature, for the tests: nothing of it comes from the package.

The trapezoid rule in z, in two dimensions rotated by 45 degrees; e = 1 - c is carried, because
half a mean square of differences needs no cancellation.
"""

import numpy as np

Z = np.arange(-6.6, 6.61, 0.15)
DENSITY = 0.15 * np.exp(-0.5 * Z**2) / np.sqrt(2 * np.pi)
PAIR = DENSITY[:, None] * DENSITY


def next_variance(phi, weight_var, bias_var, q):
    values = phi(np.sqrt(q)[:, None] * Z)
    return bias_var + weight_var * (values**2 @ DENSITY)


def next_e(phi, weight_var, q, e, variance):
    """The next 1 - c; `variance` is the next variance."""
    common = np.sqrt(q * (1 - e / 2))[:, None, None] * Z[:, None]
    own = np.sqrt(q * e / 2)[:, None, None] * Z
    deficit = 0.5 * np.sum(PAIR * (phi(common + own) - phi(common - own)) ** 2, axis=(1, 2))
    return weight_var * deficit / variance
