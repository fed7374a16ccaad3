"""Classification as in the paper: regression on centred one-hot targets.

The posterior over the outputs is exact, so the probability of a class is that its output is the
largest. A common factor on the prior and noise variances changes the variances and no mean, and so
no decision: it is chosen for the largest leave-one-out probability of the true classes.
"""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from nngp._arrays import Array, Index
from nngp._numbers import check_unmasked
from nngp.posterior import Posterior, condition
from nngp.predictors.columns import TableLike
from nngp.predictors.estimator import NNGPEstimator
from nngp.predictors.fitted_network import LEAVE_OUT
from nngp.predictors.model_file import ModelFile
from nngp.predictors.probability import best_variance_scale, largest_probability
from nngp.predictors.targets import TargetScaling
from nngp.predictors.training_rows import TrainingRows


class NNGPClassifier(ClassifierMixin, NNGPEstimator):
    """Bayesian classification with a deep network of infinite width.

    `NNGPClassifier().fit(X, y)` needs no tuning: it chooses activation, depth, variances and noise
    by the marginal likelihood, and scales its probabilities by leave-one-out.

    Parameters
    ----------
    depth, activation, weight_var, bias_var, noise_var, input_scaling, selection, selection_size, \
budget, solver, engine, random_state, progress
        As in `NNGPRegressor`.
    relevance : "auto", bool or array of d floats
        As in `NNGPRegressor`, but "auto" learns none.
    target_scaling : {"standardize", "none"}
        Has no effect: one-hot targets share one scale.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    output_scale_ : float
        Factor on the variances that makes probabilities right on points left out.
    log_evidence_ : float
        Log density of the targets that the labels are encoded as: one-hot, less one over the
        number of classes. It compares networks on one data set, and says nothing beyond.
    architecture_, noise_var_, relevance_, selection_, posterior_, report_, columns_
        As in `NNGPRegressor`.

    Examples
    --------
    >>> import nngp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nngp.NNGPClassifier().fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    _kind: ClassVar[str] = "NNGPClassifier"

    def fit(self, X: TableLike, y: ArrayLike) -> Self:
        """Choose a network, condition it on the data, and find the scale of the variances."""
        check_unmasked(y, "y")
        inputs, labels = self._validated(X, y)
        check_classification_targets(labels)
        classes, index = np.unique(labels, return_inverse=True)
        targets = np.eye(len(classes))[index] - 1.0 / len(classes)
        with self._one_bar(inputs.shape, len(classes), classes=True):
            self._fit_networks(TrainingRows(inputs, targets), (TargetScaling.common(targets),), classes=True)
            self.output_scale_ = self._find_output_scale(inputs, targets, index)
        self.classes_ = classes
        self._warn_of_few_data(inputs, targets, classes=True)
        return self

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the class whose output has the largest mean: the most probable one."""
        best = self.predict_mean(X).argmax(axis=1)
        out: NDArray[Any] = self.classes_[best]
        return out

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of labels that are predicted, as in scikit-learn."""
        check_unmasked([y, sample_weight], "y")
        return float(super().score(X, y, sample_weight))

    def predict_mean(self, X: TableLike) -> Array:
        """Posterior mean of every output, (m, classes), in units of the centred one-hot targets."""
        Xs = self.networks_[0].inputs(self._test_inputs(X))
        return self.networks_[0].targets.undo(self.posterior_.mean(Xs))

    def predict_proba(self, X: TableLike) -> Array:
        """Probability of each class, (m, classes): that its output is the largest."""
        Xs = self.networks_[0].inputs(self._test_inputs(X))
        # In units of the scaled targets: a common spread does not change which is largest.
        mean, variance = self.posterior_.predict(Xs, noise=True)
        return largest_probability(mean, variance * self.output_scale_)

    def predict_variance(self, X: TableLike, *, noise: bool = False) -> Array:
        """Variance of every output at each point, (m,), in units of the one-hot targets; with
        `noise` that of an observation."""
        Xs = self.networks_[0].inputs(self._test_inputs(X))
        variance = self.posterior_.variance(Xs, noise=noise)
        return variance * self.output_scale_ * self.networks_[0].targets.spread[0] ** 2

    def _find_output_scale(self, X: Array, targets: Array, index: Index) -> float:
        """Scale the variances by leave-one-out; on a subset if there are many points, or no
        factor."""
        if targets.shape[1] == 1 or len(X) < 2:
            return 1.0
        posterior = self.posterior_
        if len(X) > LEAVE_OUT or posterior.report.solver == "cg":
            rows = np.random.default_rng(0).permutation(len(X))[:LEAVE_OUT]
            posterior, index = self._condition_on(X[rows], targets[rows]), index[rows]
        left_out = posterior.leave_one_out(noise=True)
        return best_variance_scale(left_out.mean, left_out.variance, index)

    def _condition_on(self, X: Array, targets: Array) -> Posterior:
        """Condition the chosen network on a subset of the points."""
        return condition(
            self.architecture_,
            self.networks_[0].inputs(X),
            self.networks_[0].targets(targets),
            noise_var=self.noise_var_,
            solver="cholesky",
            engine=self._search_engine,
            progress=self.progress,
        )

    def _state(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        classes, is_object = self.classes_, self.classes_.dtype == object
        if is_object and not all(isinstance(label, str) for label in classes):
            raise ValueError("class labels that are neither text nor numbers cannot be saved")
        values, arrays = super()._state()
        stored = classes.astype(str) if is_object else classes
        values |= {"output_scale": self.output_scale_, "object_classes": is_object}
        return {**values, "class_type": stored.dtype.str}, {**arrays, "classes": stored}

    def _restore(self, file: ModelFile) -> None:
        super()._restore(file); posterior=self.posterior_
        fitted, scaling = file.header.fields("fitted"), self.networks_[0].targets
        if scaling.center.any() or np.ptp(scaling.spread) or scaling.spread[0] > 1:
            raise file.damaged("its targets are not scaled as those of classes")
        count, kind = posterior._targets.shape[1], fitted.text("class_type")
        classes = file.read_labels("classes", count, kind)
        self.classes_ = classes.astype(object) if fitted.flag("object_classes") else classes
        self.output_scale_ = fitted.number("output_scale", 0, above=True)
