"""Classification by regression: on one-hot targets, as in the paper, or on logarithms of Dirichlet
parameters. Both have exact posteriors, so leave-one-out is in closed form, and chooses.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from nngp._arrays import Array, Index
from nngp._fields import Fields
from nngp._machine import available_memory, single_threaded_blas
from nngp._numbers import check_unmasked
from nngp._progress import Callback
from nngp.gram import kernel, kernel_diag
from nngp.linsolve import CG, Engine
from nngp.posterior import Posterior, condition
from nngp.predictors.class_balance import (
    ClassWeight,
    as_copies,
    check_class_weight,
    row_weights,
    warn_if_never_predicted,
    weights_of_classes,
)
from nngp.predictors.columns import TableLike
from nngp.predictors.dirichlet import (
    DirichletProcess,
    DirichletSetting,
    Labels,
    find_setting,
    with_copies,
)
from nngp.predictors.estimator import LEAVE_OUT, NNGPEstimator
from nngp.predictors.expected_softmax import expected_softmax
from nngp.predictors.model_file import ModelFile
from nngp.predictors.one_hot_link import LinkSearch, OneHotLink, log_loss
from nngp.predictors.parameters import ActivationLike, Seed, VarianceLike, check_choice
from nngp.predictors.probability import above_zero
from nngp.predictors.scaling import TargetScaling

LIKELIHOODS = ("auto", "regression", "dirichlet")
COMPARED = 1000  # points on which the two likelihoods are compared
SEARCHED = 400  # points on which the scale and noise of the Dirichlet likelihood are found
TEST_NUMBERS = 20_000_000  # of the kernel between test and training points, held at a time


@dataclass(frozen=True)
class LeftOut:
    """Probabilities of rows left out, (n, classes), and the rows' classes and weights."""

    table: Array
    labels: Labels

    @property
    def loss(self) -> float:
        return log_loss(self.table, self.labels.index, self.labels.weights)


class NNGPClassifier(ClassifierMixin, NNGPEstimator):
    """Bayesian classification with a deep network of infinite width.

    `NNGPClassifier().fit(X, y)` needs no tuning: it chooses activation, depth, variances and noise
    by the marginal likelihood, and the likelihood and its scale by leave-one-out.

    Parameters
    ----------
    depth, activation, weight_var, bias_var, noise_var, input_scaling, selection, selection_size, \
budget, solver, engine, random_state, progress
        As in `NNGPRegressor`.
    relevance : "auto", bool or array of d floats
        As in `NNGPRegressor`, but "auto" learns none.
    target_scaling : {"standardize", "none"}
        Has no effect: one-hot targets share one scale.
    likelihood : {"auto", "regression", "dirichlet"}
        "regression" regresses on one-hot targets, and a class has the probability that its output
        is the largest. "dirichlet" regresses each class on logarithms of Dirichlet parameters with
        one of two noise levels a row (Milios et al. 2018), and averages the softmax; it holds a
        matrix of n² numbers on this machine. "auto" takes the one with the smaller leave-one-out
        log loss up to 4000 points, and "regression" beyond.
    class_weight : None, "balanced" or dict
        Weights of the classes' rows: one each, such that all classes have the same total, or by
        label (one where a label is missing).

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    likelihood_ : str
        The likelihood that was used: "regression" or "dirichlet".
    left_out_loss_ : dict
        Leave-one-out log loss of each likelihood that was tried.
    output_scale_ : float
        Factor on the variances of the outputs that makes probabilities right on points left out.
    log_evidence_ : float
        Log density of the targets that the labels are encoded as: one-hot, less one over the
        number of classes. It compares networks on one data set, and says nothing beyond.
    posterior_ : Posterior
        Of the scaled one-hot targets given the scaled inputs, whatever the likelihood.
    architecture_, noise_var_, relevance_, selection_, report_, columns_
        As in `NNGPRegressor`.

    Warns
    -----
    NeverPredictedWarning
        If a class is predicted for none of the rows left out.

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
    _dirichlet: DirichletProcess | None = None

    def __init__(
        self,
        *,
        depth: float | str = "auto",
        activation: ActivationLike = "auto",
        weight_var: VarianceLike = "auto",
        bias_var: VarianceLike = "auto",
        noise_var: float | str = "auto",
        relevance: str | bool | ArrayLike = "auto",
        input_scaling: str = "auto",
        target_scaling: str = "standardize",
        likelihood: str = "auto",
        class_weight: ClassWeight = None,
        selection: str | None = "evidence",
        selection_size: int = 1000,
        budget: int | None = None,
        solver: str | CG = "auto",
        engine: str | Engine = "auto",
        random_state: Seed = 0,
        progress: Callback | bool | None = None,
    ) -> None:
        super().__init__(
            depth=depth,
            activation=activation,
            weight_var=weight_var,
            bias_var=bias_var,
            noise_var=noise_var,
            relevance=relevance,
            input_scaling=input_scaling,
            target_scaling=target_scaling,
            selection=selection,
            selection_size=selection_size,
            budget=budget,
            solver=solver,
            engine=engine,
            random_state=random_state,
            progress=progress,
        )
        self.likelihood = likelihood
        self.class_weight = class_weight

    def fit(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Choose a network, condition it on the data, and choose the likelihood.

        A row of weight 2 counts as two rows, and one of weight 0 is left out.
        """
        check_unmasked(y, "y")
        inputs, answers = self._validated(X, y)
        check_classification_targets(answers)
        weights = row_weights(sample_weight, len(inputs))
        rows, weights = as_copies(weights)
        inputs, answers = inputs[rows], answers[rows]
        self.classes_, index = np.unique(answers, return_inverse=True)
        check_class_weight(self.class_weight)
        of_class = weights_of_classes(self.class_weight, self.classes_, index, weights)
        labels = Labels(index, weights * of_class[index], len(self.classes_))
        targets = labels.one_hot()
        with self._one_bar(inputs.shape, labels.classes, classes=True):
            self._fit_process(inputs, targets, TargetScaling.common(targets), classes=True)
            if labels.is_weighted:
                self._weigh(labels)
            left_out = self._choose_likelihood(labels)
        self._warn_of_few_data(inputs, targets, classes=True)
        if left_out is not None:
            predicted = left_out.table.argmax(axis=1)
            warn_if_never_predicted(predicted, left_out.labels.index, self.classes_, stacklevel=2)
        return self

    def predict(self, X: TableLike) -> NDArray[Any]:
        """Predict the most probable class."""
        check_is_fitted(self, "posterior_")
        if self._dirichlet is None and self._link.keeps_order:
            best = self.predict_mean(X).argmax(axis=1)
        else:
            best = self.predict_proba(X).argmax(axis=1)
        out: NDArray[Any] = self.classes_[best]
        return out

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Share of labels that are predicted, as in scikit-learn."""
        check_unmasked([y, sample_weight], "y")
        return float(super().score(X, y, sample_weight))

    def predict_proba(self, X: TableLike) -> Array:
        """Probability of each class, (m, classes); none is zero."""
        Xs = self._scaled(X)
        process = self._dirichlet
        if process is not None:
            return above_zero(expected_softmax(*self._log_parameters(process, Xs)))
        # In units of the scaled targets: a common spread does not change which is largest.
        return self._link(*self.posterior_.predict(Xs, noise=self._noise_of_a_copy))

    def predict_log_proba(self, X: TableLike) -> Array:
        """Logarithm of the probability of each class, (m, classes)."""
        out: Array = np.log(self.predict_proba(X))
        return out

    def decision_function(self, X: TableLike) -> Array:
        """Log odds of the second class, (m,), for two classes; log probabilities, (m, classes),
        for more."""
        table = self.predict_log_proba(X)
        return table[:, 1] - table[:, 0] if table.shape[1] == 2 else table

    def predict_mean(self, X: TableLike) -> Array:
        """Posterior mean of every output of `posterior_`, (m, classes), in units of the centred
        one-hot targets."""
        Xs = self._scaled(X)
        return self._target_scaling.undo(self.posterior_.mean(Xs))

    def predict_variance(self, X: TableLike, *, noise: bool = False) -> Array:
        """Variance of every output of `posterior_`, (m,), in units of the one-hot targets, averaged
        over classes; with `noise` that of an observation."""
        Xs = self._scaled(X)
        variance = self.posterior_.variance(Xs, noise=self._noise_of_a_copy if noise else False)
        return variance * self.output_scale_ * self._target_scaling.spread[0] ** 2

    @property
    def output_scale_(self) -> float:
        return self._link.scale

    @property
    def _noise_of_a_copy(self) -> float:
        """The noise of a row of weight one."""
        return float(self.noise_var_)

    def _check_parameters(self, d: int) -> None:
        super()._check_parameters(d)
        check_choice("likelihood", self.likelihood, LIKELIHOODS)
        check_class_weight(self.class_weight)

    def _weigh(self, labels: Labels) -> None:
        """Condition the chosen network anew, with the noise of each row over its weight."""
        self.posterior_ = condition(
            self.architecture_,
            self._training_inputs(),
            self.posterior_._targets,
            noise_var=labels.noise(self._noise_of_a_copy),
            solver=self.solver,
            engine=self.engine,
            progress=self.progress,
        )
        self.report_ = self.posterior_.report

    def _choose_likelihood(self, labels: Labels) -> LeftOut | None:
        """Set what makes probabilities; return those of rows left out, if any can be."""
        n, self._labels, self._dirichlet = len(labels.index), labels, None
        self.likelihood_, self.left_out_loss_ = "regression", {}
        self._link = OneHotLink(labels.frequencies)
        if labels.classes == 1 or n < 2:
            return None
        factored = self.report_.solver == "cholesky"
        small = factored and n <= LEAVE_OUT
        self._link, best = self._fit_link(None if small else _some(n, LEAVE_OUT))
        self.left_out_loss_["regression"] = best.loss
        if self.likelihood == "regression" or (self.likelihood == "auto" and not small):
            return best
        shown = None if n <= COMPARED else _some(n, COMPARED)
        if shown is not None:
            best = self._fit_link(shown)[1]
        setting, other = self._try_dirichlet(shown)
        self.left_out_loss_ = {"regression": best.loss, "dirichlet": other.loss}
        if self.likelihood == "dirichlet" or other.loss < best.loss:
            self._set_dirichlet(setting)
            return other
        return best

    def _fit_link(self, rows: Index | None) -> tuple[OneHotLink, LeftOut]:
        """Find the link of the regression on rows left out of all rows or of some."""
        labels = self._labels if rows is None else self._labels.some(rows)
        posterior = self.posterior_ if rows is None else self._condition_on(rows)
        mean, variance = posterior.leave_one_out(noise=True)
        if labels.is_weighted:
            noise = np.full(len(mean), self._noise_of_a_copy)
            latent = np.maximum(variance - noise / labels.weights, 0.0)
            mean, latent = with_copies(mean, latent, posterior._targets, noise, labels.weights)
            variance = latent + noise
        search = LinkSearch(mean, variance, labels.index, labels.weights)
        link = search.best(self._labels.frequencies)
        return link, LeftOut(link(mean, variance), labels)

    def _condition_on(self, rows: Index) -> Posterior:
        """Condition the chosen network on some of the rows."""
        posterior, labels = self.posterior_, self._labels
        return condition(
            self.architecture_,
            self._training_inputs()[rows],
            posterior._targets[rows],
            noise_var=labels.some(rows).noise(self._noise_of_a_copy),
            solver="cholesky",
            engine=self._search_engine,
            progress=self.progress,
        )

    def _try_dirichlet(self, rows: Index | None) -> tuple[DirichletSetting, LeftOut]:
        """Find the setting of the Dirichlet likelihood, and the rows left out of all or some."""
        inputs, labels = self._training_inputs(), self._labels
        if rows is not None:
            inputs, labels = inputs[rows], labels.some(rows)
        matrix, few = kernel(self.architecture_, inputs), _some(len(inputs), SEARCHED)
        with single_threaded_blas():  # for matrices that are too small to share
            setting = find_setting(matrix[np.ix_(few, few)], labels.some(few))
        table = DirichletProcess(matrix, labels, setting).left_out_probabilities()
        return setting, LeftOut(table, labels)

    def _set_dirichlet(self, setting: DirichletSetting) -> None:
        """Condition the processes of all classes on all rows."""
        n = len(self._labels.index)
        needed, free = 24.0 * n**2, available_memory()
        if free is not None and needed > free:
            raise MemoryError(
                f"likelihood='dirichlet' needs {needed / 1e9:.2f} GB for {n} points and "
                f"{free / 1e9:.2f} GB may be used; pass likelihood='regression' or fewer points"
            )
        matrix = kernel(self.architecture_, self._training_inputs())
        self._dirichlet = DirichletProcess(matrix, self._labels, setting, overwrite=True)
        self.likelihood_ = "dirichlet"

    def _log_parameters(self, process: DirichletProcess, Xs: Array) -> tuple[Array, Array]:
        """Means and variances of the logarithms of the Dirichlet parameters, (m, classes)."""
        inputs = self._training_inputs()
        means, variances = [], []
        for start in range(0, len(Xs), size := max(1, TEST_NUMBERS // len(inputs))):
            part = Xs[start : start + size]
            cross = kernel(self.architecture_, part, inputs)
            mean, variance = process.predict(cross, kernel_diag(self.architecture_, part))
            means.append(mean)
            variances.append(variance)
        return np.concatenate(means), np.concatenate(variances)

    def _training_inputs(self) -> Array:
        return np.asarray(self.posterior_._inputs)

    def _state(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        classes, is_object = self.classes_, self.classes_.dtype == object
        if is_object and not all(isinstance(label, str) for label in classes):
            raise ValueError("class labels that are neither text nor numbers cannot be saved")
        values, arrays = super()._state()
        stored = classes.astype(str) if is_object else classes
        process, link = self._dirichlet, self._link
        values |= {
            "object_classes": is_object,
            "class_type": stored.dtype.str,
            "link": {"scale": link.scale, "exponent": link.exponent, "mixing": link.mixing},
            "left_out_loss": self.left_out_loss_,
            "dirichlet": None if process is None else vars(process.setting),
            "weighted_noise_var": self._noise_of_a_copy if self._labels.is_weighted else None,
        }
        arrays["classes"] = stored
        if self._labels.is_weighted:
            arrays["row_weights"] = self._labels.weights
        return values, arrays

    def _restore(self, file: ModelFile, posterior: Posterior) -> None:
        super()._restore(file, posterior)
        fitted, scaling = file.header.fields("fitted"), self._target_scaling
        if scaling.center.any() or np.ptp(scaling.spread) or scaling.spread[0] > 1:
            raise file.damaged("its targets are not scaled as those of classes")
        (n, count), kind = posterior._targets.shape, fitted.text("class_type")
        classes = file.read_labels("classes", count, kind)
        self.classes_ = classes.astype(object) if fitted.flag("object_classes") else classes
        weights, noise = np.ones(n), posterior.noise_var
        if fitted["weighted_noise_var"] is not None:
            weights = file.read("row_weights", (n,))
            self.noise_var_ = fitted.number("weighted_noise_var", 0)
            if weights.min() <= 0 or (weights == 1.0).all():
                raise file.damaged("its weights of rows are not those of weighted rows")
        labels = self._labels = Labels(posterior._targets.argmax(axis=1), weights, count)
        # At least the floor, where the ladder was climbed.
        stated = np.maximum(labels.noise(np.max(self.noise_var_)), np.min(noise))
        if np.shape(stated) != np.shape(noise) or not np.array_equal(stated, noise):
            raise file.damaged("its noise is not that of weighted rows")
        if not np.array_equal(scaling(labels.one_hot()), posterior._targets):
            raise file.damaged("its targets are not those of classes")
        self._link = read_link(fitted.fields("link"), labels.frequencies)
        losses = fitted.fields("left_out_loss")
        self.left_out_loss_ = {name: losses.number(name, 0) for name in losses.values}
        if set(losses.values) - set(LIKELIHOODS[1:]):
            raise fitted.wrong("left_out_loss", "losses of 'regression' and 'dirichlet'")
        self.likelihood_, self._dirichlet = "regression", None
        if fitted["dirichlet"] is not None:
            self._set_dirichlet(read_setting(fitted.fields("dirichlet")))


def read_link(saved: Fields, frequencies: Array) -> OneHotLink:
    """The link of the regression, from a saved model."""
    scale = saved.number("scale", 0, above=True)
    exponent, mixing = saved.number("exponent", 0, 10), saved.number("mixing", 0, 1)
    return OneHotLink(frequencies, scale, exponent, mixing)


def read_setting(saved: Fields) -> DirichletSetting:
    """The setting of the Dirichlet likelihood, from a saved model."""
    scale = saved.number("scale", 1e-150, 1e150)
    return DirichletSetting(scale, saved.number("alpha", 1e-9, 1))


def _some(n: int, most: int) -> Index:
    """Some of n rows, always the same."""
    return np.random.default_rng(0).permutation(n)[:most]
