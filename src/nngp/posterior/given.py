"""Inference from kernel matrices that were computed elsewhere.

A row of the given matrices takes the place of an input: `Inputs.X` holds the rows, several matrices
side by side, and `Inputs.var` the variances K(x, x). A `GivenMatrix` is a window of those columns.
So the solvers, the posterior and the trained ensembles of this package compute with given matrices
as they do with those of a network.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._checksums import checksums
from nngp._machine import single_threaded_blas
from nngp._numbers import as_reals
from nngp.architecture import Network
from nngp.architecture.graph import Node
from nngp.architecture.outline import Outline
from nngp.gram import TRIVIAL_SPLIT, Inputs, InputSet, KernelPlan, KernelSplit, Shift
from nngp.gram.host.tiles import set_diagonal
from nngp.gram.inputs import COPIED
from nngp.linsolve import CpuEngine, forecast_factor
from nngp.linsolve.tiling import flops
from nngp.posterior.by_cholesky import solve_by_cholesky
from nngp.posterior.noise import Noise, as_noise_of_rows
from nngp.posterior.posterior import LeaveOneOut, Posterior
from nngp.posterior.report import Report, describe, warn
from nngp.posterior.setup import Problem, Resources, as_targets
from nngp.posterior.solution import GIVEN

ASYMMETRY = 1e-8  # of the largest entry, which rounding of a user's program may leave


class _UnknownNetwork(Network):
    """The network behind given matrices, of which nothing is known."""

    depth = 0

    def nodes(self) -> Iterator[Node]:
        raise TypeError("the matrices were given, and no network is known that they belong to")

    def as_dict(self) -> dict[str, Any]:
        raise TypeError("the matrices were given, and no network is known that could be saved")

    def outline(self) -> Outline:
        raise TypeError("the matrices were given, and no network is known that could be shown")

    def __repr__(self) -> str:
        return "given matrices"


UNKNOWN = _UnknownNetwork()


class GivenMatrix:
    """`KernelMatrix` of numbers in memory: as many columns as there are training points, from the
    column `first` of the rows on."""

    network, plan, split = UNKNOWN, KernelPlan(GIVEN, "it was passed", None, None), TRIVIAL_SPLIT
    supports_padding, is_exact = False, True

    def __init__(self, left: Inputs, first: int, *, symmetric: bool) -> None:
        self.left, self._first, self._symmetric = left, first, symmetric
        own = np.diagonal(left.X[:, first:])
        self.diagonal: Array = own if symmetric else left.var

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Array:
        found = self.left.X[rows, self._first + columns.start : self._first + columns.stop]
        block = np.empty(found.shape) if out is None else out
        block[...] = found
        if self._symmetric:
            set_diagonal(block, rows, columns, self.diagonal[rows] + shift)
        return block

    def error(self) -> float:
        """Zero: entries are taken as they are."""
        return 0.0


@dataclass(frozen=True)
class GivenProblem(Problem):
    """A `Problem` whose matrices are windows: that of the training points begins at `first`, and
    that among test points follows all `count` matrices of their rows."""

    inputs: Inputs
    first: int = 0
    count: int = 1

    def matrix(self, split: KernelSplit | None = None) -> GivenMatrix:
        return GivenMatrix(self.inputs, self.first, symmetric=True)

    def to_rows(self, test: InputSet, split: KernelSplit) -> GivenMatrix:
        return GivenMatrix(_rows(test), self.first, symmetric=False)

    def among(self, test: InputSet, split: KernelSplit) -> GivenMatrix:
        return GivenMatrix(_rows(test), self.count * len(self.inputs), symmetric=True)

    def upload(self, test: Inputs) -> Inputs:
        return test

    def test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        self.inputs.check_unchanged()
        return _rows(Xs)


def _rows(inputs: Any) -> Inputs:
    assert isinstance(inputs, Inputs)
    return inputs


@single_threaded_blas()
def condition_matrix(
    K: ArrayLike, Y: ArrayLike, *, noise_var: ArrayLike = 0.0, relative_noise: bool = False
) -> "MatrixPosterior":
    """Condition a Gaussian process on data, given its covariance matrix.

    For kernels that were computed elsewhere. Factorisation, noise ladder and report are those of
    `nngp.condition`; as it begins with a matrix, what a deep kernel has lost beside its constant
    cannot be recovered.

    Parameters
    ----------
    K : array_like, (n, n)
        Covariances of the training points. A large float64 array is not copied: leave it alone
        while the posterior is in use.
    Y : array_like, (n,) or (n, outputs)
    noise_var : float or array_like, (n,)
        As in `nngp.condition`.
    relative_noise : bool
        Take `noise_var` in units of the mean of K's diagonal, as neural-tangents' `diag_reg`.

    Returns
    -------
    MatrixPosterior

    Warns
    -----
    NoiseWarning, ToleranceWarning, ConstantKernelWarning
        As in `nngp.condition`.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X, Xs = np.linspace(-1, 1, 20)[:, None], np.array([[0.25], [0.5]])
    >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
    >>> K, K_star = nngp.kernel(net, X), nngp.kernel(net, Xs, X)
    >>> posterior = nngp.condition_matrix(K, np.sin(3 * X[:, 0]), noise_var=1e-4)
    >>> mean, variance = posterior.predict(K_star, nngp.kernel_diag(net, Xs))
    >>> mean.round(2).tolist()  # sin(0.75), sin(1.5)
    [0.68, 1.0]
    """
    given = as_kernel_matrix(K, "K")
    targets, single = as_targets(Y, len(given))
    noise = given_noise(noise_var, relative_noise, given)
    problem = GivenProblem(UNKNOWN, kept_rows(given), Resources(CpuEngine()))
    return MatrixPosterior(solve_given(problem, targets, single, noise))


class MatrixPosterior:
    """A Gaussian process conditioned on data, from matrices. Made by `nngp.condition_matrix`.

    Attributes
    ----------
    n : int
    noise_var : float or array (n,)
        The noise that was used; more than asked for if the ladder was climbed.
    log_evidence : float
        The log marginal likelihood, summed over outputs.
    report : Report
        As of `nngp.Posterior`; its `kernel_error` is 0, as nothing is known of the matrix.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> posterior = nngp.condition_matrix([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0], noise_var=0.1)
    >>> round(posterior.log_evidence, 3), posterior.report.method
    (-3.484, 'given')
    """

    def __init__(self, posterior: Posterior) -> None:
        self._posterior = posterior

    @property
    def n(self) -> int:
        return self._posterior.n

    @property
    def noise_var(self) -> Shift:
        return self._posterior.noise_var

    @property
    def log_evidence(self) -> float:
        return self._posterior.log_evidence

    @property
    def report(self) -> Report:
        return self._posterior.report

    def mean(self, K_star: ArrayLike) -> Array:
        """Posterior mean at m test points, from their covariances with the training points,
        (m, n): (m,) or (m, outputs), as Y was given.

        Examples
        --------
        >>> import nngp
        >>> posterior = nngp.condition_matrix([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0])
        >>> posterior.mean([[1.0, 0.5]]).round(6).tolist()
        [1.0]
        """
        K = as_cross_matrix(K_star, "K_star", self.n)
        return self._posterior.mean(Inputs(K, np.zeros(len(K))))

    def predict(
        self, K_star: ArrayLike, diagonal: ArrayLike, *, noise: bool | ArrayLike = False
    ) -> tuple[Array, Array]:
        """Posterior mean and variance at m test points, from their covariances with the training
        points, (m, n), and their prior variances, (m,). `noise` is that of `Posterior.variance`.

        Examples
        --------
        >>> import nngp
        >>> posterior = nngp.condition_matrix([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0])
        >>> mean, variance = posterior.predict([[1.0, 0.5], [0.0, 0.0]], [1.0, 1.0])
        >>> mean.round(6).tolist(), variance.round(6).tolist()
        ([1.0, 0.0], [0.0, 1.0])
        """
        K = as_cross_matrix(K_star, "K_star", self.n)
        variances = as_diagonal(diagonal, "diagonal", len(K))
        return self._posterior.predict(Inputs(K, variances), noise=noise)

    def covariance(self, K_star: ArrayLike, K_test: ArrayLike) -> Array:
        """Posterior covariance between m test points, (m, m), from their covariances with the
        training points, (m, n), and with each other, (m, m).

        Examples
        --------
        >>> import nngp
        >>> posterior = nngp.condition_matrix([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0])
        >>> left = posterior.covariance([[1.0, 0.5], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
        >>> left.round(6).tolist()
        [[0.0, 0.0], [0.0, 1.0]]
        """
        K = as_cross_matrix(K_star, "K_star", self.n)
        own = as_kernel_matrix(K_test, "K_test", len(K))
        return self._posterior.covariance(Inputs(np.hstack([K, own]), np.diagonal(own).copy()))

    def leave_one_out(self, *, noise: bool = False) -> LeaveOneOut:
        """Predictions for each training point from all the others, without refitting, as
        `Posterior.leave_one_out` has them.

        Examples
        --------
        >>> import nngp
        >>> posterior = nngp.condition_matrix([[1.0, 0.5], [0.5, 1.0]], [1.0, -1.0])
        >>> mean, variance = posterior.leave_one_out()
        >>> mean.round(3).tolist(), variance.round(3).tolist()
        ([-0.5, 0.5], [0.75, 0.75])
        """
        return self._posterior.leave_one_out(noise=noise)

    def __repr__(self) -> str:
        return repr(self._posterior).replace("Posterior(given matrices, ", "MatrixPosterior(")


def solve_given(
    problem: GivenProblem, targets: Array, single: bool, noise: Noise, stacklevel: int = 5
) -> Posterior:
    """The posterior under the matrix of a problem."""
    engine, matrix = problem.engine, problem.matrix()
    edges = engine.edges(matrix)
    expected = forecast_factor(engine, len(targets), 1, targets.shape[1], problem.resources.memory)
    expected.check()
    with problem.resources.track(f"factor ({expected})", flops(edges)) as tracker:
        solution = solve_by_cholesky(engine, matrix, edges, targets, noise, tracker)
    report = describe(engine, matrix, solution, targets, 0, expected)
    warn(report, UNKNOWN, stacklevel)
    return Posterior(problem, targets, single, solution, report)


def given_noise(noise_var: ArrayLike, relative: bool, K: Array) -> Noise:
    """The noise, in units of the mean of the matrix's diagonal if it is relative."""
    if not isinstance(relative, bool | np.bool_):
        raise TypeError(f"relative_noise must be True or False, got {relative!r}")
    stated = as_noise_of_rows(noise_var, len(K), "the matrix has")
    unit = float(np.diagonal(K).mean()) if relative else 1.0
    if unit == 0:
        raise ValueError("the matrix has a diagonal of zeros; use relative_noise=False")
    return Noise(stated, unit)


def kept_rows(*matrices: Array) -> Inputs:
    """Rows of matrices of training points, side by side, with the diagonal of the last. A single
    large matrix is not copied."""
    rows, sums = matrices[0], None
    if len(matrices) > 1:
        rows = np.hstack(matrices)
    elif rows.nbytes <= COPIED:
        rows = rows.copy()
    else:
        sums = checksums(rows)
    return Inputs(rows, np.diagonal(matrices[-1]).copy(), sums)


def as_kernel_matrix(K: ArrayLike, name: str, n: int | None = None) -> Array:
    """A covariance matrix, checked: square (of n points), finite, symmetric, with variances on its
    diagonal."""
    out = _as_matrix(K, name)
    if out.shape[0] != out.shape[1] or n not in (None, len(out)):
        wanted = "square" if n is None else f"of shape ({n}, {n}), as there are {n} points"
        raise ValueError(f"{name} must be {wanted}, got shape {out.shape}")
    apart, largest = np.abs(out - out.T), float(np.abs(out).max())
    if apart.max() > ASYMMETRY * largest:
        i, j = np.unravel_index(int(apart.argmax()), out.shape)
        raise ValueError(
            f"{name} must be symmetric, and {name}[{i}, {j}] = {out[i, j]:g} where {name}[{j}, {i}]"
            f" = {out[j, i]:g}; pass the covariances of the points with themselves"
        )
    as_diagonal(np.diagonal(out), f"the diagonal of {name}", len(out))
    return out


def as_cross_matrix(K: ArrayLike, name: str, n: int) -> Array:
    """Covariances between test points, in rows, and n training points, checked."""
    out = _as_matrix(K, name)
    if out.shape[1] != n:
        hint = f"; pass {name}.T" if out.shape[0] == n else ""
        raise ValueError(
            f"{name} must have a row for each test point and a column for each of the {n} training "
            f"points, got shape {out.shape}{hint}"
        )
    return out


def as_diagonal(values: ArrayLike, name: str, m: int) -> Array:
    """Prior variances of m points, checked."""
    out = as_reals(values, name)
    if out.shape != (m,):
        raise ValueError(
            f"{name} must hold one variance for each of {m} points, got shape {out.shape}"
        )
    wrong = ~np.isfinite(out) | (out < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{name} must hold variances, and entry {row} is {out[row]:g}")
    return out


def _as_matrix(K: ArrayLike, name: str) -> Array:
    out = as_reals(K, name)
    if out.ndim != 2:
        got = "one number" if out.ndim == 0 else f"an array of shape {out.shape}"
        raise ValueError(f"{name} must be a matrix of covariances, got {got}")
    if 0 in out.shape:
        raise ValueError(f"{name} is empty: its shape is {out.shape}")
    if not np.isfinite(out).all():
        row, column = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(
            f"{name} holds {out[row, column]} (row {row}, column {column}); compute that "
            "covariance again, or drop the point"
        )
    return out
