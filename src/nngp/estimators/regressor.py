"""Regression: the posterior mean predicts, the posterior variance is its uncertainty."""

from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted

from nngp._arrays import Array
from nngp._machine import single_threaded_blas
from nngp._numbers import as_real, as_reals, check_unmasked, whole_number
from nngp.estimators.data_warnings import warn_of_duplicates, warn_of_no_signal
from nngp.estimators.estimator import NNGPEstimator, check_data, check_targets_are_there
from nngp.estimators.fitted_network import FittedNetwork
from nngp.estimators.mixing import (
    PredictionGradient,
    drawn_from,
    learn_blend,
    left_out_predictive,
    mixed_mean,
    mixture_gradient,
)
from nngp.estimators.parameters import RegressorParameters, Seed, documented
from nngp.estimators.saved import SavedModel, SavedRegression
from nngp.estimators.training_rows import TrainingRows, as_rows, as_weights
from nngp.estimators.trees import TreeComparison, compare_with_trees
from nngp.estimators.variance_estimate import MANY
from nngp.frames import TableLike
from nngp.linsolve import CG
from nngp.predictive.blend import Blend
from nngp.predictive.joint import joint_covariance
from nngp.predictive.predictive import Predictive
from nngp.predictive.resolution import duplicate_rows, floor_is_refuted, has_twin
from nngp.predictive.targets import TargetScaling, candidates as target_candidates
from nngp.selection import MIN_POINTS

JUDGED_MEANS = 200  # rows by which the error of means is found
MOST_TRANSFORMED = 20_000  # rows: with a transform a mean needs a variance, n² operations a point


@documented
class NNGPRegressor(MultiOutputMixin, RegressorMixin, RegressorParameters, NNGPEstimator):
    """Bayesian regression with a deep network of infinite width.

    `NNGPRegressor().fit(X, y)` needs no tuning: it chooses activation, depth, variances, noise,
    the relevance and a monotone map of each input, and a transform of the targets by the marginal
    likelihood, with exact gradients. The width of its intervals is checked on held-out rows.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    network_ : Network
        The chosen network: an `nngp.Architecture`, or an `nngp.Invariant` of one.
    mean_error_ : float
        Error of `predict`'s means, in deviations of the targets, where it estimates variances: with
        transformed targets and more than 5,000 rows, unless a deviation is asked for.
    noise_var_ : float
        Noise variance in units of the scaled targets.
    target_transform_ : str
        The transform that was chosen.
    column_maps_ : list of (str, str)
        Name and map of each input.
    networks_, network_weights_ : tuple of FittedNetwork, array
        The networks kept, each with its `posterior`, `inputs` and `targets`, and their shares. The
        first is described by the attributes that are of one network.
    duplicate_rows_ : int
        Rows that repeat another row, inputs and targets.
    trees_ : TreeComparison or None
        Errors of the network and of trees on the same held-out rows; None if not compared.
    whitening_ : float or None
        Strength of whitening that was used; None where inputs are not whitened.
    invariance_ : tuple of families
        Transformations that the network is averaged over; empty without any.
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
    DuplicateRowsWarning
        If one row in a hundred, or more, repeats another.
    LeakageWarning
        If one column explains the targets almost perfectly.
    NoSignalWarning
        If held-out rows are predicted no better than without inputs.
    TreesWarning
        If trees predict held-out rows better. Not looked at with effort "fast".
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

    @single_threaded_blas()
    def fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_var: ArrayLike | None = None,
    ) -> Self:
        """Choose networks and condition them on the data.

        Parameters
        ----------
        X : array (n, d), or data frame of pandas or polars
            Text and categories in a frame become one input for each value, dates become days and
            phases of year, week and day, and missing values the training median, with an input
            that shows where. Such a model finds the columns of a later frame by name.
        y : array (n,) or (n, outputs)
        sample_weight : array (n,), optional
            A row of weight 2 predicts as two rows do, and one of weight 0 is left out. Whole
            weights count copies in the evidence, too; where some are not whole, they say only how
            certain a row is: its noise is divided by its weight.
        noise_var : array (n,), optional
            Variance of each row's error as far as it is known, in squared units of y. It is added
            to the noise that is learned; with the parameter `noise_var=0` it is all there is.
            New observations have the learned noise.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> model = nngp.NNGPRegressor(depth=3, selection=None, noise_var=1e-3)
        >>> model.fit(X, np.sin(X[:, 0])).network_.depth
        3
        >>> weights = np.where(X[:, 0] < 0, 0.0, 1.0)  # leave out the left half
        >>> half = model.fit(X, np.sin(X[:, 0]), sample_weight=weights)
        >>> bool(half.predict([[-2.0]], return_std=True)[1][0] > 0.1)
        True
        """
        rows, answers = self._rows(X, y, sample_weight, noise_var)
        ordered = rows.some(rows.order())
        targets = self._target_candidates(ordered.Y, ordered.weights)
        with self._one_bar(rows.X.shape, rows.Y.shape[1], classes=False):
            networks = self._choose_networks(rows, targets, classes=False)
            networks = self._without_refuted_floor(networks, rows, targets)
            if self.noise == "heteroscedastic":
                networks = [one.with_varying_noise(rows, self._machine) for one in networks]
            self._set_blended(networks)
            self.trees_ = self._compare_with_trees(rows)
        self._see(rows.X)
        self._single = np.ndim(answers) == 1
        self._warn_of_few_data(rows.X, rows.Y, classes=False)
        warn_of_duplicates(self.duplicate_rows_, len(rows.X), stacklevel=3)
        self._warn_of_leakage(rows.X, rows.Y, classes=False)
        self._warn_of_no_signal(rows)
        if self.trees_ is not None:
            self.trees_.warn(stacklevel=3)
        return self

    @single_threaded_blas()
    def partial_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_var: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fit. The networks, scalings and encodings stay as the first call, which
        is `fit`, chose them; the factor is extended, not computed again.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> _, before = model.predict([[4.0]], return_std=True)
        >>> model = model.partial_fit([[4.0]], [np.sin(4.0)])
        >>> _, after = model.predict([[4.0]], return_std=True)
        >>> bool(after[0] < before[0] / 2)
        True
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight, noise_var)
        rows, answers = self._more_rows(X, y, sample_weight, noise_var)
        outputs = self.posterior_.targets.shape[1]
        if rows.Y.shape[1] != outputs or (np.ndim(answers) == 1) != self._single:
            raise ValueError(
                f"y has the shape {np.shape(answers)}, and that of the first call was "
                f"{'(n,)' if self._single else f'(n, {outputs})'}; pass y in the same shape"
            )
        self._set_blended([one.updated(rows) for one in self.networks_])
        if self._seen is not None:
            self._seen = self._seen.widened(rows.X)
        return self

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the mean, as in scikit-learn.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> round(model.score([[0.5], [1.5], [2.5]], np.sin([0.5, 1.5, 2.5])), 2)
        1.0
        """
        check_unmasked([y, sample_weight], "y")
        return float(super().score(X, y, sample_weight))

    @property
    def log_marginal_likelihood_(self) -> float:
        """The same as `log_evidence_`, by scikit-learn's name."""
        return self.log_evidence_

    @property
    def target_transform_(self) -> str:
        """The transform of the targets that was chosen."""
        check_is_fitted(self, "posterior_")
        return self.networks_[0].targets.transform

    @property
    def noise_floor_(self) -> float:
        """Least noise variance by the resolution of the targets, in units of the scaled ones."""
        check_is_fitted(self, "posterior_")
        return self.networks_[0].targets.noise_floor

    @property
    def mean_error_(self) -> float:
        """Error of the means of `predict` by estimated variances (root mean square, in deviations
        of the targets); 0 where variances are exact."""
        check_is_fitted(self, "posterior_")
        if self._means_suffice or self.posterior_.n <= MANY:
            return 0.0
        rows = np.random.default_rng(1).permutation(self.posterior_.n)[:JUDGED_MEANS]
        targets, ends = [one.targets for one in self.networks_], []
        for sign in (-1.0, 1.0):
            both = []
            for one in self.networks_:
                Xs, estimate = (
                    one.posterior.inputs.take(rows).X,
                    one.variance_estimate(self._machine),
                )
                variance = estimate(Xs) * np.exp(sign * estimate.error) + one.noise(Xs, True)
                both.append((one.posterior.mean(Xs), variance[:, None]))
            means, variances = zip(*both, strict=True)
            ends.append(self._blend.predictive(means, variances, targets).mean())
        spread = targets[0].undo(self.posterior_.targets).std(axis=0)
        moved = (ends[1] - ends[0]) / 2 / np.where(spread > 0, spread, 1.0)
        return float(np.sqrt(np.square(moved).mean()))

    @property
    def network_weights_(self) -> Array:
        """Share of each of `networks_` in the predictions."""
        check_is_fitted(self, "posterior_")
        return self._blend.network_weights

    @overload
    def predict(
        self,
        X: TableLike,
        return_std: Literal[False] = False,
        return_cov: Literal[False] = False,
        *,
        noise: bool = True,
    ) -> Array: ...

    @overload
    def predict(
        self,
        X: TableLike,
        return_std: Literal[True],
        return_cov: bool = False,
        *,
        noise: bool = True,
    ) -> tuple[Array, Array]: ...

    @overload
    def predict(
        self,
        X: TableLike,
        return_std: bool = False,
        *,
        return_cov: Literal[True],
        noise: bool = True,
    ) -> tuple[Array, Array]: ...

    @single_threaded_blas()
    def predict(
        self,
        X: TableLike,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        noise: bool = True,
    ) -> Array | tuple[Array, Array]:
        """Predict the posterior mean, with its standard deviation or covariance if asked for.

        Both are of new observations; with `noise=False` of the function behind them. Shapes are
        (m,) for one output and (m, outputs) for several, (m, m) and (m, m, outputs) for the
        covariance.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> mean, std = model.predict([[1.0], [9.0]], return_std=True)
        >>> mean[:1].round(2).tolist(), std.round(2).tolist()
        ([0.84], [0.03, 0.47])
        >>> model.predict([[1.0], [1.1]], return_cov=True, noise=False)[1].shape
        (2, 2)
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov cannot both be asked for; pass one")
        inputs = self._test_inputs(X)
        if not (return_std or return_cov) and self._means_suffice:
            return self._shaped(self._mean(inputs))
        if not (return_std or return_cov) and self.posterior_.n > MANY:
            return self._shaped(self._quick_predictive(inputs, noise=noise).mean())
        predictive = self._predictive(inputs, noise=noise)
        mean = self._shaped(predictive.mean())
        if return_std:
            return mean, self._shaped(predictive.std())
        if not return_cov:
            return mean
        return mean, self._shaped(joint_covariance(predictive, self._covariances(inputs, noise)))

    @single_threaded_blas()
    def predict_gradient(self, X: TableLike, return_std: bool = False) -> PredictionGradient:
        """Derivatives of `predict` in the columns of X that hold numbers, per unit of the column.

        Of the mean and, if asked for, of the standard deviation of new observations: (m, columns),
        or (m, columns, outputs) for several outputs. `columns` of the result names the columns;
        those of categories, dates, and true and false are none. Where a value is missing, the
        derivative is that at the median that stands for it. Where a network or a map of a column
        has a kink, it is that of one side, or the mean of both (`Posterior.predict_gradient`).

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, np.sin(X[:, 0]))
        >>> slope = model.predict_gradient([[0.0], [np.pi / 2]]).mean
        >>> bool(abs(slope[0, 0] - 1) < 0.05), bool(abs(slope[1, 0]) < 0.05)
        (True, True)
        """
        inputs = self._test_inputs(X)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(inputs.shape[1])])
        numbers = {str(name): j for j, name in enumerate(names)}
        if self.columns_ is not None:
            numbers = self.columns_.numbers
        if not numbers:
            raise ValueError("no column holds numbers, so there is nothing to differentiate in")
        mean, std = mixture_gradient(
            self.networks_, self._blend, inputs, std=return_std, plain=self._means_suffice
        )
        which = list(numbers.values())
        of_std = None if std is None else self._shaped(std[:, which])
        return PredictionGradient(self._shaped(mean[:, which]), of_std, tuple(numbers))

    @single_threaded_blas()
    def predict_interval(
        self, X: TableLike, coverage: float = 0.95, *, noise: bool = True
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the central interval that holds an observation with that
        probability. It need not be symmetric, and of a positive target it is positive.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> lower, upper = model.predict_interval([[1.0]], coverage=0.9)
        >>> bool(lower[0] < np.sin(1) < upper[0])
        True
        """
        if not 0 < as_real(coverage, "coverage") < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
        low, high = self._predictive(self._test_inputs(X), noise=noise).interval(coverage)
        return self._shaped(low), self._shaped(high)

    @single_threaded_blas()
    def predict_quantile(self, X: TableLike, q: ArrayLike, *, noise: bool = True) -> Array:
        """The value that an observation stays below with probability q.

        Several probabilities give an array with a first axis for them, as in `numpy.quantile`.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> low, high = model.predict_quantile([[1.0]], [0.05, 0.95])
        >>> bool(low < np.sin(1) < high)
        True
        """
        levels = as_reals(q, "q")
        if not levels.size or not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"q must be between 0 and 1, got {q!r}")
        predictive = self._predictive(self._test_inputs(X), noise=noise)
        found = [self._shaped(predictive.quantile(float(level))) for level in levels.flat]
        return (
            found[0]
            if levels.ndim == 0
            else np.stack(found).reshape(*levels.shape, *found[0].shape)
        )

    @single_threaded_blas()
    def log_density(self, X: TableLike, y: ArrayLike) -> Array:
        """Log density of observations y at X in units of y: (m,), or (m, outputs) for several.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> near, far = model.log_density([[1.0], [1.0]], [np.sin(1), 0.0])
        >>> bool(near > far)
        True
        """
        check_data(y, "y")
        predictive = self._predictive(self._test_inputs(X), noise=True)
        Y = as_reals(y, "y")
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.shape != predictive.shape:
            raise ValueError(
                f"y has the shape {np.shape(y)} and X has {predictive.shape[0]} rows, each with "
                f"{predictive.shape[1]} output(s); pass a value for each"
            )
        if np.isnan(Y).any():
            raise ValueError("y holds NaN, which has no density; leave out rows without a target")
        return self._shaped(predictive.log_density(Y))

    @single_threaded_blas()
    def sample_y(
        self, X: TableLike, n_samples: int = 1, random_state: Seed = 0, *, noise: bool = True
    ) -> Array:
        """Draw samples from the posterior, (m, n_samples) or (m, outputs, n_samples).

        Values of one sample at several rows vary together, as the posterior has them.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> draws = model.sample_y([[1.0], [9.0]], n_samples=200, noise=False)
        >>> draws.shape, draws.std(axis=1).round(1).tolist()
        ((2, 200), [0.0, 0.4])
        """
        count = whole_number("n_samples", n_samples, least=0)
        inputs, seed = self._test_inputs(X), check_random_state(random_state).randint(2**31)
        predictive = self._predictive(inputs, noise=noise)
        out = np.empty((count, *predictive.shape))
        for draw in drawn_from(self._blend, count, seed):
            one = self.networks_[draw.network]
            Xs = one.inputs(inputs)
            drawn = one.posterior.sample(Xs, len(draw.which), draw.seed, noise=one.noise(Xs, noise))
            out[draw.which] = predictive.from_process(drawn, draw.part, draw.factor)
        out = np.moveaxis(out, 0, -1)
        return out[:, 0] if self._single else out

    @single_threaded_blas()
    def left_out(self) -> Predictive:
        """Predictions for training rows, each from all the others, without refitting.

        Of all rows up to 4,000 and with a Cholesky factor; otherwise of 4,000 of them, from these.
        Rows with whole weights, 300 or less in all, are so many rows here.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-3, 3, 40)[:, None]
        >>> y = np.sin(X[:, 0])
        >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X, y)
        >>> error = np.abs(model.left_out().mean()[:, 0] - y)
        >>> bool(error[1:-1].max() < 0.05), bool(error[0] > 0.05)  # an end lies outside
        (True, True)
        """
        check_is_fitted(self, "posterior_")
        found = [one.left_out(self._machine) for one in self.networks_]
        return left_out_predictive(found, self.networks_, self._blend)

    def _rows(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        noise_var: ArrayLike | None,
    ) -> tuple[TrainingRows, NDArray[Any]]:
        """Check training data, learn how a table is encoded, leave out rows without a weight."""
        check_unmasked(y, "y")
        check_targets_are_there(y)
        check_data(y, "y")
        inputs, answers = self._validated(X, y, multi_output=True, y_numeric=True)
        weights = as_weights(sample_weight, len(inputs))
        counted = slice(None) if weights is None else weights > 0
        self.duplicate_rows_ = duplicate_rows(np.column_stack([inputs, answers])[counted])
        return as_rows(inputs, answers, sample_weight, noise_var), answers

    def _more_rows(
        self,
        X: TableLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        noise_var: ArrayLike | None,
    ) -> tuple[TrainingRows, NDArray[Any]]:
        """Check more training data and encode them as those of the first call."""
        check_unmasked(y, "y")
        check_targets_are_there(y)
        check_data(y, "y")
        inputs = self._test_inputs(X)
        answers = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(inputs, answers)
        return as_rows(inputs, answers, sample_weight, noise_var), answers

    @property
    def _keeps_units(self) -> bool:
        return self.target_scaling == "none"

    def _target_candidates(self, Y: Array, weights: Array | None) -> tuple[TargetScaling, ...]:
        """Scalings of the targets to choose from."""
        kind = self.target_transform
        few = self.selection not in ("evidence", "loo") or len(Y) > MOST_TRANSFORMED
        if kind == "auto" and (few or isinstance(self.solver, CG) or self.solver == "cg"):
            kind = "identity"  # where a mean would need every variance, or nothing compares them
        return target_candidates(Y, self.target_scaling, kind, weights)

    def _without_refuted_floor(
        self,
        networks: list[FittedNetwork],
        rows: TrainingRows,
        targets: tuple[TargetScaling, ...],
    ) -> list[FittedNetwork]:
        """The networks; chosen again without a least noise, if held-out rows say that the targets
        were not rounded."""
        best = networks[0]
        if not isinstance(self.noise_var, str) or best.targets.noise_floor == 0:
            return networks
        left_out = best.left_out(self._machine)
        alone = ~has_twin(rows.X)[left_out.rows]
        steps = best.targets.scaled_spacing(rows.Y[left_out.rows])[alone]
        missed = (left_out.Y - left_out.mean)[alone]
        if not floor_is_refuted(missed.ravel(), steps.ravel()):
            return networks
        again = tuple(one.without_floor() for one in targets)
        return self._choose_networks(rows, again, classes=False)

    def _compare_with_trees(self, rows: TrainingRows) -> TreeComparison | None:
        """Compare the fitted model with trees on held-out rows, unless time is short."""
        if self.effort == "fast" or self.selection is None or rows.Y.shape[1] > 1:
            return None
        which = self.networks_[0].left_out(self._machine).rows
        mean = self.left_out().mean()[:, 0]
        return compare_with_trees(rows.X[which], rows.Y[which, 0], mean, classes=False)

    def _warn_of_no_signal(self, rows: TrainingRows) -> None:
        """Compare held-out predictions with the mean of all other rows, unless time is short."""
        if self.effort == "fast" or self.selection is None or rows.Y.shape[1] > 1:
            return
        which = self.networks_[0].left_out(self._machine).rows
        y, mean = rows.Y[which, 0], self.left_out().mean()[:, 0]
        if len(y) < 2:
            return
        size = max(float(np.abs(y).max()), np.finfo(float).tiny)  # so that no square overflows
        y, mean = y / size, mean / size
        of_others = (y.sum() - y) / (len(y) - 1)
        warn_of_no_signal((of_others - y) ** 2 - (mean - y) ** 2, mean, y, stacklevel=4)

    def _set_blended(self, networks: list[FittedNetwork]) -> None:
        """Set the networks that have a share, and the shares and widths of their predictions, which
        held-out rows find."""
        learned = self.selection is not None and isinstance(self.noise_var, str)
        wanted = learned if self.calibrate == "auto" else self.calibrate
        self._blend = Blend.plain(len(networks))
        if networks[0].posterior.n >= MIN_POINTS and (wanted or len(networks) > 1):
            left_out = [one.left_out(self._machine) for one in networks]
            blend = learn_blend(networks, left_out, self.selection_size, widths=bool(wanted))
            used = np.flatnonzero(blend.network_weights > 0).tolist()
            self._blend, networks = blend.of_networks(used), [networks[k] for k in used]
        self._set_networks(networks)

    @property
    def _means_suffice(self) -> bool:
        """Whether the mean in units of the data follows from the scaled means alone."""
        return all(not (t.transforms or t.positive) for t in (n.targets for n in self.networks_))

    def _mean(self, inputs: Array) -> Array:
        means = [n.targets.undo(n.posterior.mean(n.inputs(inputs))) for n in self.networks_]
        return mixed_mean(means, self._blend.network_weights)

    def _predictive(self, inputs: Array, *, noise: bool) -> Predictive:
        both = [one.predict(inputs, noise=noise) for one in self.networks_]
        means, variances = zip(*both, strict=True)
        return self._blend.predictive(means, variances, [one.targets for one in self.networks_])

    def _quick_predictive(self, inputs: Array, *, noise: bool) -> Predictive:
        """Predictions whose variances are estimated: good for means."""
        both = [one.predict_quickly(inputs, self._machine, noise=noise) for one in self.networks_]
        means, variances = zip(*both, strict=True)
        return self._blend.predictive(means, variances, [one.targets for one in self.networks_])

    def _covariances(self, inputs: Array, noise: bool) -> list[Array]:
        """Covariances of scaled targets of the networks that have a share."""
        shares = zip(self.networks_, self._blend.network_weights, strict=True)
        scaled = [(one, one.inputs(inputs)) for one, share in shares if share > 0]
        return [one.posterior.covariance(Xs, noise=one.noise(Xs, noise)) for one, Xs in scaled]

    def _shaped(self, columns: Array) -> Array:
        return columns[..., 0].copy() if self._single else columns

    def _saved_fit(self) -> SavedRegression:
        return SavedRegression(self._single, self.duplicate_rows_, self._blend, self.trees_)

    def _restore(self, saved: SavedModel) -> None:
        super()._restore(saved)
        fit = saved.fit
        assert isinstance(fit, SavedRegression)
        self._single, self.duplicate_rows_ = fit.single, fit.duplicate_rows
        self._blend, self.trees_ = fit.blend, fit.trees
