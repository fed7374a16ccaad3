"""Class probabilities of one fitted network: by regression or a Dirichlet likelihood, whichever
predicts rows better that were left out."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nngp._arrays import Array, Index
from nngp._fields import Fields
from nngp._machine import available_memory, single_threaded_blas
from nngp.gram import kernel, kernel_diag
from nngp.predictors.dirichlet import (
    DirichletProcess,
    DirichletSetting,
    Labels,
    find_setting,
    with_copies,
)
from nngp.predictors.expected_softmax import expected_softmax
from nngp.predictors.fitted_network import LEAVE_OUT, FittedNetwork, Machine
from nngp.predictors.one_hot_link import LinkSearch, OneHotLink, log_loss
from nngp.predictors.probability import above_zero

LIKELIHOODS = ("auto", "regression", "dirichlet")
COMPARED = 1000  # points on which the two likelihoods are compared
SEARCHED = 400  # points on which the scale and noise of the Dirichlet likelihood are found
TEST_NUMBERS = 20_000_000  # of the kernel between test and training points, held at a time


@dataclass(frozen=True)
class LeftOutClasses:
    """Probabilities of rows left out, (n, classes), and the rows' classes and weights."""

    table: Array
    labels: Labels

    @property
    def loss(self) -> float:
        return log_loss(self.table, self.labels.index, self.labels.weights)

    @property
    def log_truth(self) -> Array:
        """Log probability of every row's own class."""
        index = self.labels.index
        out: Array = np.log(self.table[np.arange(len(index)), index])
        return out


@dataclass(frozen=True)
class ClassModel:
    """A network conditioned on one-hot targets, the labels, and what makes probabilities of them.

    Attributes
    ----------
    losses : dict
        Leave-one-out log loss of each likelihood that was tried.
    dirichlet : DirichletProcess or None
        None for the regression, whose outputs the link turns into probabilities.
    """

    network: FittedNetwork
    labels: Labels
    link: OneHotLink
    losses: dict[str, float] = field(default_factory=dict)
    dirichlet: DirichletProcess | None = None

    @classmethod
    def learn(
        cls, network: FittedNetwork, labels: Labels, likelihood: str, machine: Machine
    ) -> tuple["ClassModel", LeftOutClasses | None]:
        """Choose the likelihood; also the probabilities of rows left out, if any can be."""
        n, plain = len(labels.index), cls(network, labels, OneHotLink(labels.frequencies))
        if labels.classes == 1 or n < 2:
            return plain, None
        small = network.posterior.report.solver == "cholesky" and n <= LEAVE_OUT
        link, best = plain._fit_link(None if small else _some(n, LEAVE_OUT), machine)
        out = replace(plain, link=link, losses={"regression": best.loss})
        if likelihood == "regression" or (likelihood == "auto" and not small):
            return out, best
        shown = None if n <= COMPARED else _some(n, COMPARED)
        if shown is not None:
            best = plain._fit_link(shown, machine)[1]
        setting, other = plain._try_dirichlet(shown)
        out = replace(out, losses={"regression": best.loss, "dirichlet": other.loss})
        if likelihood == "dirichlet" or other.loss < best.loss:
            return out.with_dirichlet(setting), other
        return out, best

    @property
    def likelihood(self) -> str:
        return "regression" if self.dirichlet is None else "dirichlet"

    @property
    def keeps_order(self) -> bool:
        """Whether the class of the largest mean is the most probable."""
        return self.dirichlet is None and self.link.keeps_order

    def probabilities(self, X: Array) -> Array:
        """Probability of each class at encoded inputs, (m, classes); none is zero."""
        network, Xs = self.network, self.network.inputs(X)
        if self.dirichlet is not None:
            return above_zero(expected_softmax(*self._log_parameters(self.dirichlet, Xs)))
        # In units of the scaled targets: a common spread does not change which is largest.
        return self.link(*network.posterior.predict(Xs, noise=network.noise(Xs, True)))

    def with_dirichlet(self, setting: DirichletSetting) -> "ClassModel":
        """Condition the processes of all classes on all rows."""
        n = len(self.labels.index)
        needed, free = 24.0 * n**2, available_memory()
        if free is not None and needed > free:
            raise MemoryError(
                f"likelihood='dirichlet' needs {needed / 1e9:.2f} GB for {n} points and "
                f"{free / 1e9:.2f} GB may be used; pass likelihood='regression' or fewer points"
            )
        matrix = kernel(self.network.architecture, self._training_inputs())
        process = DirichletProcess(matrix, self.labels, setting, overwrite=True)
        return replace(self, dirichlet=process)

    def as_saved(self) -> dict[str, Any]:
        """Values that JSON can hold; the processes are computed again."""
        link, process = self.link, self.dirichlet
        return {
            "link": {"scale": link.scale, "exponent": link.exponent, "mixing": link.mixing},
            "left_out_loss": self.losses,
            "dirichlet": None if process is None else vars(process.setting),
        }

    @classmethod
    def from_saved(cls, fields: Fields, network: FittedNetwork, labels: Labels) -> "ClassModel":
        """Read what `as_saved` gave, checked."""
        losses = fields.fields("left_out_loss")
        if set(losses.values) - set(LIKELIHOODS[1:]):
            raise fields.wrong("left_out_loss", "losses of 'regression' and 'dirichlet'")
        link = _read_link(fields.fields("link"), labels.frequencies)
        known = {name: losses.number(name, 0) for name in losses.values}
        out = cls(network, labels, link, known)
        if fields["dirichlet"] is None:
            return out
        return out.with_dirichlet(_read_setting(fields.fields("dirichlet")))

    def _fit_link(self, rows: Index | None, machine: Machine) -> tuple[OneHotLink, LeftOutClasses]:
        """Find the link of the regression on rows left out of all rows or of some."""
        network = self.network
        labels = self.labels if rows is None else self.labels.some(rows)
        posterior = network.posterior if rows is None else network.on(rows, machine)
        mean, variance = posterior.leave_one_out(noise=True)
        if labels.is_weighted:
            noise = np.full(len(mean), network.noise_var)
            latent = np.maximum(variance - noise / labels.weights, 0.0)
            mean, latent = with_copies(mean, latent, posterior._targets, noise, labels.weights)
            variance = latent + noise
        search = LinkSearch(mean, variance, labels.index, labels.weights)
        link = search.best(self.labels.frequencies)
        return link, LeftOutClasses(link(mean, variance), labels)

    def _try_dirichlet(self, rows: Index | None) -> tuple[DirichletSetting, LeftOutClasses]:
        """Find the setting of the Dirichlet likelihood, and the rows left out of all or some."""
        inputs, labels = self._training_inputs(), self.labels
        if rows is not None:
            inputs, labels = inputs[rows], labels.some(rows)
        matrix = kernel(self.network.architecture, inputs)
        few = _some(len(inputs), SEARCHED)
        with single_threaded_blas():  # for matrices that are too small to share
            setting = find_setting(matrix[np.ix_(few, few)], labels.some(few))
        table = DirichletProcess(matrix, labels, setting).left_out_probabilities()
        return setting, LeftOutClasses(table, labels)

    def _log_parameters(self, process: DirichletProcess, Xs: Array) -> tuple[Array, Array]:
        """Means and variances of the logarithms of the Dirichlet parameters, (m, classes)."""
        inputs, architecture = self._training_inputs(), self.network.architecture
        means, variances = [], []
        for start in range(0, len(Xs), size := max(1, TEST_NUMBERS // len(inputs))):
            part = Xs[start : start + size]
            cross = kernel(architecture, part, inputs)
            mean, variance = process.predict(cross, kernel_diag(architecture, part))
            means.append(mean)
            variances.append(variance)
        return np.concatenate(means), np.concatenate(variances)

    def _training_inputs(self) -> Array:
        return np.asarray(self.network.posterior._inputs)


def _read_link(saved: Fields, frequencies: Array) -> OneHotLink:
    scale = saved.number("scale", 0, above=True)
    exponent, mixing = saved.number("exponent", 0, 10), saved.number("mixing", 0, 1)
    return OneHotLink(frequencies, scale, exponent, mixing)


def _read_setting(saved: Fields) -> DirichletSetting:
    scale = saved.number("scale", 1e-150, 1e150)
    return DirichletSetting(scale, saved.number("alpha", 1e-9, 1))


def _some(n: int, most: int) -> Index:
    """Some of n rows, always the same."""
    return np.random.default_rng(0).permutation(n)[:most]
