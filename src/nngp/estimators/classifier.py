"""Classification by regression: on one-hot targets, as in the paper, or on logarithms of Dirichlet
parameters. Both have exact posteriors, so leave-one-out is in closed form, and chooses.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from nngp._arrays import Array
from nngp._machine import single_threaded_blas
from nngp._numbers import check_unmasked
from nngp.estimators.class_model import (
    ClassModel,
    LeftOutClasses,
    shares_of_classes,
)
from nngp.estimators.estimator import NNGPEstimator
from nngp.estimators.fitted_network import FittedNetwork
from nngp.estimators.mixing import mixed_mean
from nngp.estimators.parameters import ClassifierParameters, documented
from nngp.estimators.saved import (
    SavedClassification,
    SavedClassModel,
    SavedModel,
    one_hot_labels,
)
from nngp.estimators.training_rows import TrainingRows, as_copies, as_weights
from nngp.estimators.trees import MOST_INPUTS, MOST_ROWS, TreeComparison, compare_with_trees
from nngp.frames import TableLike
from nngp.predictive.class_balance import (
    check_class_weight,
    warn_if_never_predicted,
    weights_of_classes,
)
from nngp.predictive.dirichlet import Labels
from nngp.predictive.targets import TargetScaling


@documented
class NNGPClassifier(ClassifierMixin, ClassifierParameters, NNGPEstimator):
    """Bayesian classification with a deep network of infinite width.

    `NNGPClassifier().fit(X, y)` needs no tuning: it chooses activation, depth, variances and noise
    by the marginal likelihood, and the likelihood and its scale by leave-one-out.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    likelihood_ : str
        The likelihood that was chosen: "regression", "dirichlet" or "softmax".
    left_out_loss_ : dict
        Leave-one-out log loss of each likelihood that was tried with the first network.
    loss_estimate_ : float or None
        Log loss to expect of `predict_proba` on new rows: of training rows, each predicted from all
        others. Up to 1,000 rows nothing that was learned from a row is used to predict it.
    frequency_share_ : float
        Share of the frequencies of the classes in the probabilities.
    output_scale_ : float
        Factor on the variances of the outputs that makes probabilities right on held-out points.
    log_evidence_ : float
        Log density of the targets that the labels are encoded as: one-hot, less one over the
        number of classes. It compares networks on one data set, and says nothing beyond.
    posterior_ : Posterior
        Of the scaled one-hot targets given the scaled inputs, whatever the likelihood.
    network_, noise_var_, whitening_, invariance_, relevance_, column_maps_, networks_, \
network_weights_, selection_, report_, columns_
        As in `NNGPRegressor`.

    Warns
    -----
    LeakageWarning
        If one column explains the labels almost perfectly.
    NoSignalWarning
        If held-out rows are predicted no better than by the frequencies of the classes.
    NeverPredictedWarning
        If a class is predicted for none of the held-out rows.

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

    @single_threaded_blas()
    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose networks, condition them on the data, and choose the likelihood.

        X is as in `NNGPRegressor.fit`. A row of weight 2 counts as two rows, and one of weight 0
        is left out.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> iris = load_iris()
        >>> labels = iris.target_names[iris.target]
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(iris.data, labels)
        >>> model.classes_.tolist()
        ['setosa', 'versicolor', 'virginica']
        """
        check_unmasked(y, "y")
        inputs, answers = self._validated(X, y)
        check_classification_targets(answers)
        weights = as_weights(sample_weight, len(inputs))
        if weights is not None:
            used, weights = as_copies(weights)
            inputs, answers = inputs[used], answers[used]
        self.classes_, index = np.unique(answers, return_inverse=True)
        check_class_weight(self.class_weight)
        labels = self._labels_of(index, weights)
        # Weights of classes say what errors cost, not how often a row was seen: counted as copies
        # they would make the noise vanish.
        rows = TrainingRows(inputs, labels.one_hot(), weights)
        final = replace(rows, weights=labels.given_weights)
        targets = TargetScaling.common(rows.Y, weights)
        with self._one_bar(inputs.shape, labels.classes, classes=True):
            networks = self._choose_networks(rows, (targets,), final, classes=True)
            left_out = self._learn_classes(networks, labels)
            self.trees_ = self._compare_with_trees(inputs, labels, left_out)
        self._see(inputs)
        self._warn_of_few_data(inputs, rows.Y, classes=True)
        self._warn_of_leakage(inputs, rows.Y, classes=True)
        if left_out is not None:
            left_out.warn_of_no_signal(stacklevel=3)
            predicted = left_out.table.argmax(axis=1)
            warn_if_never_predicted(predicted, left_out.labels.index, self.classes_, stacklevel=3)
        if self.trees_ is not None:
            self.trees_.warn(stacklevel=3)
        return self

    @single_threaded_blas()
    def partial_fit(
        self,
        X: TableLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to the fit. The networks, scalings and encodings stay as the first call, which
        is `fit` and must have rows of every class, chose them.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> model.partial_fit(X[1::2], y[1::2]).posterior_.n
        150
        """
        check_unmasked(y, "y")
        if not hasattr(self, "posterior_"):
            self._check_first_classes(y, classes)
            return self.fit(X, y, sample_weight)
        if self.class_weight == "balanced":
            raise ValueError(
                "class_weight='balanced' needs all rows at once; pass the weights as a dict, or "
                "call fit"
            )
        inputs, answers = self._test_inputs(X), column_or_1d(y)
        check_consistent_length(inputs, answers)
        index = self._index_of(answers)
        weights = as_weights(sample_weight, len(inputs))
        if weights is not None:
            used, weights = as_copies(weights)
            inputs, index = inputs[used], index[used]
        new = self._labels_of(index, weights)
        rows = TrainingRows(inputs, new.one_hot(), new.given_weights)
        labels = self._models[0].labels.joined(new)
        self._learn_classes([one.updated(rows) for one in self.networks_], labels)
        if self._seen is not None:
            self._seen = self._seen.widened(inputs)
        return self

    @single_threaded_blas()
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the most probable class.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> model.predict(X[[1, 51, 101]]).tolist()
        [0, 1, 2]
        """
        inputs = self._test_inputs(X)
        if self._keeps_order:
            best = self._mean(inputs).argmax(axis=1)
        else:
            best = self._probabilities(inputs).argmax(axis=1)
        out: NDArray[Any] = self.classes_[best]
        return out

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of labels that are predicted, as in scikit-learn.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> model.score(X[1::2], y[1::2])
        0.96
        """
        check_unmasked([y, sample_weight], "y")
        return float(super().score(X, y, sample_weight))

    @single_threaded_blas()
    def predict_proba(self, X: TableLike) -> Array:
        """Probability of each class, (m, classes); none is zero.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> probability = model.predict_proba(X[1::2])
        >>> bool((probability > 0).all()), probability.sum(axis=1)[:2].round(6).tolist()
        (True, [1.0, 1.0])
        """
        return self._probabilities(self._test_inputs(X))

    @single_threaded_blas()
    def predict_log_proba(self, X: TableLike) -> Array:
        """Logarithm of the probability of each class, (m, classes).

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> bool(model.predict_log_proba(X[1:2])[0, 0] > -0.1)
        True
        """
        out: Array = np.log(self.predict_proba(X))
        return out

    @single_threaded_blas()
    def decision_function(self, X: TableLike) -> Array:
        """Log odds of the second class, (m,), for two classes; log probabilities, (m, classes),
        for more.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> model.decision_function(X[1::2]).shape  # three classes
        (75, 3)
        """
        table = self.predict_log_proba(X)
        return table[:, 1] - table[:, 0] if table.shape[1] == 2 else table

    @single_threaded_blas()
    def predict_mean(self, X: TableLike) -> Array:
        """Posterior mean of every output of `posterior_`, (m, classes), in units of the centred
        one-hot targets.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> model.predict_mean(X[1:2]).round(1).tolist()
        [[0.6, -0.2, -0.4]]
        """
        return self._mean(self._test_inputs(X))

    @single_threaded_blas()
    def predict_variance(self, X: TableLike, *, noise: bool = False) -> Array:
        """Variance of every output of `posterior_`, (m,), in units of the one-hot targets, averaged
        over classes; with `noise` that of an observation.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> near, far = model.predict_variance([X[1], [7.5, 2.0, 1.0, 2.5]])
        >>> bool(far > 5 * near)
        True
        """
        inputs, best = self._test_inputs(X), self.networks_[0]
        _, variance = best.predict(inputs, noise=noise)
        return variance[:, 0] * self.output_scale_ * best.targets.spread[0] ** 2

    @property
    def output_scale_(self) -> float:
        check_is_fitted(self, "posterior_")
        return self._models[0].link.scale

    @property
    def likelihood_(self) -> str:
        """The likelihood that was chosen: "regression", "dirichlet" or "softmax"."""
        check_is_fitted(self, "posterior_")
        return self._models[0].likelihood

    @property
    def left_out_loss_(self) -> dict[str, float]:
        check_is_fitted(self, "posterior_")
        return dict(self._models[0].losses)

    @single_threaded_blas()
    def left_out(self) -> Array:
        """Posterior mean of every output for training rows, each from all the others, (n, classes),
        in units of the centred one-hot targets; of 4,000 rows at most.

        Examples
        --------
        >>> import nngp
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
        >>> model = model.fit(X[::2], y[::2])
        >>> float((model.left_out().argmax(axis=1) == y[::2]).mean().round(2))
        0.96
        """
        check_is_fitted(self, "posterior_")
        best = self.networks_[0]
        return best.targets.undo(best.left_out(self._machine).mean)

    def _mean(self, inputs: Array) -> Array:
        best = self.networks_[0]
        return best.targets.undo(best.posterior.mean(best.inputs(inputs)))

    def _probabilities(self, inputs: Array) -> Array:
        return self._mixed([one.probabilities(inputs) for one in self._models])

    @property
    def _keeps_order(self) -> bool:
        """Whether the class of the largest mean is the most probable."""
        frequencies = self._models[0].labels.frequencies
        mixed = self.frequency_share_ > 0 and np.ptp(frequencies) > 0
        return len(self._models) == 1 and self._models[0].keeps_order and not mixed

    def _check_first_classes(self, y: ArrayLike, classes: ArrayLike | None) -> None:
        """Raise ValueError if the first rows lack a class that is announced."""
        if classes is None:
            return
        absent = sorted(set(np.asarray(classes).tolist()) - set(np.asarray(y).tolist()))
        if absent:
            raise ValueError(
                f"the first call of partial_fit chooses the network and has no row of class "
                f"{absent[0]!r}; give it rows of every class"
            )

    def _index_of(self, answers: NDArray[Any]) -> NDArray[np.intp]:
        """The number of each row's class, all of which are known."""
        unknown = sorted(set(answers.tolist()) - set(self.classes_.tolist()))
        if unknown:
            raise ValueError(
                f"y holds the class {unknown[0]!r}, which the first call did not have; call fit "
                "with all rows"
            )
        return np.searchsorted(self.classes_, answers)

    def _labels_of(self, index: NDArray[np.intp], weights: Array | None) -> Labels:
        weights = np.ones(len(index)) if weights is None else weights
        of_class = weights_of_classes(self.class_weight, self.classes_, index, weights)
        return Labels(index, weights * of_class[index], len(self.classes_))

    def _learn_classes(
        self, networks: Sequence[FittedNetwork], labels: Labels
    ) -> LeftOutClasses | None:
        """Set the networks, what makes probabilities of each, and their shares; return the
        predictions of held-out rows."""
        learned = [self._class_model(one, labels) for one in networks]
        models, tables = zip(*learned, strict=True)
        self._held_out: LeftOutClasses | None = None  # for a report; not kept in files
        if any(one is None for one in tables):
            self._models, count = models, len(models)
            self._set_networks(networks)
            self.network_weights_, self.loss_estimate_ = np.full(count, 1.0 / count), None
            self.frequency_share_ = 0.0
            return None
        shares = shares_of_classes(tables)
        order = [k for k in np.argsort(-shares[:-1], kind="stable").tolist() if shares[k] > 0]
        order = order or [0]  # where nothing is better than the frequencies
        self._models = tuple(models[k] for k in order)
        self._set_networks([one.network for one in self._models])
        total = shares[order].sum()
        self.network_weights_ = shares[order] / total if total > 0 else np.ones(1)
        self.frequency_share_ = float(shares[-1])
        rows, mixed = tables[0].labels, self._mixed([tables[k].table for k in order])
        left_out = self._held_out = LeftOutClasses(mixed, rows)
        self.loss_estimate_ = left_out.loss + self._optimism(rows)
        return left_out

    def _optimism(self, rows: Labels) -> float:
        """The gain of the numbers that were chosen on held-out rows on these rows, over new ones:
        one nat each, shared by all rows (Akaike 1974)."""
        shares = len(self._models) - (self.frequency_share_ == 0)
        fitted = self.network_weights_ @ [one.fitted_numbers for one in self._models]
        return float(shares + fitted) / float(rows.weights.sum())

    def _mixed(self, tables: Sequence[Array]) -> Array:
        """The probabilities of all networks and the frequencies of the classes, by their shares."""
        share, frequencies = self.frequency_share_, self._models[0].labels.frequencies
        return (1.0 - share) * mixed_mean(tables, self.network_weights_) + share * frequencies

    def _compare_with_trees(
        self, inputs: Array, labels: Labels, left_out: LeftOutClasses | None
    ) -> TreeComparison | None:
        """Compare with trees on held-out rows, unless time is short. With weights of classes shares
        of wrong labels are not what it was asked to keep small."""
        if self.effort == "fast" or self.selection is None or left_out is None:
            return None
        if self.class_weight is not None or inputs.shape[1] > MOST_INPUTS:
            return None
        if len(left_out.table) == len(inputs) <= MOST_ROWS:
            which, best = np.arange(len(inputs)), left_out.table.argmax(axis=1)
        else:
            some = self.networks_[0].left_out(self._machine, MOST_ROWS)
            which, best = some.rows, some.mean.argmax(axis=1)
        return compare_with_trees(inputs[which], labels.index[which], best, classes=True)

    def _class_model(
        self, network: FittedNetwork, labels: Labels
    ) -> tuple[ClassModel, LeftOutClasses | None]:
        return ClassModel.learn(network, labels, self.likelihood, self._machine)

    def _saved_fit(self) -> SavedClassification:
        classes, kind = SavedClassification.plain_labels(self.classes_)
        return SavedClassification(
            classes,
            kind,
            tuple(SavedClassModel.of(one) for one in self._models),
            self.network_weights_,
            self.trees_,
            self.frequency_share_,
            self.loss_estimate_,
        )

    def _restore(self, saved: SavedModel) -> None:
        super()._restore(saved)
        fit = saved.fit
        assert isinstance(fit, SavedClassification)
        labels, pairs = (
            one_hot_labels(saved.networks[0]),
            zip(fit.models, self.networks_, strict=True),
        )
        self.classes_ = fit.labels()
        self._models = tuple(model.restore(network, labels) for model, network in pairs)
        self.network_weights_, self.trees_ = fit.network_weights, fit.trees
        self.frequency_share_, self.loss_estimate_ = fit.frequency_share, fit.loss_estimate
