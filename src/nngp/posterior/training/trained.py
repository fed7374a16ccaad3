"""Networks trained by gradient descent: the infinite ensemble at any time of its training.

Lee et al., "Wide Neural Networks of Any Depth Evolve as Linear Models Under Gradient Descent"
(2019). The formulas stand in `converged.py` for infinite and in `descent.py` for finite time.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array, Mask
from nngp._machine import single_threaded_blas
from nngp._numbers import as_real, as_reals, whole_number
from nngp._progress import Callback
from nngp.architecture import Network
from nngp.errors import ToleranceWarning
from nngp.gram import Inputs, check_network
from nngp.linsolve import CG, Engine
from nngp.posterior.draws import draws_around
from nngp.posterior.report import Report
from nngp.posterior.setup import as_targets
from nngp.posterior.training.descent import EnsembleMoments, Losses, losses
from nngp.posterior.training.learning_rate import check_trainable
from nngp.posterior.training.training_problem import TrainingProblem

SCALE = "the kernel's scale"
WARN_ABOVE = 1e-6  # rounding of a mean relative to the targets, of a variance to the kernel's scale


@single_threaded_blas()
def train_ensemble(
    network: Network,
    X: ArrayLike,
    Y: ArrayLike,
    *,
    time: ArrayLike | None = math.inf,
    learning_rate: float = 1.0,
    noise_var: float = 0.0,
    relative_noise: bool = False,
    layers: str = "all",
    solver: str | CG = "auto",
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Callback | bool | None = None,
) -> "TrainedEnsemble":
    """Train all networks of a kind by gradient descent on the squared error.

    Networks of infinite width that are drawn from the prior and trained have outputs of a Gaussian
    process. This is its distribution after any time of training (Lee et al. 2019): the same as
    that of neural-tangents' `gradient_descent_mse_ensemble`.

    Parameters
    ----------
    network : Network
        `nngp.Architecture`, or one of parts. Of finite depth, without dropout, and with
        activations that do not jump.
    X : array_like, (n, d), or path
        As in `nngp.condition`; for finite times in the memory of this machine.
    Y : array_like, (n,) or (n, outputs)
    time : float or array_like
        How long networks are trained: steps of gradient descent, in the limit of small steps. 0 is
        the prior, infinity (or None) the end of training. Several times give results with a
        leading axis.
    learning_rate : float
        Multiplies time, and nothing else; `nngp.training.max_learning_rate` has the largest at
        which descent in steps is stable.
    noise_var : float
        Strength of a weight decay towards the weights that a network began with: the loss has the
        term noise_var |θ - θ₀|² / (2 n outputs) beside the squared error. The same as Θ + noise_var
        in place of the tangent kernel Θ of the training inputs (neural-tangents' `diag_reg` in
        absolute units). For infinite time it is raised where no factor exists, with a warning, as
        in `nngp.condition`.
    relative_noise : bool
        Take `noise_var` in units of the tangent kernel's own scale, as in `nngp.condition`.
    layers : {"all", "last"}
        Train the weights and biases of all layers, or of the last only: Θ is then K. Each network
        is then trained on targets with noise of its own, of variance `noise_var`, so that the end
        of training is the posterior of `nngp.condition` (neural-tangents' ``get="nngp"``).
    solver, engine, memory, progress
        As in `nngp.condition`, for infinite time. Finite times are computed on this machine, from
        the eigenvectors of an n x n matrix in memory. Variances need a factor.

    Returns
    -------
    TrainedEnsemble

    Warns
    -----
    ToleranceWarning
        If rounding may move a mean by more than 1e-6 of the targets, or a variance by more than
        1e-6 of the kernel's scale, or hides some directions of the training data.
    NoiseWarning, ConstantKernelWarning
        As in `nngp.condition`, for infinite time.

    Raises
    ------
    MemoryError
        Before any work, if it cannot fit; it says how many points would.
    ValueError
        For finite times and more than 15,000 points; for dropout.

    Notes
    -----
    The loss is |f(X) - Y|² / (2 n outputs), and dθ/dt = -learning_rate dloss/dθ with weights in
    units of their prior deviation. With Θ the tangent kernel, K the covariance, and
    A = (Θ + noise_var)⁻¹ (1 - exp(-learning_rate time (Θ + noise_var) / (n outputs))) on the
    training inputs, mean and covariance at test inputs are Θ* A Y and
    K** - Θ* A K*ᵀ - K* A Θ*ᵀ + Θ* A K A Θ*ᵀ (K + noise_var in the last term where only the last
    layer is trained). For infinite time the mean is that of
    ``condition(NTK(network), X, Y, noise_var=noise_var)``; the covariance is not.

    The constants of both kernels are kept apart, for all times, so what deep networks know of
    their inputs is not lost beside them.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> net = nngp.Architecture(2, "erf", 2.0, 0.1)
    >>> end = nngp.training.train_ensemble(net, X, X[:, 0])
    >>> bool(np.allclose(end.mean(X), X[:, 0])), bool(end.variance(X).max() < 1e-8)
    (True, True)
    >>> begin = end.at(0.0)
    >>> begin.mean(X[:2]).tolist(), bool(np.allclose(begin.covariance(X), nngp.kernel(net, X)))
    ([0.0, 0.0], True)
    """
    check_network(network)
    check_trainable(network)
    problem = TrainingProblem.of(
        network,
        X,
        Y,
        learning_rate=as_positive("learning_rate", learning_rate),
        noise_var=noise_var,
        relative_noise=relative_noise,
        solver=solver,
        engine=engine,
        memory=memory,
        progress=progress,
        layers=layers,
    )
    return TrainedEnsemble(problem, time)


class TrainedEnsemble:
    """The infinite ensemble of trained networks. Made by `nngp.training.train_ensemble`.

    Attributes
    ----------
    network : Network
    time : float or array
    learning_rate : float
    noise_var : float
        As a variance, relative or not; what was asked for.
    report : Report or None
        Of the factorisation, for infinite time (`nngp.Posterior`); None otherwise.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> networks = nngp.training.train_ensemble(
    ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
    ... )
    >>> networks  # doctest: +ELLIPSIS
    TrainedEnsemble(Architecture(depth=2, ...), n=20, time=100, learning_rate=1, noise_var=0)
    """

    def __init__(self, problem: TrainingProblem, time: ArrayLike | None) -> None:
        self._problem = problem
        self._times = as_times(time)
        self.time = float(self._times[0]) if time is None or not np.ndim(time) else self._times
        self._prepare()

    @property
    def network(self) -> Network:
        return self._problem.network

    @property
    def learning_rate(self) -> float:
        return self._problem.learning_rate

    @property
    def noise_var(self) -> float:
        return self._problem.noise_var

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self._problem.inputs)

    @property
    def report(self) -> Report | None:
        ends = np.isinf(self._times).any()
        return self._problem.converged.posterior.report if ends else None

    @single_threaded_blas()
    def at(self, time: ArrayLike | None) -> "TrainedEnsemble":
        """The same networks at another time, or at several. What was computed is used again.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> networks.at([1.0, 10.0, 1e9]).mean(X[:4]).shape
        (3, 4)
        """
        return TrainedEnsemble(self._problem, time)

    @single_threaded_blas()
    def mean(self, Xs: ArrayLike) -> Array:
        """Mean of all networks at test points: (m,) or (m, outputs), as Y was given.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> networks.mean(X[:4]).shape
        (4,)
        """
        found = self._moments(self._problem.tangent.test_inputs(Xs), variance=False)
        return self._by_time([self._shaped(moments.mean) for moments in found])

    @single_threaded_blas()
    def variance(self, Xs: ArrayLike) -> Array:
        """Variance between networks at test points, (m,). All outputs share it.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> bool((networks.variance(X) < networks.at(0.0).variance(X)).all())
        True
        """
        return self.predict(Xs)[1]

    @single_threaded_blas()
    def predict(self, Xs: ArrayLike) -> tuple[Array, Array]:
        """`mean` and `variance` in one pass.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> mean, variance = networks.predict(X[:4])
        >>> mean.shape, variance.shape
        ((4,), (4,))
        """
        found = self._moments(self._problem.tangent.test_inputs(Xs), variance=True)
        _warn_of_rounding(max(moments.rounding for moments in found), "a variance", SCALE)
        means = self._by_time([self._shaped(moments.mean) for moments in found])
        return means, self._by_time([np.asarray(moments.variance) for moments in found])

    @single_threaded_blas()
    def covariance(self, Xs: ArrayLike) -> Array:
        """Covariance between test points, (m, m), exactly symmetric.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> bool(np.allclose(np.diag(networks.covariance(X[:4])), networks.variance(X[:4])))
        True
        """
        test = self._problem.tangent.test_inputs(Xs)
        found = [self._covariance(test, time) for time in self._times.tolist()]
        _warn_of_rounding(max(rounding for _, rounding in found), "a covariance", SCALE)
        return self._by_time([covariance for covariance, _ in found])

    @single_threaded_blas()
    def sample(self, Xs: ArrayLike, n: int = 1, seed: Any = None) -> Array:
        """Outputs of `n` trained networks at test points: (n, m), or (n, m, outputs) as Y was
        given. `seed` is anything that `numpy.random.default_rng` takes. For one time only.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X, X[:, 0], time=100.0
        ... )
        >>> networks.sample(X[:4], n=5, seed=0).shape
        (5, 4)
        """
        count = whole_number("n", n, least=0)
        if np.ndim(self.time):
            raise ValueError(
                "draws at several times would not be of the same networks; use at(time) and sample "
                "for one of them"
            )
        covariance = np.asarray(self.covariance(Xs))
        unit = self._problem.kernel_scale + float(np.diagonal(covariance).max())
        single = self._problem.single
        return draws_around(self.mean(Xs), covariance, count, seed, unit, single=single)

    @single_threaded_blas()
    def losses(
        self, times: ArrayLike, Xs: ArrayLike | None = None, Ys: ArrayLike | None = None
    ) -> Losses:
        """Training loss at each of these times, and test loss if there are test points.

        The loss of the mean of all networks, and the mean of the losses of single networks, which
        have their variance besides.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(30, 3)))
        >>> networks = nngp.training.train_ensemble(
        ...     nngp.Architecture(2, "erf", 2.0, 0.1), X[:20], X[:20, 0]
        ... )
        >>> losses = networks.losses([0.0, 10.0, 1000.0], X[20:], X[20:, 0])
        >>> bool((np.diff(losses.train) < 0).all()), losses.test.shape
        (True, (3,))
        """
        if (Xs is None) != (Ys is None):
            raise ValueError("test points need targets; pass both Xs and Ys, or neither")
        test = targets = None
        if Xs is not None and Ys is not None:
            test = self._problem.tangent.test_inputs(Xs)
            targets, _ = as_targets(Ys, len(test), "Ys")
            if targets.shape[1] != self._problem.targets.shape[1]:
                raise ValueError(
                    f"Ys has {targets.shape[1]} outputs and Y had {self._problem.targets.shape[1]}"
                )
        return losses(self._problem.descent, as_times(times, "times"), test, targets)

    def __repr__(self) -> str:
        time = f"{self.time:g}" if isinstance(self.time, float) else f"{len(self.time)} times"
        known = f"n={self.n}, time={time}, learning_rate={self.learning_rate:g}"
        known += "" if self._problem.layers == "all" else ", layers='last'"
        return f"TrainedEnsemble({self.network!r}, {known}, noise_var={self.noise_var:g})"

    def _prepare(self) -> None:
        """Factor or decompose the tangent kernel, as the times need it, and look at rounding."""
        if np.isinf(self._times).any():
            _ = self._problem.converged
        finite = self._times[_is_between(self._times)]
        if not len(finite):
            return
        descent = self._problem.descent
        latest = descent.filter(float(finite.max()))
        if latest.lost:
            warnings.warn(
                f"{latest.lost} of {self.n} directions of the training data are trained at rates "
                "below rounding, and left untrained; pass a larger noise_var, or drop rows that "
                "repeat each other",
                ToleranceWarning,
                stacklevel=5,
            )
        _warn_of_rounding(descent.mean_rounding(latest), "a mean", "the targets", 4)

    def _moments(self, test: Inputs, *, variance: bool) -> list[EnsembleMoments]:
        """EnsembleMoments at each time: those of finite times together."""
        between = _is_between(self._times)
        some = self._times[between].tolist()
        rest = iter(self._problem.descent.moments(test, some, variance=variance) if some else [])
        ends = {0.0: self._before, math.inf: self._after}
        return [
            next(rest) if is_between else ends[time](test, variance)
            for time, is_between in zip(self._times.tolist(), between, strict=True)
        ]

    def _before(self, test: Inputs, variance: bool) -> EnsembleMoments:
        mean = np.zeros((len(test), self._problem.targets.shape[1]))
        return EnsembleMoments(mean, self._problem.prior_variance(test) if variance else None, 0.0)

    def _after(self, test: Inputs, variance: bool) -> EnsembleMoments:
        converged = self._problem.converged
        mean = converged.mean(test)
        if not variance:
            return EnsembleMoments(mean, None, 0.0)
        return EnsembleMoments(mean, *converged.variance(test))

    def _covariance(self, test: Inputs, time: float) -> tuple[Array, float]:
        if time == 0:
            return self._problem.prior_covariance(test), 0.0
        if math.isinf(time):
            found, rounding = self._problem.converged.covariance(test)
        else:
            found, rounding = self._problem.descent.covariance(test, time)
        np.fill_diagonal(found, np.maximum(np.diagonal(found), 0.0))
        return found, rounding

    def _by_time(self, found: Sequence[Array]) -> Array:
        return np.stack(found) if np.ndim(self.time) else found[0]

    def _shaped(self, columns: Array) -> Array:
        return columns[:, 0].copy() if self._problem.single else columns


def as_times(time: ArrayLike | None, name: str = "time") -> Array:
    """Times, checked: one or more, not negative, perhaps infinite, which None stands for."""
    times = np.array(as_reals(math.inf if time is None else time, name), ndmin=1)
    if times.ndim != 1 or not len(times):
        raise ValueError(f"{name} must be one number or a vector of them, got {times.shape}")
    if not (times >= 0).all():  # NaN is not either
        raise ValueError(f"{name} must not be negative, got {times[~(times >= 0)][0]}")
    return times


def _is_between(times: Array) -> Mask:
    """Which times are neither the beginning nor the end."""
    return (times > 0) & np.isfinite(times)


def as_positive(name: str, value: float) -> float:
    number = as_real(value, name)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be finite and positive, got {value}")
    return number


def _warn_of_rounding(error: float, what: str, unit: str, stacklevel: int = 4) -> None:
    if error > WARN_ABOVE:
        warnings.warn(
            f"rounding may move {what} by {error:.0e} of {unit}: the tangent kernel of these "
            "inputs is ill-conditioned; pass a larger noise_var, or drop rows that nearly repeat "
            "each other",
            ToleranceWarning,
            stacklevel=stacklevel,
        )
