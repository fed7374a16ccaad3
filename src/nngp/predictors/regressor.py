"""Regression: the posterior mean as the prediction, its spread as the doubt."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nngp.predictors.estimator import NNGPEstimator
from nngp.predictors.scaling import TARGET_SCALINGS, TargetScaling, check_choice

Array = NDArray[np.float64]


class NNGPRegressor(MultiOutputMixin, RegressorMixin, NNGPEstimator):
    """Bayesian regression with a deep network of infinite width.

    `NNGPRegressor().fit(X, y)` needs no tuning: it chooses activation, depth, variances, noise
    and the relevance of each input by the marginal likelihood, with exact gradients.

    Parameters
    ----------
    depth : int, math.inf or "auto"
        Hidden layers. "auto" tries 1, 2 and 3.
    activation : str, callable, Activation or "auto"
        "auto" tries "relu" and "erf".
    weight_var, bias_var : float, sequence of depth + 1 floats, or "auto"
        Prior variances (the weights' times fan-in). "auto" finds one a layer.
    noise_var : float or "auto"
        Variance of the observation noise, on the scale of the scaled targets.
    relevance : "auto", bool or array of d floats
        Whether each input gets a weight variance of its own; "auto" does so if d <= n, with
        selection "evidence" or "loo" and inputs that are not on a sphere.
    input_scaling : {"auto", "standardize", "sphere", "unit", "none"}
        Columns to mean 0 and deviation 1; the same, then rows to one norm with a constant input
        added; rows to one norm, as in the paper; or nothing. "auto" standardizes, and gives
        columns their own spread back if that is better, as it is for pixels; for an activation
        without a closed form it takes "sphere", where all of them are fast.
    target_scaling : {"standardize", "none"}
    selection : {"evidence", "loo", "grid", None}
        How "auto" is decided: marginal likelihood; leave-one-out density; the paper's grid of
        depths and variances on held-out points (8,100 networks for each activation unless
        `budget` says less), with the paper's noise of 1e-10 unless one is given; or not at all
        (a ReLU network of depth 2, noise 0.1).
    selection_size : int
        At most so many points are used for the choice (four times as many for the noise alone);
        all are used afterwards.
    budget : int, optional
        At most so many networks are computed for the choice; 20 by default for an activation that
        has kinks and no closed form, some hundreds otherwise.
    solver : {"auto", "cholesky", "cg"} or CG
        How the final system is solved; see `nngp.condition`.
    engine : {"auto", "cpu", "gpu"} or engine
        Where to compute; see `nngp.condition`. With a `DaskEngine` the network is chosen on this
        machine and conditioned on the cluster.
    random_state : int, RandomState or None
        Which points the choice uses.
    progress : callable or bool, optional
        As in `nngp.condition`.

    Attributes
    ----------
    architecture_ : Architecture
        The network chosen.
    noise_var_ : float
    relevance_ : array (d,)
        How strongly each (scaled) input moves the network, relative to the strongest.
    log_marginal_likelihood_ : float
        Of the targets as given.
    selection_ : dict of arrays
        What was tried and how it scored; `pandas.DataFrame(model.selection_)` shows it.
    posterior_ : Posterior
        Of the scaled targets given the scaled inputs.
    report_ : Report
        What was computed, how exactly, how long it took.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = nngp.NNGPRegressor().fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1)) < 1e-3), bool(std[1] > 10 * std[0])
    (True, True)
    """

    def fit(self, X: Any, y: Any) -> "NNGPRegressor":
        """Choose a network and condition it on the data."""
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", multi_output=True, y_numeric=True
        )
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        check_choice("target_scaling", self.target_scaling, TARGET_SCALINGS)
        scaling = TargetScaling.learn(targets, self.target_scaling)
        self._fit_process(X, targets, scaling, classes=False)
        self._single = np.ndim(y) == 1
        return self

    @property
    def log_marginal_likelihood_(self) -> float:
        check_is_fitted(self, "posterior_")
        scale = np.log(self._target_scaling.spread).sum()
        return self.posterior_.log_evidence - self.posterior_.n * float(scale)

    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False, *, noise: bool = True
    ) -> Any:
        """The posterior mean; with its standard deviation or its covariance.

        Both are of new observations; with `noise=False` of the function behind them. Shapes are
        (m,) for one output and (m, outputs) for several, (m, m) and (m, m, outputs) for the
        covariance.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be asked for; pass one")
        Xs, targets = self._scaled(X), self._target_scaling
        if return_cov:
            mean, cov = self.posterior_.mean(Xs), self.posterior_.covariance(Xs, noise=noise)
            return self._shaped(targets.undo(mean)), self._shaped(
                cov[:, :, None] * targets.spread**2
            )
        if return_std:
            mean, variance = self.posterior_.predict(Xs, noise=noise)
            std = np.sqrt(variance)[:, None] * targets.spread
            return self._shaped(targets.undo(mean)), self._shaped(std)
        return self._shaped(targets.undo(self.posterior_.mean(Xs)))

    def predict_interval(
        self, X: Any, coverage: float = 0.95, *, noise: bool = True
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval that holds an observation with that
        probability."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
        mean, std = self.predict(X, return_std=True, noise=noise)
        half = float(ndtri(0.5 + coverage / 2)) * std
        return mean - half, mean + half

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: Any = 0, *, noise: bool = True
    ) -> Array:
        """Draws from the posterior, (m, n_samples) or (m, outputs, n_samples)."""
        Xs, seed = self._scaled(X), check_random_state(random_state).randint(2**31)
        draws = self.posterior_.sample(Xs, n_samples, seed, noise=noise)
        out = np.moveaxis(self._target_scaling.undo(draws), 0, -1)
        return out[:, 0] if self._single else out

    def _shaped(self, columns: Array) -> Array:
        return columns[..., 0].copy() if self._single else columns
