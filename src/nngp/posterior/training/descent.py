"""Networks trained for a finite time, in the eigenbasis of the tangent kernel.

Let B = Θ + noise, N the number of targets (rows times outputs), η the learning rate. A network that
starts as f₀ and descends along the gradient of its loss for a time t has moved to

    f(x) = f₀(x) + Θ(x, X) A (Y - f₀(X)),    A = B⁻¹ (I - exp(-η t B / N)),

so with w(x) = A Θ(X, x) the mean of all networks is w(x)ᵀY, and their covariance is that of
f₀(x) - w(x)ᵀf₀(X). Both kernels are split, Θ = s (M + g 11ᵀ) and K = s' (M' + g' 11ᵀ), and
M + g 11ᵀ = U λ Uᵀ (`spectrum.py`). With φ = (1 - exp(-η t s (λ + noise/s) / N)) / (λ + noise/s),
p = Uᵀm(x) and z = p + g Uᵀ1,

    mean             Σ φ z UᵀY
    covariance       s' (M'(x, x') - cᵀq' - qᵀc' + cᵀHc' + g' δ δ'),   c = φ z, q = Uᵀm'(x),
                     H = Uᵀ M' U,  δ = 1 - 1ᵀw(x)

of which only δ needs care where g' is large. It is 1 - g Σ φ (1ᵀu)² less Σ φ p 1ᵀu. In the former
the last eigenvector v leaves (vᵀMv + noise/s + g (1ᵀv)² e) / (λ + noise/s), where e is its
exp(-...); nothing is subtracted there, and the other 1ᵀu are of size 1/g.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import Inputs, KernelMatrix, KernelSplit
from nngp.gram.host.tiles import fill
from nngp.linsolve import CpuEngine, Forecast
from nngp.linsolve.cholesky.memory_forecast import OVERHEAD, available_memory, largest_fitting
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.setup import Problem
from nngp.posterior.solution import check_shifted_mean, check_shifted_variance
from nngp.posterior.training.spectrum import Spectrum, decompose

MOST_POINTS = 15_000  # of one matrix: LAPACK in the NumPy and SciPy wheels crashes above
ROWS_AT_A_TIME = 512  # of a kernel, or test points, at a time
COPIES = 3  # of the matrix: LAPACK's work space; later eigenvectors, H and a product
UNRESOLVED = 1e-6  # training of a direction, relative, that rounding of its rate may change
INDEFINITE = 1e-8  # of the largest eigenvalue: below minus that, one is no rounding


@dataclass(frozen=True)
class Filter:
    """The state of training at one time, by eigenvector: `gain` is φ, `left` what is left of the
    error on the training data, `decay` of the last is exp(-...); `lost` counts directions whose
    rate is below rounding."""

    gain: Array
    left: Array
    last_decay: float
    lost: int


@dataclass(frozen=True)
class EnsembleMoments:
    """Means (m, outputs) and variances (m,) of test points, the latter None if not asked for, and
    how far rounding may have moved a variance, in units of the kernel's scale."""

    mean: Array
    variance: Array | None
    rounding: float


@dataclass(frozen=True)
class Descent:
    """Gradient descent on data: the decomposition of Θ, and the kernel K at initialisation.

    `rate` is η / N and `ridge` the noise, both in units of Θ's scale. `target_noise` is the
    variance of noise that each network's targets have, in units of K's.
    """

    prior: Problem
    tangent: Problem
    split: KernelSplit
    spectrum: Spectrum
    targets: Array
    rate: float
    ridge: float
    target_noise: float

    @classmethod
    def of(
        cls,
        prior: Problem,
        tangent: Problem,
        targets: Array,
        rate: float,
        noise_var: float,
        target_noise: float,
    ) -> "Descent":
        """Decompose Θ, after a look at the memory that it takes."""
        n, d = tangent.inputs.shape
        expected = forecast_descent(n, d, targets.shape[1], tangent.resources.memory)
        matrix = tangent.matrix()
        with tangent.resources.track(f"eigenvectors ({expected})", 1.0) as progress:
            progress.begin()
            M = rows_of(matrix, slice(0, n), n, symmetric=True)
            spectrum = decompose(M, matrix.split.offset)
            progress.finish()
        scale = matrix.split.scale
        own, in_tangent = (prior, tangent, matrix.split, spectrum, targets), noise_var / scale
        return cls(*own, rate * scale, in_tangent, target_noise / prior.matrix().split.scale)

    def filter(self, time: float) -> Filter:
        """The state of training after a time, which may be infinite.

        Directions whose rate is rounding are trained to first order while that is exact, and
        not at all later.
        """
        least, largest = self.spectrum.values.min(), self.spectrum.values.max()
        if least < -INDEFINITE * max(largest, 0.0):  # more than rounding: a matrix that was given
            raise NotPositiveDefiniteError(
                f"the tangent kernel has the eigenvalue {least:.3g} beside its largest, "
                f"{largest:.3g}; training diverges along it, so pass a positive definite one"
            )
        values = np.maximum(self.spectrum.values, 0.0)
        rates, clock = values + self.ridge, np.float64(self.rate) * time
        with np.errstate(over="ignore", invalid="ignore"):
            done = np.where(rates > 0, clock * rates, 0.0)
        decay = np.exp(-done)
        safe = np.maximum(rates, TINY)
        lost = (rates <= self.spectrum.error) & (clock * self.spectrum.error > UNRESOLVED)
        gain = np.where(lost, 0.0, np.where(rates > TINY, -np.expm1(-done) / safe, clock))
        left = np.where(lost | (rates <= TINY), 1.0, (self.ridge + values * decay) / safe)
        return Filter(gain, left, float(decay[-1]), int(lost.sum()))

    def moments(
        self, test: Inputs, times: Sequence[float], *, variance: bool
    ) -> list[EnsembleMoments]:
        """Means and variances at each time. Test points are taken some at a time."""
        filters = [self.filter(time) for time in times]
        found: list[list[EnsembleMoments]] = [[] for _ in times]
        for rows in spans(cut(len(test), ROWS_AT_A_TIME)):
            part = _Projected(self, test.take(np.arange(rows.start, rows.stop)), variance)
            for parts, state in zip(found, filters, strict=True):
                parts.append(part.moments(state))
        return [_joined(parts) for parts in found]

    def covariance(self, test: Inputs, time: float) -> tuple[Array, float]:
        """Covariance between test points, and its rounding in units of the kernel's scale."""
        state, part = self.filter(time), _Projected(self, test, True)
        split, matrix = self.prior_split, self.prior.among(test, self.prior_split)
        c, unexplained = part.scores * state.gain, part.unexplained(state)
        part.check_norms(state, c)
        out = rows_of(matrix, slice(0, len(test)), len(test), symmetric=True)
        crossed = c @ part.prior.T
        out += c @ self.rotated_prior @ c.T - crossed - crossed.T + self.target_noise * c @ c.T
        out += split.offset * np.outer(unexplained, unexplained)
        return split.scale * 0.5 * (out + out.T), self._rounding(c)

    def shared(self, state: Filter) -> float:
        """1 - g Σ φ (1ᵀu)²: the part of δ that all test points have."""
        spectrum = self.spectrum
        if state.gain[-1] == 0.0 or spectrum.offset == 0.0:
            return 1.0
        heights = spectrum.offset * spectrum.ones**2
        last = spectrum.excess + self.ridge + heights[-1] * state.last_decay
        return float(last / (spectrum.values[-1] + self.ridge) - heights[:-1] @ state.gain[:-1])

    @cached_property
    def rotated_targets(self) -> Array:
        """UᵀY."""
        return np.asarray(self.spectrum.vectors.T @ self.targets)

    @cached_property
    def prior_matrix(self) -> KernelMatrix:
        return self.prior.matrix()

    @property
    def prior_split(self) -> KernelSplit:
        return self.prior_matrix.split

    @cached_property
    def rotated_prior(self) -> Array:
        """H = Uᵀ M' U."""
        vectors, n = self.spectrum.vectors, len(self.targets)
        out = np.zeros((n, n))
        for rows in spans(cut(n, ROWS_AT_A_TIME)):
            out += vectors[rows].T @ (rows_of(self.prior_matrix, rows, n) @ vectors)
        return out

    def mean_rounding(self, state: Filter) -> float:
        """About how far rounding moves a mean on the training data, relative to the targets."""
        weights = np.linalg.norm(state.gain[:, None] * self.rotated_targets, axis=0).max()
        return float(self.spectrum.error * weights / max(np.abs(self.targets).max(), TINY))

    def _rounding(self, c: Array) -> float:
        largest = float(np.diagonal(self.rotated_prior).max())
        return 16 * EPS * largest * float(np.einsum("ij,ij->i", c, c).max())


class _Projected:
    """Test points in the eigenbasis: p, z, and q where variances are wanted."""

    def __init__(self, descent: Descent, test: Inputs, variance: bool) -> None:
        self.descent, self.spectrum = descent, descent.spectrum
        vectors, n = self.spectrum.vectors, len(self.spectrum.values)
        self.cross = cross = descent.tangent.to_rows(test, descent.split)
        self.shares = rows_of(cross, slice(0, len(test)), n) @ vectors
        self.scores = self.shares + self.spectrum.offset * self.spectrum.ones
        self.prior = np.empty((len(test), 0))
        if variance:
            self.before = before = descent.prior.to_rows(test, descent.prior_split)
            self.prior = rows_of(before, slice(0, len(test)), n) @ vectors

    def moments(self, state: Filter) -> EnsembleMoments:
        c = self.scores * state.gain
        mean = c @ self.descent.rotated_targets
        self.check_norms(state, c)
        if self.prior.size == 0:
            return EnsembleMoments(mean, None, 0.0)
        split = self.descent.prior_split
        change = c @ self.descent.rotated_prior - 2 * self.prior
        left = self.before.diagonal + np.einsum("ij,ij->i", change, c)
        left += split.offset * self.unexplained(state) ** 2
        left += self.descent.target_noise * np.einsum("ij,ij->i", c, c)
        rounding = self.descent._rounding(c)
        return EnsembleMoments(mean, split.scale * np.maximum(left, 0.0), rounding)

    def check_norms(self, state: Filter, c: Array) -> None:
        """Raise VarianceError for test inputs of another norm, where rounding is too large."""
        if self.cross.is_exact:
            return
        vectors, descent = self.spectrum.vectors, self.descent
        weights = vectors @ (state.gain[:, None] * descent.rotated_targets)
        check_shifted_mean(self.cross, descent.split, weights, descent.targets)
        if self.prior.size:
            check_shifted_variance(self.before, descent.prior_split, c @ vectors.T)

    def unexplained(self, state: Filter) -> Array:
        """δ = 1 - 1ᵀw(x)."""
        return self.descent.shared(state) - (self.shares * state.gain) @ self.spectrum.ones


def _joined(parts: Sequence[EnsembleMoments]) -> EnsembleMoments:
    variances = [part.variance for part in parts if part.variance is not None]
    return EnsembleMoments(
        np.concatenate([part.mean for part in parts]),
        np.concatenate(variances) if variances else None,
        max(part.rounding for part in parts),
    )


def rows_of(matrix: KernelMatrix, rows: slice, n: int, *, symmetric: bool = False) -> Array:
    """M of some rows and all n columns, on the host."""

    def block(down: slice, across: slice) -> Array:
        begin = slice(rows.start + down.start, rows.start + down.stop)
        return np.asarray(matrix.block(begin, across))

    return fill(rows.stop - rows.start, n, block, symmetric=symmetric)


def forecast_descent(n: int, d: int, outputs: int, memory: int | None = None) -> Forecast:
    """Bytes of the decomposition; raises if it cannot be done."""
    if n > MOST_POINTS:
        raise ValueError(
            f"training for a finite time needs the eigenvectors of a {n} x {n} matrix, and at most "
            f"{MOST_POINTS} points can be decomposed; use time=math.inf or fewer points"
        )
    engine = CpuEngine()
    available = available_memory(engine, n, d, outputs, memory)

    def needed(n: int) -> int:
        return 8 * n * (COPIES * n + 6 * ROWS_AT_A_TIME + 4 * outputs) + OVERHEAD

    largest = None if available is None else largest_fitting(needed, available, MOST_POINTS)
    out = Forecast(n, needed(n), available, largest, "eigh")
    out.check()
    return out


@dataclass(frozen=True)
class Losses:
    """Losses |f - Y|² / (2 N), N = rows times outputs, at each time.

    `train` and `test` are those of the mean of all networks. `train_expected` and `test_expected`
    are the means of the losses of single networks: the former plus half the mean variance. Those
    of test points are None where there were none.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> net = nngp.Architecture(2, "erf", 2.0, 0.1)
    >>> losses = nngp.training.train_ensemble(net, X, X[:, 0]).losses([0.0, 10.0, 1000.0])
    >>> bool((np.diff(losses.train) < 0).all() and (losses.train <= losses.train_expected).all())
    True
    """

    times: Array
    train: Array
    train_expected: Array
    test: Array | None = None
    test_expected: Array | None = None


def losses(
    descent: Descent, times: Array, test: Inputs | None = None, targets: Array | None = None
) -> Losses:
    """Losses on the training data, and on test points where they are given.

    On the training data the mean has left U ρ UᵀY, where ρ is what is left in each direction, and
    the networks' errors have the covariance U ρ UᵀK U ρ Uᵀ, so no matrix is multiplied.
    """
    n, outputs = descent.targets.shape
    left = np.stack([descent.filter(time).left for time in times]) ** 2
    squares = (descent.rotated_targets**2).sum(axis=1)
    split, ones = descent.prior_split, descent.spectrum.ones
    before = np.diagonal(descent.rotated_prior) + descent.target_noise
    variances = split.scale * (before + split.offset * ones**2)
    train = left @ squares / (2.0 * n * outputs)
    expected = train + left @ np.maximum(variances, 0.0) / (2.0 * n)
    if test is None or targets is None:
        return Losses(times, train, expected)
    moments = descent.moments(test, list(times), variance=True)
    own = np.array([float(np.mean((found.mean - targets) ** 2)) / 2 for found in moments])
    spread = np.array([float(np.mean(np.asarray(found.variance))) / 2 for found in moments])
    return Losses(times, train, expected, own, own + spread)
