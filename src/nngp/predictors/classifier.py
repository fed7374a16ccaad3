"""Classification as the paper does it: regression on centred one-hot targets.

The posterior over the outputs is exact, so the probability of a class is that its output is the
largest. Scaling the prior and the noise together leaves the means, and so the decisions, as they
are, and moves the variances: that one number is set where the classes left out one at a time are
most probable.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from nngp.posterior import condition
from nngp.predictors.estimator import NNGPEstimator
from nngp.predictors.probability import largest_probability
from nngp.predictors.scaling import TargetScaling

Array = NDArray[np.float64]
LEAST = 1e-12  # probability that a class counts as at least, in the choice of the scale
ALL_LEFT_OUT = 4000  # points up to which all of them are left out in turn


class NNGPClassifier(ClassifierMixin, NNGPEstimator):
    """Bayesian classification with a deep network of infinite width.

    Parameters are those of `NNGPRegressor`, but for `target_scaling`, which does nothing here, and
    `relevance`, where "auto" learns none.

    Attributes
    ----------
    classes_ : array
    output_scale_ : float
        What the variances were multiplied by, so that probabilities are right on points left out.
    architecture_, noise_var_, relevance_, selection_, posterior_, report_
        As in `NNGPRegressor`.

    Examples
    --------
    >>> import nngp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nngp.NNGPClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    def fit(self, X: Any, y: Any) -> "NNGPClassifier":
        """Choose a network and condition it on the data."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        classes, index = np.unique(y, return_inverse=True)
        targets = np.eye(len(classes))[index] - 1.0 / len(classes)
        self._fit_process(X, targets, TargetScaling.common(targets), classes=True)
        self.classes_ = classes
        self.output_scale_ = self._find_output_scale(X, targets, index)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class whose output has the largest mean, which is also the most probable one."""
        best = self.predict_mean(X).argmax(axis=1)
        out: NDArray[Any] = self.classes_[best]
        return out

    def predict_mean(self, X: Any) -> Array:
        """The posterior mean of every output, (m, classes), on the scale of the centred one-hot
        targets."""
        Xs = self._scaled(X)
        return self._target_scaling.undo(self.posterior_.mean(Xs))

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class: that its output is the largest, (m, classes)."""
        Xs = self._scaled(X)
        mean, variance = self.posterior_.predict(Xs, noise=True)
        return self._probability(mean, variance)

    def predict_variance(self, X: Any, *, noise: bool = False) -> Array:
        """The variance that every output has at each point, (m,), on the scale of the one-hot
        targets; with `noise` that of an observation."""
        Xs = self._scaled(X)
        variance = self.posterior_.variance(Xs, noise=noise)
        return variance * self.output_scale_ * self._target_scaling.spread[0] ** 2

    def _probability(self, mean: Array, variance: Array, scale: float | None = None) -> Array:
        scale = self.output_scale_ if scale is None else scale
        # In units of the scaled targets: they share a spread, so nothing else changes.
        return largest_probability(mean, variance * scale)

    def _find_output_scale(self, X: Array, targets: Array, index: NDArray[np.intp]) -> float:
        """Where the points left out are most probable; on some of them if there are very many."""
        if targets.shape[1] == 1 or len(X) < 2:
            return 1.0
        posterior = self.posterior_
        if len(X) > ALL_LEFT_OUT or posterior.report.solver == "cg":
            rows = np.random.default_rng(0).permutation(len(X))[:ALL_LEFT_OUT]
            index = index[rows]
            posterior = condition(
                self.architecture_,
                self._input_scaling(X[rows]),
                self._target_scaling(targets[rows]),
                noise_var=self.noise_var_,
                solver="cholesky",
                engine=self._engine_for_few,
                progress=self.progress,
            )
        left_out = posterior.leave_one_out(noise=True)
        mean, points = left_out.mean, np.arange(len(index))

        def loss(log_scale: float) -> float:
            table = self._probability(mean, left_out.variance, float(np.exp(log_scale)))
            return -float(np.log(np.maximum(table[points, index], LEAST)).mean())

        found = minimize_scalar(loss, bounds=(-7.0, 7.0), method="bounded", options={"xatol": 0.01})
        return float(np.exp(found.x))
