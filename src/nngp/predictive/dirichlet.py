"""Classification by regression on logarithms of Dirichlet parameters (Milios et al. 2018).

A label y says α_k = α_ε + 1{y = k}. The logarithm of a Gamma variable of that shape is nearly
Gaussian with variance σ²_k = log(1/α_k + 1) and mean log α_k - σ²_k/2: class k is a regression on
that mean with noise σ²_k, one of two levels. Probabilities are E[softmax]. The prior covariance
is a scale times the kernel, and the prior mean such that classes have their frequencies.

All classes share one inverse. With D for the noise of rows of other classes (σ²/w for a row of
weight w), class k has D_k = D - δ on its n_k rows I, and with P = (K + D)⁻¹

    (K + D_k)⁻¹ = P + P_:I S⁻¹ P_I:,     S = 1/δ - P_II,

where S has a condition number of at most D / D_k. So n³ operations serve all classes.

The scale and α_ε are found where the true classes of held-out points are most probable, by the
closed form of leave-one-out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from nngp._arrays import Array, Index
from nngp._records import Range
from nngp.posterior.evidence.criteria import held_out
from nngp.posterior.evidence.dense_evidence import inverse_of
from nngp.predictive.expected_softmax import expected_softmax
from nngp.predictive.one_hot_link import log_loss
from nngp.predictive.probability import above_zero

START = (np.log(4.0), np.log(0.01))  # logarithms of the prior variance and of α_ε
PRIOR_DEVIATION = 2.0  # of both logarithms: so that nothing runs away where classes separate
BOUNDS = ((np.log(0.05), np.log(500.0)), (np.log(1e-6), np.log(0.5)))
EVALUATIONS = 25  # settings tried
JUDGED = 2**17  # probabilities by which a setting is judged: rows left out times classes


@dataclass(frozen=True)
class Labels:
    """Training classes: index of each row's class, weight of each row, number of classes."""

    index: Index
    weights: Array
    classes: int

    @property
    def is_weighted(self) -> bool:
        return bool((self.weights != 1.0).any())

    def one_hot(self) -> Array:
        """One-hot targets, less one over the number of classes."""
        return np.eye(self.classes)[self.index] - 1.0 / self.classes

    @property
    def given_weights(self) -> Array | None:
        """The weights; None if all are one."""
        return self.weights if self.is_weighted else None

    def joined(self, new: "Labels") -> "Labels":
        """These rows and new ones."""
        index = np.concatenate([self.index, new.index])
        return Labels(index, np.concatenate([self.weights, new.weights]), self.classes)

    def rows(self, k: int) -> Index:
        return np.flatnonzero(self.index == k)

    @property
    def frequencies(self) -> Array:
        """Shares of the classes, by weight."""
        total = np.bincount(self.index, self.weights, minlength=self.classes)
        out: Array = total / total.sum()
        return out

    def some(self, rows: Index) -> "Labels":
        return Labels(self.index[rows], self.weights[rows], self.classes)


@dataclass(frozen=True)
class DirichletSetting:
    """Factor on the kernel, and the parameter α_ε of a class that is not a row's own."""

    scale: Annotated[float, Range(1e-150, 1e150)]
    alpha: Annotated[float, Range(1e-9, 1.0)]

    @property
    def noise(self) -> tuple[float, float]:
        """Noise of rows of other classes, and of a class's own."""
        return float(np.log1p(1.0 / self.alpha)), float(np.log1p(1.0 / (1.0 + self.alpha)))

    @property
    def targets(self) -> tuple[float, float]:
        """Targets of rows of other classes, and of a class's own."""
        other, own = self.noise
        return float(np.log(self.alpha)) - other / 2, float(np.log1p(self.alpha)) - own / 2


class DirichletProcess:
    """The processes of all classes, conditioned on labels, for one setting.

    `kernel` is the matrix of the training points, (n, n); it is overwritten if `overwrite`.
    """

    def __init__(
        self, kernel: Array, labels: Labels, setting: DirichletSetting, *, overwrite: bool = False
    ) -> None:
        self.labels, self.setting = labels, setting
        (other, own), weights = setting.noise, labels.weights
        matrix = np.multiply(kernel, setting.scale, out=kernel if overwrite else None)
        matrix[np.diag_indices_from(matrix)] += other / weights
        self._inverse = inverse_of(matrix)
        self._less = (other - own) / weights  # noise that a class's own rows lack
        log_share = np.log(labels.frequencies * weights.sum() + 1.0)
        low, high = setting.targets
        average = low + (high - low) / labels.classes
        self._center = log_share - log_share.mean() + average
        self._members = [labels.rows(k) for k in range(labels.classes)]
        self._factors = [self._factor(rows) for rows in self._members]
        self._weights = np.column_stack([self._solve(k) for k in range(labels.classes)])

    def predict(self, cross: Array, prior: Array) -> tuple[Array, Array]:
        """Means and variances of all classes, (m, classes), from the kernel between test and
        training points (m, n) and that of test points (m,), both without the scale."""
        scale = self.setting.scale
        mean = scale * (cross @ self._weights) + self._center
        solved = cross @ self._inverse
        left = scale * (prior - scale * np.einsum("ij,ij->i", solved, cross))
        variance = np.empty_like(mean)
        for k, (rows, factor) in enumerate(zip(self._members, self._factors, strict=True)):
            variance[:, k] = left - scale**2 * _squares(factor, solved[:, rows])
        return mean, np.maximum(variance, 0.0)

    def probabilities(self, cross: Array, prior: Array) -> Array:
        """Probability of each class, (m, classes), from the same; none is zero."""
        return above_zero(expected_softmax(*self.predict(cross, prior)))

    def leave_one_out(self) -> tuple[Array, Array]:
        """Means and variances at each training point from all the others, (n, classes).

        Of a row of weight above one, one copy is left out.
        """
        n, classes = self._weights.shape
        other, own = self.setting.noise
        low, high = self.setting.targets
        mean, variance = np.empty((n, classes)), np.empty((n, classes))
        diagonal, weights = np.diagonal(self._inverse), self.labels.weights
        for k, (rows, factor) in enumerate(zip(self._members, self._factors, strict=True)):
            precision = diagonal.copy()
            for part in _blocks(n, len(rows)):
                precision[part] += _squares(factor, self._inverse[part][:, rows])
            mine = self.labels.index == k
            noise, target = np.where(mine, own, other), np.where(mine, high, low)
            residuals, observed = held_out(self._weights[:, k], precision)
            latent = np.maximum(observed - noise / weights, 0.0)
            held = with_copies(target - residuals, latent, target, noise, weights)
            mean[:, k], variance[:, k] = held
        return mean, variance

    def left_out_probabilities(self, rows: Index) -> Array:
        """Probabilities of the classes at some training points, each from all the others."""
        mean, variance = self.leave_one_out()
        return above_zero(expected_softmax(mean[rows], variance[rows]))

    def _factor(self, rows: Index) -> Array:
        """Lower factor of S."""
        S = -self._inverse[np.ix_(rows, rows)]
        S[np.diag_indices_from(S)] += 1.0 / self._less[rows]
        return np.tril(cho_factor(S, lower=True, overwrite_a=True)[0])

    def _solve(self, k: int) -> Array:
        """(K + D_k)⁻¹ times the centred targets of class k."""
        low, high = self.setting.targets
        rows, factor = self._members[k], self._factors[k]
        solved: Array = self._inverse @ (
            np.where(self.labels.index == k, high, low) - self._center[k]
        )
        return solved + self._inverse[:, rows] @ cho_solve((factor, True), solved[rows])


Kernels = Sequence[tuple[Index, Array]]  # rows to leave out, and the kernel to predict them by


def left_out_table(kernels: Kernels, labels: Labels, setting: DirichletSetting) -> Array:
    """Probabilities at the rows of the parts, each from all other training points."""
    out = np.empty((len(labels.index), labels.classes))
    for part, kernel in kernels:
        out[part] = DirichletProcess(kernel, labels, setting).left_out_probabilities(part)
    return out


def find_setting(kernels: Kernels, labels: Labels) -> DirichletSetting:
    """The setting for which held-out points have the smallest log loss.

    Rows are in random order: with many classes only the first are judged, by all the others.
    """
    judged = np.arange(min(len(labels.index), max(1, JUDGED // labels.classes)))
    truth = labels.some(judged)
    kernels = [(part[part < len(judged)], kernel) for part, kernel in kernels]
    diagonal = np.mean([np.diagonal(kernel) for _, kernel in kernels], axis=0)
    size = float(np.average(diagonal, weights=labels.weights))
    low, high = np.transpose(BOUNDS)

    def setting(at: Array) -> DirichletSetting:
        log_prior, log_alpha = np.clip(at, low, high)
        return DirichletSetting(float(np.exp(log_prior)) / size, float(np.exp(log_alpha)))

    def loss(at: Array) -> float:
        table = left_out_table(kernels, labels, setting(at))[judged]
        prior = 0.5 * float(np.square((at - START) / PRIOR_DEVIATION).sum())
        return log_loss(table, truth.index, truth.weights) + prior / float(truth.weights.sum())

    start = np.array(START)
    corners = start + np.array([[0.0, 0.0], [1.2, 0.0], [0.0, 1.2]])
    options = {
        "initial_simplex": corners,
        "maxfev": EVALUATIONS,
        "xatol": 0.1,
        "fatol": 5e-4,
    }
    return setting(minimize(loss, start, method="Nelder-Mead", options=options).x)


def with_copies(
    mean: Array, variance: Array, targets: Array, noise: Array, weights: Array
) -> tuple[Array, Array]:
    """Give rows back all but one of their copies, after all were left out.

    Means and targets are (n,) or (n, outputs), variances of the function (n,), and `noise` is that
    of one copy.
    """
    kept = noise / (noise + np.maximum(weights - 1.0, 0.0) * variance)
    of_mean = kept if mean.ndim == 1 else kept[:, None]
    return targets + of_mean * (mean - targets), kept * variance


def _squares(factor: Array, rows: Array) -> Array:
    """xᵀ S⁻¹ x for each row x, given the lower factor of S."""
    if not rows.shape[1]:
        return np.zeros(len(rows))
    half = solve_triangular(factor, rows.T, lower=True, check_finite=False)
    return np.einsum("ij,ij->j", half, half)


def _blocks(n: int, width: int) -> Iterator[slice]:
    size = max(64, 4_000_000 // max(width, 1))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
