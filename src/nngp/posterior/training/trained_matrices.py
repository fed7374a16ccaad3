"""Networks trained by gradient descent, from their two kernel matrices K and Θ.

Rows hold Θ, then K (`given.py`); test points hold Θ*, K*, and K** where a covariance is wanted.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._machine import single_threaded_blas
from nngp.gram import Inputs
from nngp.linsolve import CpuEngine
from nngp.posterior.given import (
    UNKNOWN,
    GivenProblem,
    as_cross_matrix,
    as_diagonal,
    as_kernel_matrix,
    given_noise,
    kept_rows,
    solve_given,
)
from nngp.posterior.noise import as_noise
from nngp.posterior.setup import Resources, as_targets
from nngp.posterior.training.converged import Converged
from nngp.posterior.training.trained import TrainedEnsemble, as_positive
from nngp.posterior.training.training_problem import TrainingProblem


@dataclass(frozen=True, eq=False)
class GivenTraining(TrainingProblem):
    """The training of networks whose kernel matrices are given."""

    inputs: Inputs

    @property
    def tangent(self) -> GivenProblem:
        return GivenProblem(UNKNOWN, self.inputs, self._here, 0, 2)

    @property
    def prior(self) -> GivenProblem:
        return GivenProblem(UNKNOWN, self.inputs, self._here, len(self.inputs), 2)

    def prior_variance(self, test: Inputs) -> Array:
        return test.var

    def prior_covariance(self, test: Inputs) -> Array:
        return test.X[:, 2 * len(self.inputs) :].copy()

    @cached_property
    def converged(self) -> Converged:
        posterior = solve_given(self.tangent, self.targets, False, self.noise, stacklevel=8)
        return Converged(self.prior, posterior, self.target_noise)


@single_threaded_blas()
def train_matrix_ensemble(
    K: ArrayLike,
    theta: ArrayLike | None,
    Y: ArrayLike,
    *,
    time: ArrayLike | None = math.inf,
    learning_rate: float = 1.0,
    noise_var: float = 0.0,
    relative_noise: bool = False,
) -> "TrainedMatrixEnsemble":
    """Train all networks of a kind by gradient descent on the squared error, given their kernels.

    The same as `nngp.training.train_ensemble`, for kernels that were computed elsewhere.

    Parameters
    ----------
    K : array_like, (n, n)
        Covariances of the outputs of untrained networks at the training points.
    theta : array_like, (n, n), or None
        Their tangent kernel. None trains the last layer alone, as ``layers="last"`` of
        `nngp.training.train_ensemble`; theta_star is then K_star.
    Y : array_like, (n,) or (n, outputs)
    time, learning_rate, noise_var
        As in `nngp.training.train_ensemble`.
    relative_noise : bool
        Take `noise_var` in units of the mean of theta's diagonal, as neural-tangents' `diag_reg`.

    Returns
    -------
    TrainedMatrixEnsemble

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> net = nngp.Architecture(2, "erf", 2.0, 0.1)
    >>> K, theta = nngp.kernels([net, nngp.NTK(net)], X)
    >>> networks = nngp.training.train_matrix_ensemble(K, theta, X[:, 0], time=100.0)
    >>> mean, variance = networks.predict(K[:4], theta[:4], np.diag(K)[:4])
    >>> bool(
    ...     np.allclose(mean, nngp.training.train_ensemble(net, X, X[:, 0], time=100.0).mean(X[:4]))
    ... )
    True
    """
    covariance = as_kernel_matrix(K, "K")
    tangent = covariance if theta is None else as_kernel_matrix(theta, "theta")
    if tangent.shape != covariance.shape:
        raise ValueError(
            f"theta has shape {tangent.shape} and K has {covariance.shape}; they must agree"
        )
    targets, single = as_targets(Y, len(covariance))
    rows = kept_rows(tangent, covariance)
    noise = given_noise(as_noise(noise_var), relative_noise, tangent)
    rate = as_positive("learning_rate", learning_rate)
    resources = Resources(CpuEngine())
    problem = GivenTraining(
        UNKNOWN, rows.X, rows, targets, single, rate, noise, "cholesky", "cpu",
        resources.memory, resources.progress, "last" if theta is None else "all",
    )  # fmt: skip
    return TrainedMatrixEnsemble(TrainedEnsemble(problem, time))


class TrainedMatrixEnsemble:
    """The infinite ensemble of trained networks, from matrices. Made by
    `nngp.training.train_matrix_ensemble`.

    Attributes
    ----------
    n : int
    time : float or array

    Examples
    --------
    >>> import nngp
    >>> networks = nngp.training.train_matrix_ensemble([[1.0]], [[2.0]], [1.0], time=[0.0, 1.0])
    >>> networks.mean([[2.0]]).round(3).tolist()  # 1 - exp(-2)
    [[0.0], [0.865]]
    """

    def __init__(self, networks: TrainedEnsemble) -> None:
        self._networks = networks

    @property
    def n(self) -> int:
        return self._networks.n

    @property
    def time(self) -> float | Array:
        return self._networks.time

    def at(self, time: ArrayLike | None) -> "TrainedMatrixEnsemble":
        """The same networks at another time, or at several. What was computed is used again.

        Examples
        --------
        >>> import nngp
        >>> networks = nngp.training.train_matrix_ensemble([[1.0]], [[2.0]], [1.0])
        >>> networks.at(1.0).mean([[2.0]]).round(3).tolist()
        [0.865]
        """
        return TrainedMatrixEnsemble(self._networks.at(time))

    def mean(self, theta_star: ArrayLike) -> Array:
        """Mean of all networks at m test points, from their tangent kernel with the training
        points, (m, n): (m,) or (m, outputs), as Y was given.

        Examples
        --------
        >>> import nngp
        >>> networks = nngp.training.train_matrix_ensemble([[1.0]], [[2.0]], [1.0])
        >>> networks.mean([[1.0]]).round(6).tolist()
        [0.5]
        """
        theta = as_cross_matrix(theta_star, "theta_star", self.n)
        none = np.zeros_like(theta)
        return self._networks.mean(Inputs(np.hstack([theta, none]), none[:, 0]))

    def predict(
        self, K_star: ArrayLike, theta_star: ArrayLike, diagonal: ArrayLike
    ) -> tuple[Array, Array]:
        """Mean and variance of all networks at m test points, from their covariances and tangent
        kernel with the training points, (m, n) each, and their prior variances, (m,).

        Examples
        --------
        >>> import nngp
        >>> networks = nngp.training.train_matrix_ensemble([[1.0]], [[2.0]], [1.0])
        >>> mean, variance = networks.predict([[1.0]], [[2.0]], [1.0])
        >>> mean.round(6).tolist(), variance.round(6).tolist()
        ([1.0], [0.0])
        """
        both = self._both(K_star, theta_star)
        return self._networks.predict(Inputs(both, as_diagonal(diagonal, "diagonal", len(both))))

    def covariance(self, K_star: ArrayLike, theta_star: ArrayLike, K_test: ArrayLike) -> Array:
        """Covariance between m test points, (m, m), from their covariances with each other too.

        Examples
        --------
        >>> import nngp
        >>> networks = nngp.training.train_matrix_ensemble([[1.0]], [[2.0]], [1.0])
        >>> own = [[1.0, 0.0], [0.0, 1.0]]
        >>> networks.covariance([[1.0], [0.0]], [[2.0], [0.0]], own).round(6).tolist()
        [[0.0, 0.0], [0.0, 1.0]]
        """
        both = self._both(K_star, theta_star)
        own = as_kernel_matrix(K_test, "K_test", len(both))
        return self._networks.covariance(Inputs(np.hstack([both, own]), np.diagonal(own).copy()))

    def _both(self, K_star: ArrayLike, theta_star: ArrayLike) -> Array:
        K = as_cross_matrix(K_star, "K_star", self.n)
        theta = as_cross_matrix(theta_star, "theta_star", self.n)
        if len(K) != len(theta):
            raise ValueError(
                f"K_star has {len(K)} rows and theta_star has {len(theta)}; they must agree"
            )
        return np.hstack([theta, K])

    def __repr__(self) -> str:
        return repr(self._networks).replace(
            "TrainedEnsemble(given matrices, ", "TrainedMatrixEnsemble("
        )
