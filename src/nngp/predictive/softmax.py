"""Softmax classification by Laplace's approximation (Rasmussen and Williams 2006, sec. 3.5).

The logits of class k at n training rows are f_k ~ N(m_k, sK), independent between classes, with one
kernel for all and the logarithm of the class's frequency as mean. A row says log softmax(f)_y. The
approximation is a Gaussian at the mode, with the curvature there:

    f = m + sK g,    g = w (y - π),    W = w (diag π - ππᵀ) for each row,    Σ = (K⁻¹/s + W)⁻¹.

Newton's systems (K⁻¹/s + W) u = b are solved by conjugate gradients. The preconditioner has the
same diagonal d for all classes in place of W, d = w min(1/2, 1 - |π|²), which is above every W: one
factor, of 1 + d^½ sK d^½, serves all classes in a step. Vectors u are kept as pairs (u, a) with
u = sK a, so that K is never inverted. At the mode, with D_k = w π_k,

    E_k = D_k^½ (1 + D_k^½ sK D_k^½)⁻¹ D_k^½,    M = Σ_k E_k,
    (sK + W⁻¹)⁻¹ = E - E 1 M⁻¹ 1ᵀ E,    log |1 + sK W| = Σ_k log |1 + D_k^½ sK D_k^½| + log |M/w|,

which takes a factor for each class, once. The log evidence is Σ w log π_y - ½ Σ_k a_kᵀ sK a_k - ½
of that logarithm. Without row i the logits at i have the covariance V = (Σ_ii⁻¹ - W_i)⁻¹ and the
mean f_i - V g_i. Probabilities are E[softmax] over the correlated Gaussian of a point's logits.

The Gaussian at the mode is too wide where classes separate: there the likelihood is flat, W
vanishes, and nothing is left of what the labels said about the variance. So a share of Σ is used,
`spread`, which is found together with the scale where the true classes of held-out rows are most
probable (as for the Dirichlet likelihood). With a spread of one it is Laplace's approximation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize_scalar

from nngp._arrays import Array, Index
from nngp._records import Range, Share
from nngp._threads import in_threads
from nngp.predictive.dirichlet import Labels
from nngp.predictive.one_hot_link import log_loss
from nngp.predictive.probability import above_zero

STEPS, INNER = 100, 300  # of Newton's method, and of conjugate gradients in one of them
TOLERANCE = 1e-8  # of the gradient, in logits
LOOSE = 0.1  # part of a gradient that conjugate gradients may leave far from the mode
HALVINGS = 30  # of a step
NEAR, ROUNDING = 1e-6, 1e-13  # logits near the mode; relative, of the objective
SCALES = np.log(0.1), np.log(1e5)  # of the prior variance of logits: bounds of the search
PRIOR = np.log(30.0), 3.0  # mean and deviation of its logarithm, so that nothing runs away
SPREADS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # tried
EVALUATIONS = 10  # scales tried
POWER, COARSE = 10, 7  # 2**POWER points of E[softmax], each for itself and its opposite
CHUNK = 4_000_000  # numbers held at a time


@dataclass(frozen=True)
class SoftmaxSetting:
    """Factor on the kernel, and the share of Laplace's covariance."""

    scale: Annotated[float, Range(1e-150, 1e150)]
    spread: Share = 1.0


@dataclass(frozen=True)
class SoftmaxProcess:
    """Laplace's approximation, given the training rows' kernel matrix (n, n) and their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from nngp.predictive.dirichlet import Labels
    >>> x = np.linspace(-1, 1, 8)
    >>> K = np.exp(-((x[:, None] - x) ** 2))
    >>> labels = Labels(np.arange(8) // 4, np.ones(8), 2)
    >>> process = SoftmaxProcess(K, labels, SoftmaxSetting(scale=10.0))
    >>> process.left_out().argmax(axis=1).tolist()  # middle rows: others are nearer
    [0, 0, 0, 1, 0, 1, 1, 1]
    """

    kernel: Array
    labels: Labels
    setting: SoftmaxSetting

    @property
    def scale(self) -> float:
        return self.setting.scale

    @cached_property
    def mode(self) -> "Mode":
        """The logits at which the posterior is the largest."""
        return find_mode(self.scale * self.kernel, self.labels)

    @cached_property
    def curvature(self) -> "Curvature":
        """Quantities of the Gaussian approximation at the mode."""
        return Curvature.at(self.scale * self.kernel, self.labels.weights, self.mode.table)

    @property
    def log_evidence(self) -> float:
        """Log probability of the labels, by Laplace's approximation."""
        return self.mode.objective - 0.5 * self.curvature.log_det

    def probabilities(self, cross: Array, diagonal: Array) -> Array:
        """Probability of each class, (m, classes), given the kernel between test points and
        training rows (m, n) and of every test point (m,)."""
        cross, own = self.scale * cross, self.scale * diagonal
        mean = self.mode.prior + cross @ self.mode.a
        covariance = self.setting.spread * self.curvature.covariance(cross, own)
        return above_zero(mean_softmax(mean, covariance))

    def left_out(self) -> Array:
        """Probability of each class at each training row, had it been left out, (n, classes)."""
        mean, covariance = self.left_out_moments()
        return above_zero(mean_softmax(mean, self.setting.spread * covariance))

    def left_out_moments(self) -> tuple[Array, Array]:
        """Means (n, classes) of the logits of each row, had it been left out, and Laplace's
        covariance of these."""
        K, table = self.scale * self.kernel, self.mode.table
        copies = np.minimum(
            self.labels.weights, 1.0
        )  # that are left out: one, of a row that has more
        posterior = self.curvature.covariance(K, np.diagonal(K))
        W = copies[:, None, None] * _curvatures(table)
        without = posterior @ np.linalg.inv(np.eye(self.labels.classes) - W @ posterior)
        without = 0.5 * (without + without.transpose(0, 2, 1))
        slope = copies[:, None] * (_one_hot(self.labels) - table)
        mean = self.mode.logits - np.einsum("ijk,ik->ij", without, slope)
        return mean, without


Kernels = Sequence[tuple[Index, Array]]  # rows to leave out, and the kernel to predict them by


def held_out_table(kernels: Kernels, labels: Labels, setting: SoftmaxSetting) -> Array:
    """Probabilities at the rows of the parts, each from all other training rows."""
    out = np.empty((len(labels.index), labels.classes))
    for part, matrix in kernels:
        out[part] = SoftmaxProcess(matrix, labels, setting).left_out()[part]
    return out


def find_setting(kernels: Kernels, labels: Labels) -> SoftmaxSetting:
    """The setting for which held-out rows have the smallest log loss."""
    diagonal = np.mean([np.diagonal(matrix) for _, matrix in kernels], axis=0)
    unit = max(float(np.average(diagonal, weights=labels.weights)), np.finfo(float).tiny)
    n, total = len(labels.index), float(labels.weights.sum())
    found: dict[float, tuple[float, float]] = {}

    def loss(logarithm: float) -> float:
        """With the best spread for this scale."""
        setting = SoftmaxSetting(float(np.exp(logarithm)) / unit)
        mean = np.empty((n, labels.classes))
        covariance = np.empty((n, labels.classes, labels.classes))
        for part, matrix in kernels:
            moments = SoftmaxProcess(matrix, labels, setting).left_out_moments()
            mean[part], covariance[part] = (one[part] for one in moments)
        tables = (above_zero(mean_softmax(mean, s * covariance, COARSE)) for s in SPREADS)
        losses = [log_loss(table, labels.index, labels.weights) for table in tables]
        found[logarithm] = min(zip(losses, SPREADS, strict=True))
        away = (logarithm - PRIOR[0]) / PRIOR[1]
        return found[logarithm][0] + 0.5 * away**2 / total

    options = {"maxiter": EVALUATIONS, "xatol": 0.1}
    best = float(minimize_scalar(loss, bounds=SCALES, method="bounded", options=options).x)
    if best not in found:
        loss(best)
    return SoftmaxSetting(float(np.exp(best)) / unit, found[best][1])


@dataclass(frozen=True)
class Mode:
    """Logits (n, classes) at the mode, m + Ka, their probabilities, and the log posterior there
    without the constant of the prior."""

    prior: Array  # (classes,)
    a: Array
    logits: Array
    table: Array
    objective: float


def find_mode(K: Array, labels: Labels) -> Mode:
    """Newton's method with halved steps, to a residual of `TOLERANCE` logits."""
    weights, target = labels.weights[:, None], _one_hot(labels)
    prior = np.log(np.maximum(labels.frequencies, 1.0 / (2.0 * labels.weights.sum())))
    mode = _mode(prior, np.zeros_like(target), np.zeros_like(target), weights, target)
    before = np.inf
    for _ in range(STEPS):
        slope = weights * (target - mode.table)
        size = float(np.abs(K @ (slope - mode.a)).max())
        if size <= TOLERANCE or (size < NEAR and size > before / 2):  # rounding is all that is left
            return mode
        before = size
        step = _newton_step(K, mode, slope - mode.a, weights, min(LOOSE, np.sqrt(size)))
        better = _shortened(mode, step, weights, target)
        if better is None:
            return mode
        mode = better
    return mode


def _newton_step(
    K: Array,
    mode: Mode,
    gradient: Array,
    weights: Array,
    tolerance: float,
) -> tuple[Array, Array]:
    """A step (u, a), u = Ka, that solves (K⁻¹ + W) u = gradient up to a part of it."""
    root = np.sqrt(weights * np.minimum(0.5, 1.0 - _sums(mode.table**2)))
    inner = root * K * root.T
    inner[np.diag_indices_from(inner)] += 1.0
    factor = cho_factor(inner, lower=True, overwrite_a=True, check_finite=False)
    residual = gradient.copy()
    u, a = np.zeros_like(residual), np.zeros_like(residual)
    p = q = np.zeros_like(residual)
    before = end = 0.0
    for k in range(INNER):
        t = residual - root * cho_solve(factor, root * (K @ residual), check_finite=False)
        z = K @ t
        now = float(np.vdot(residual, z))
        if k == 0:
            end = tolerance**2 * now
        if now <= end or now <= 0.0:
            break
        ratio = now / before if k else 0.0
        p, q, before = z + ratio * p, t + ratio * q, now
        Ap = q + weights * (mode.table * p - mode.table * _sums(mode.table * p))
        length = now / float(np.vdot(p, Ap))
        u, a, residual = u + length * p, a + length * q, residual - length * Ap
    return u, a


def _shortened(mode: Mode, step: tuple[Array, Array], weights: Array, target: Array) -> Mode | None:
    """The mode after a step, halved until the objective does not fall; None if it always does."""
    length, logits = 1.0, mode.logits - mode.prior
    least = mode.objective - ROUNDING * max(1.0, abs(mode.objective))
    for _ in range(HALVINGS):
        u, a = logits + length * step[0], mode.a + length * step[1]
        found = _mode(mode.prior, u, a, weights, target)
        if found.objective >= least:
            return found
        length /= 2
    return None


def _mode(prior: Array, u: Array, a: Array, weights: Array, target: Array) -> Mode:
    logits = prior + u
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_table = shifted - np.log(_sums(np.exp(shifted)))
    likelihood = float((weights * target * log_table).sum())
    return Mode(prior, a, logits, np.exp(log_table), likelihood - 0.5 * float(np.vdot(u, a)))


@dataclass(frozen=True)
class Curvature:
    """E_k of every class, the factor of their sum, and log |1 + KW|."""

    parts: tuple[Array, ...]
    factor: Array
    log_det: float

    @classmethod
    def at(cls, K: Array, weights: Array, table: Array) -> "Curvature":
        roots = np.sqrt(weights[:, None] * table)
        parts, log_det = [], 0.0
        for root in roots.T:
            inner = root[:, None] * K * root
            inner[np.diag_indices_from(inner)] += 1.0
            lower = cholesky(inner, lower=True, overwrite_a=True, check_finite=False)
            half = solve_triangular(lower, np.diag(root), lower=True, check_finite=False)
            parts.append(half.T @ half)
            log_det += 2.0 * float(np.log(np.diagonal(lower)).sum())
        total = np.sum(parts, axis=0)
        factor = cholesky(total, lower=True, check_finite=False)
        log_det += 2.0 * float(np.log(np.diagonal(factor)).sum()) - float(np.log(weights).sum())
        return cls(tuple(parts), factor, log_det)

    def covariance(self, cross: Array, own: Array) -> Array:
        """Covariance of the logits of each point, (m, classes, classes)."""
        classes, m = len(self.parts), len(cross)
        out = np.empty((m, classes, classes))
        size = max(1, CHUNK // (classes * cross.shape[1]))
        for start in range(0, m, size):
            part = cross[start : start + size]
            moved = [part @ E for E in self.parts]
            pulled = np.stack(
                [solve_triangular(self.factor, v.T, lower=True, check_finite=False) for v in moved]
            )
            found = np.einsum("jni,kni->ijk", pulled, pulled)
            for k, v in enumerate(moved):
                found[:, k, k] += own[start : start + size] - np.einsum("ij,ij->i", v, part)
            out[start : start + size] = found
        return out


def mean_softmax(mean: Array, covariance: Array, power: int = POWER) -> Array:
    """E[softmax] of Gaussians with means (m, classes) and covariances (m, classes, classes).

    By 2**power points of Sobol's sequence and their opposites, the same for every row. Errors are
    some 1e-3 where logits have a deviation of one, and the sum over classes is one.

    Examples
    --------
    >>> import numpy as np
    >>> mean_softmax(np.zeros((1, 4)), np.ones((1, 4, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    m, classes = mean.shape
    points, out = _normal_points(classes, power), np.empty_like(mean)
    # A shift of all logits says nothing: without it, variances are as small as can be.
    centre = np.eye(classes) - 1.0 / classes
    values, vectors = np.linalg.eigh(centre @ covariance @ centre)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    size = max(1, CHUNK // (len(points) * classes))

    def fill(rows: Index) -> None:
        away = np.einsum("ijk,sk->isj", roots[rows], points)
        total = np.zeros((len(rows), classes))
        for sign in (1.0, -1.0):
            logits = mean[rows, None, :] + sign * away
            logits -= logits.max(axis=2, keepdims=True)
            np.exp(logits, out=logits)
            total += (logits / logits.sum(axis=2, keepdims=True)).mean(axis=1)
        out[rows] = 0.5 * total

    in_threads(fill, [np.arange(s, min(s + size, m)) for s in range(0, m, size)])
    return out


@cache
def _normal_points(dimension: int, power: int) -> Array:
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    uniform = Sobol(dimension, seed=0).random_base2(power)
    out: Array = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))
    return out


def _curvatures(table: Array) -> Array:
    """diag π - ππᵀ of every row."""
    out = -table[:, :, None] * table[:, None, :]
    k = np.arange(table.shape[1])
    out[:, k, k] += table
    return out


def _one_hot(labels: Labels) -> Array:
    return np.eye(labels.classes)[labels.index]


def _sums(values: Array) -> Array:
    return values.sum(axis=1, keepdims=True)
