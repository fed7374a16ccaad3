"""E[softmax] of independent Gaussians, by quadrature.

Softmax is a probability itself: softmax_k(f) = P(f_k + g_k is the largest), with g of Gumbel's
distribution F(x) = exp(-exp(-x)). So

    E[softmax_k] = ∫ H_k'(u) Π_{j≠k} H_j(u) du,     H_j(u) = E[F(u - f_j)].

Both integrals are trapezoidal sums. All outputs share one lattice of values of f, so that F on the
two lattices is one fixed matrix, and H a product of matrices: of the weights that the Gaussians
give to the lattice with that matrix. A Gaussian narrower than the lattice can show is written as
one of deviation `NARROWEST`, less the heat that spread it: a series in Hermite polynomials,

    φ_s = φ_r Σ_i (-δ/2)^i / i! · He_2i(x / r),     δ = 1 - s²/r².

Relative errors are below 1e-6, and some 1e-12 where no deviation is below 0.5.
"""

import numpy as np

from nngp._arrays import Array, Index
from nngp._threads import in_threads

STEP, OUTER_STEP = 0.25, 0.5  # of the lattices of f and of u
NARROWEST, ORDER = 0.3, 5  # deviation, and terms of the series for those below
REACH = 8.5  # deviations
TAIL = 32.0  # logits that a class is considered below the largest
# Larger deviations are brought down to this, with their means: softmax is the largest output then,
# up to 1e-3, whatever the unit.
WIDEST = 32.0
CHUNK = 2_000_000  # numbers held at a time
ROWS_PER_LATTICE = 4096  # that share a lattice


def expected_softmax(mean: Array, variance: Array) -> Array:
    """E[softmax] for means and variances (m, classes); rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> expected_softmax(np.array([[0.0, 0.0, 0.0]]), np.ones((1, 3))).round(6).tolist()
    [[0.333333, 0.333333, 0.333333]]
    """
    deviation = np.sqrt(variance)
    largest = np.maximum(deviation.max(axis=1, keepdims=True), WIDEST)
    deviation = deviation * (WIDEST / largest)
    below = (mean - mean.max(axis=1, keepdims=True)) * (WIDEST / largest)
    below = np.maximum(below, -TAIL - REACH * deviation)
    out = np.empty_like(mean)
    order, start, parts = np.argsort(deviation.max(axis=1), kind="stable"), 0, []
    while start < len(order):
        rows = order[start : start + ROWS_PER_LATTICE]
        widest = deviation[rows].max(axis=1)
        rows = rows[widest <= max(2.0, 2.0 * widest[0])]
        lattice = _lattice(below[rows], deviation[rows])
        rows = rows[: max(1, CHUNK // (mean.shape[1] * len(lattice)))]
        parts.append((rows, lattice))
        start += len(rows)

    def fill(part: tuple[Index, Array]) -> None:
        rows, lattice = part
        out[rows] = _on_lattice(below[rows], deviation[rows], lattice)

    in_threads(fill, parts)
    return out


def _lattice(below: Array, deviation: Array) -> Array:
    """Values of f that any of the Gaussians reaches."""
    wide = REACH * np.maximum(deviation, NARROWEST)
    ends = np.floor((below - wide).min() / STEP), np.ceil(wide.max() / STEP)
    return np.arange(ends[0], ends[1] + 1.0) * STEP


def _on_lattice(below: Array, deviation: Array, lattice: Array) -> Array:
    """E[softmax] of some rows, given means relative to the largest of their row."""
    wide = REACH * float(deviation.max())
    # Multiples of the step: so a row has the same nodes whatever rows are beside it.
    first, last = np.floor((-wide - 4.5) / OUTER_STEP), np.ceil((wide + TAIL) / OUTER_STEP)
    nodes = np.arange(first, last) * OUTER_STEP
    decay = np.exp(-np.maximum(nodes - lattice[:, None], -6.0))  # beyond, F is below 1e-175
    gumbel = np.exp(-decay)
    weights = _weights(lattice - below[:, :, None], deviation[:, :, None])
    # The series has negative weights, so that a vanishing sum may be negative by rounding.
    cdf = np.maximum(weights @ gumbel, 1e-300)
    density = np.maximum(weights @ (decay * gumbel), 0.0)
    others = np.exp(np.log(cdf).sum(axis=1, keepdims=True)) / cdf
    table = (density * others).sum(axis=2)
    return table / table.sum(axis=1, keepdims=True)


def _weights(gap: Array, deviation: Array) -> Array:
    """Weights of lattice points at these distances from the mean of a Gaussian."""
    wide = np.maximum(deviation, NARROWEST)
    x = gap / wide
    out = np.exp(-0.5 * x * x) * (STEP / np.sqrt(2.0 * np.pi)) / wide
    heat = 1.0 - (deviation / wide) ** 2
    if not heat.any():
        return out
    series, factor, previous, hermite = np.ones_like(x), np.ones_like(heat), np.ones_like(x), x
    for i in range(1, ORDER + 1):
        previous, hermite = hermite, x * hermite - (2 * i - 1) * previous  # He_2i
        factor = factor * (-heat / 2.0) / i
        series += factor * hermite
        previous, hermite = hermite, x * hermite - 2 * i * previous
    return out * series
