"""Regression: the posterior mean predicts, the posterior variance is its uncertainty."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from nngp._arrays import Array
from nngp._numbers import as_reals, check_unmasked, whole_number
from nngp.posterior import Posterior
from nngp.predictors.columns import TableLike
from nngp.predictors.estimator import NNGPEstimator, check_data
from nngp.predictors.model_file import ModelFile
from nngp.predictors.parameters import Seed, check_choice
from nngp.predictors.targets import TARGET_SCALINGS, TargetScaling


class NNGPRegressor(MultiOutputMixin, RegressorMixin, NNGPEstimator):
    """Bayesian regression with a deep network of infinite width.

    `NNGPRegressor().fit(X, y)` needs no tuning: it chooses activation, depth, variances, noise
    and the relevance of each input by the marginal likelihood, with exact gradients.

    Parameters
    ----------
    depth : int, math.inf or "auto"
        Number of hidden layers. "auto" tries 1, 2 and 3.
    activation : str, callable, Activation or "auto"
        "auto" tries "relu" and "erf".
    weight_var, bias_var : float, sequence of depth + 1 floats, or "auto"
        Prior variances (the weights' times fan-in). "auto" finds one for each layer.
    noise_var : float or "auto"
        Variance of the observation noise, in units of the scaled targets.
    relevance : "auto", bool or array of d floats
        Whether each input gets a weight variance of its own; "auto" does so if d <= n, with
        selection "evidence" or "loo" and inputs that are not on a sphere.
    input_scaling : {"auto", "standardize", "sphere", "unit", "none"}
        "standardize" brings columns to mean 0 and deviation 1; "sphere" does the same, adds a
        constant input and brings rows to one norm; "unit" brings rows to one norm, as in the
        paper; "none" leaves the inputs as they are. "auto" standardizes, and restores the columns'
        own spreads if that is better, as it is for pixels; for an activation without a closed form
        it takes "sphere", where all activations are fast.
    target_scaling : {"standardize", "none"}
        "standardize" brings each output to mean 0 and deviation 1.
    selection : {"evidence", "loo", "grid", None}
        Criterion for what is "auto": marginal likelihood; leave-one-out density; the paper's grid
        of depths and variances on held-out points (8,100 networks for each activation unless
        `budget` is smaller), with the paper's noise of 1e-10 unless one is given; or none (a ReLU
        network of depth 2, noise 0.1).
    selection_size : int
        Largest number of points used for the choice (four times as many for the noise alone); the
        final fit uses all points.
    budget : int, optional
        Largest number of networks computed for the choice; 20 by default for an activation that
        has kinks and no closed form, some hundreds otherwise.
    solver : {"auto", "cholesky", "cg"} or CG
        Solver of the final system; see `nngp.condition`.
    engine : {"auto", "cpu", "gpu"} or engine
        Where to compute; see `nngp.condition`. With a `DaskEngine` the network is chosen on this
        machine and conditioned on the cluster.
    random_state : int, RandomState or None
        Seed for the points that are used for the choice.
    progress : callable or bool, optional
        As in `nngp.condition`; one bar shows the whole fit.

    Attributes
    ----------
    architecture_ : Architecture
        The chosen network.
    noise_var_ : float
        Noise variance in units of the scaled targets.
    relevance_ : array (d,)
        Relevance of each scaled input, relative to the largest.
    log_evidence_ : float
        Log marginal likelihood: the log density of all targets as they were given, in their own
        units. Also called `log_marginal_likelihood_`. Needs a Cholesky factor.
    selection_ : dict of arrays
        Networks tried; `pandas.DataFrame(model.selection_)` shows them. `log_evidence` is, like
        `log_evidence_`, in the units of the data, but of the `n` points that were looked at.
        `score` is what was maximised: the criterion of the scaled targets, with the prior of the
        hyper-parameters, for each target.
    posterior_ : Posterior
        Of the scaled targets given the scaled inputs; so its log_evidence is of scaled targets.
    report_ : Report
        Method, accuracy and time of the final fit.
    columns_ : Columns or None
        How the columns of a data frame became inputs (`features`, `left_out`, `remarks`); None if
        the inputs were plain numbers.

    Warns
    -----
    FewDataWarning
        If the data say nothing about noise and scale: fewer than five points, or all equal.
    ExtrapolationWarning
        If rows to predict lie far outside the training data.
    ColumnWarning
        If a column of a data frame is left out, lacks values, or holds some that training did not.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> model = nngp.NNGPRegressor().fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1)) < 1e-3), bool(std[1] > 10 * std[0])
    (True, True)
    """

    _kind: ClassVar[str] = "NNGPRegressor"

    def fit(self, X: TableLike, y: ArrayLike) -> Self:
        """Choose a network and condition it on the data.

        X is an array, or a data frame of pandas or polars. Text and categories in a frame become
        one input for each value, dates become days and phases of year, week and day, and missing
        values the training median, with an input that shows where. Such a model finds the columns
        of a later frame by name.
        """
        check_data(y, "y")
        inputs, answers = self._validated(X, y, multi_output=True, y_numeric=True)
        targets = as_reals(answers, "y").reshape(len(inputs), -1)
        check_choice("target_scaling", self.target_scaling, TARGET_SCALINGS)
        scaling = TargetScaling.learn(targets, self.target_scaling)
        with self._one_bar(inputs.shape, targets.shape[1], classes=False):
            self._fit_process(inputs, targets, scaling, classes=False)
        self._single = np.ndim(answers) == 1
        self._warn_of_few_data(inputs, targets, classes=False)
        return self

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the mean, as in scikit-learn."""
        check_unmasked([y, sample_weight], "y")
        return float(super().score(X, y, sample_weight))

    @property
    def log_marginal_likelihood_(self) -> float:
        """The same as `log_evidence_`, by scikit-learn's name."""
        return self.log_evidence_

    def predict(
        self,
        X: TableLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        noise: bool = True,
    ) -> Any:
        """Predict the posterior mean, with its standard deviation or covariance if asked for.

        Both are of new observations; with `noise=False` of the function behind them. Shapes are
        (m,) for one output and (m, outputs) for several, (m, m) and (m, m, outputs) for the
        covariance.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be asked for; pass one")
        if return_std:
            return self._mean_and_std(X, noise=noise)
        Xs, targets = self._scaled(X), self._target_scaling
        mean = self._shaped(targets.undo(self.posterior_.mean(Xs)))
        if not return_cov:
            return mean
        cov = self.posterior_.covariance(Xs, noise=noise)
        return mean, self._shaped(cov[:, :, None] * targets.spread**2)

    def predict_interval(
        self, X: TableLike, coverage: float = 0.95, *, noise: bool = True
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval that holds an observation with that
        probability."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
        mean, std = self._mean_and_std(X, noise=noise)
        half = float(ndtri(0.5 + coverage / 2)) * std
        return mean - half, mean + half

    def sample_y(
        self, X: TableLike, n_samples: int = 1, random_state: Seed = 0, *, noise: bool = True
    ) -> Array:
        """Draw samples from the posterior, (m, n_samples) or (m, outputs, n_samples)."""
        count = whole_number("n_samples", n_samples, least=0)
        Xs, seed = self._scaled(X), check_random_state(random_state).randint(2**31)
        draws = self.posterior_.sample(Xs, count, seed, noise=noise)
        out = np.moveaxis(self._target_scaling.undo(draws), 0, -1)
        return out[:, 0] if self._single else out

    def _mean_and_std(self, X: TableLike, *, noise: bool) -> tuple[Array, Array]:
        Xs = self._scaled(X)
        mean, variance = self.posterior_.predict(Xs, noise=noise)
        std = np.sqrt(variance)[:, None] * self._target_scaling.spread
        return self._shaped(self._target_scaling.undo(mean)), self._shaped(std)

    def _shaped(self, columns: Array) -> Array:
        return columns[..., 0].copy() if self._single else columns

    def _state(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        values, arrays = super()._state()
        return {**values, "single": self._single}, arrays

    def _restore(self, file: ModelFile, posterior: Posterior) -> None:
        super()._restore(file, posterior)
        fitted = file.header.fields("fitted")
        self._single = fitted.flag("single")
        if self._single and posterior._targets.shape[1] > 1:
            raise fitted.wrong("single", "false, as there are several outputs")
