"""Class probabilities of one fitted network: by regression or a Dirichlet likelihood, whichever
predicts rows better that were left out, or by the softmax likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nngp._arrays import Array, Index
from nngp._machine import available_memory, single_threaded_blas
from nngp.estimators.data_warnings import warn_of_no_signal
from nngp.estimators.fitted_network import LEAVE_OUT, ComputeSettings, FittedNetwork
from nngp.gram import kernel, kernel_diag
from nngp.predictive.blend import stack
from nngp.predictive.dirichlet import (
    DirichletProcess,
    DirichletSetting,
    Kernels,
    Labels,
    find_setting,
    left_out_table,
    with_copies,
)
from nngp.predictive.one_hot_link import LinkSearch, OneHotLink, log_loss
from nngp.predictive.softmax import (
    SoftmaxProcess,
    SoftmaxSetting,
    find_setting as find_softmax,
    held_out_table,
)

SURPRISES = 0.5  # rows
COMPARED = 1000  # points on which likelihoods are compared
SEARCHED = 400  # points on which scale and noise of the Dirichlet and softmax ones are found
TEST_NUMBERS = 20_000_000  # of the kernel between test and training points, held at a time


@dataclass(frozen=True)
class LeftOutClasses:
    """Probabilities of held-out rows, (n, classes), and the rows' classes and weights."""

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

    def warn_of_no_signal(self, stacklevel: int) -> None:
        """Warn where the frequencies of the classes predict as well."""
        index = self.labels.index
        gain = self.log_truth - np.log(self.labels.frequencies[index])
        frequent = int(self.labels.frequencies.argmax())
        hits, right = self.table.argmax(axis=1) == index, index == frequent
        if hits.mean() <= right.mean():
            likely = self.table[:, frequent]
            warn_of_no_signal(gain, likely, right.astype(float), stacklevel + 1)


def shares_of_classes(tables: Sequence[LeftOutClasses]) -> Array:
    """Shares of networks, and last that of the frequencies of the classes, under which rows left
    out are most probable.

    No network is certain: that n rows brought no surprise does not say that the next will not. So
    `SURPRISES` more rows are counted that the frequencies alone explain, as in the rule of
    succession. Without them one row of an unlikely class would cost more than all others together.
    """
    labels = tables[0].labels
    known = [one.log_truth for one in tables]
    log_frequencies = np.log(labels.frequencies[labels.index])
    surprise = np.append(np.full(len(tables), -np.inf), 0.0)
    rows = np.vstack([np.column_stack([*known, log_frequencies]), surprise])
    return stack(rows, np.append(labels.weights, SURPRISES))


@dataclass(frozen=True)
class ClassModel:
    """A network conditioned on one-hot targets, the labels, and what makes probabilities of them.

    Attributes
    ----------
    losses : dict
        Leave-one-out log loss of each likelihood that was tried.
    process : DirichletProcess, SoftmaxProcess or None
        None for the regression, whose outputs the link turns into probabilities.
    """

    network: FittedNetwork
    labels: Labels
    link: OneHotLink
    losses: dict[str, float] = field(default_factory=dict)
    process: DirichletProcess | SoftmaxProcess | None = None

    @classmethod
    def learn(
        cls, network: FittedNetwork, labels: Labels, likelihood: str, machine: ComputeSettings
    ) -> tuple["ClassModel", LeftOutClasses | None]:
        """Choose the likelihood; also the probabilities of held-out rows, if any can be."""
        n, plain = len(labels.index), cls(network, labels, OneHotLink(labels.frequencies))
        if labels.classes == 1 or n < 2:
            return plain, None
        small = network.posterior.report.solver == "cholesky" and n <= LEAVE_OUT
        link, best = plain._fit_link(None if small else some_rows(n, LEAVE_OUT), machine)
        out = replace(plain, link=link, losses={"regression": best.loss})
        if likelihood == "regression" or (likelihood == "auto" and not small):
            return out, best
        shown = None if n <= COMPARED else some_rows(n, COMPARED)
        if shown is not None:
            best = plain._fit_link(shown, machine)[1]
        if likelihood == "softmax":
            softmax, other = plain._try_softmax(shown)
            out = replace(out, losses={"regression": best.loss, "softmax": other.loss})
            return out.with_softmax(softmax), other
        setting, other = plain._try_dirichlet(shown)
        out = replace(out, losses={"regression": best.loss, "dirichlet": other.loss})
        if likelihood == "dirichlet" or other.loss < best.loss:
            return out.with_dirichlet(setting), other
        return out, best

    @property
    def likelihood(self) -> str:
        if self.process is None:
            return "regression"
        return "softmax" if isinstance(self.process, SoftmaxProcess) else "dirichlet"

    @property
    def fitted_numbers(self) -> int:
        """Numbers of the likelihood that were chosen on held-out rows."""
        own = {"regression": self.link.fitted_numbers, "dirichlet": 2, "softmax": 2}
        return own[self.likelihood]

    @property
    def keeps_order(self) -> bool:
        """Whether the class of the largest mean is the most probable."""
        return self.process is None and self.link.keeps_order

    def probabilities(self, X: Array) -> Array:
        """Probability of each class at encoded inputs, (m, classes); none is zero."""
        network, Xs = self.network, self.network.inputs(X)
        if self.process is not None:
            return self._by_process(self.process, Xs)
        # In units of the scaled targets: a common spread does not change which is largest.
        return self.link(*network.posterior.predict(Xs, noise=network.noise(Xs, True)))

    def with_dirichlet(self, setting: DirichletSetting) -> "ClassModel":
        """Condition the processes of all classes on all rows."""
        matrix = self._matrix("dirichlet", 3)
        process = DirichletProcess(matrix, self.labels, setting, overwrite=True)
        return replace(self, process=process)

    def with_softmax(self, setting: SoftmaxSetting) -> "ClassModel":
        """Approximate the posterior of the logits given all rows."""
        matrix = self._matrix("softmax", 5 + self.labels.classes)
        return replace(self, process=SoftmaxProcess(matrix, self.labels, setting))

    def _matrix(self, likelihood: str, matrices: int) -> Array:
        """The kernel matrix of all rows; MemoryError where so many do not fit."""
        n = len(self.labels.index)
        needed, free = 8.0 * matrices * n**2, available_memory()
        if free is not None and needed > free:
            raise MemoryError(
                f"likelihood='{likelihood}' needs {needed / 1e9:.2f} GB for {n} points and "
                f"{free / 1e9:.2f} GB may be used; pass likelihood='regression' or fewer points"
            )
        return kernel(self.network.network, self._training_inputs())

    def _fit_link(
        self, rows: Index | None, machine: ComputeSettings
    ) -> tuple[OneHotLink, LeftOutClasses]:
        """Find the link of the regression on held-out rows of all rows or of some."""
        labels = self.labels if rows is None else self.labels.some(rows)
        mean, variance = np.empty((len(labels.index), labels.classes)), np.empty(len(labels.index))
        for part, network in self._parts(rows):
            posterior = network.posterior if rows is None else network.on(rows, machine)
            m, v = posterior.leave_one_out(noise=True)
            if labels.is_weighted:
                noise = np.full(len(m), network.noise_var)
                latent = np.maximum(v - noise / labels.weights, 0.0)
                m, latent = with_copies(m, latent, posterior.targets, noise, labels.weights)
                v = latent + noise
            mean[part], variance[part] = m[part], v[part]
        search = LinkSearch(mean, variance, labels.index, labels.weights)
        link = search.best(self.labels.frequencies)
        return link, LeftOutClasses(link(mean, variance), labels)

    def _try_dirichlet(self, rows: Index | None) -> tuple[DirichletSetting, LeftOutClasses]:
        """Find the setting of the Dirichlet likelihood, and the held-out rows of all or some."""
        labels = self.labels if rows is None else self.labels.some(rows)
        kernels, (some, few) = self._kernels(rows)
        with single_threaded_blas():  # for matrices that are too small to share
            setting = find_setting(some, labels.some(few))
        return setting, LeftOutClasses(left_out_table(kernels, labels, setting), labels)

    def _try_softmax(self, rows: Index | None) -> tuple[SoftmaxSetting, LeftOutClasses]:
        """Find the setting of the softmax likelihood, and the held-out rows of all or some."""
        labels = self.labels if rows is None else self.labels.some(rows)
        kernels, (some, few) = self._kernels(rows)
        with single_threaded_blas():
            setting = find_softmax(some, labels.some(few))
        return setting, LeftOutClasses(held_out_table(kernels, labels, setting), labels)

    def _kernels(self, rows: Index | None) -> tuple[Kernels, tuple[Kernels, Index]]:
        """The kernel matrix of each part of all rows or of some; the same for a few of these, and
        which these are."""
        n = len(self.labels.index) if rows is None else len(rows)
        kernels = []
        for part, network in self._parts(rows):
            inputs = np.asarray(network.posterior.inputs)
            inputs = inputs if rows is None else inputs[rows]
            kernels.append((part, kernel(network.network, inputs)))
        few = some_rows(n, SEARCHED)
        place = np.full(n, -1)
        place[few] = np.arange(len(few))
        some = [
            (place[part[place[part] >= 0]], matrix[np.ix_(few, few)]) for part, matrix in kernels
        ]
        return kernels, (some, few)

    def _parts(self, rows: Index | None) -> Sequence[tuple[Index, FittedNetwork]]:
        """Parts of all rows, or of some, and the network that predicts each when it is left out:
        one that was chosen without it, if there is one."""
        network = self.network
        if rows is None:
            return network.folds or [(np.arange(network.posterior.n), network)]
        return [(np.arange(len(rows)), network)]

    def _by_process(self, process: DirichletProcess | SoftmaxProcess, Xs: Array) -> Array:
        """Probability of each class at scaled inputs, some at a time."""
        inputs, network, tables = self._training_inputs(), self.network.network, []
        for start in range(0, len(Xs), size := max(1, TEST_NUMBERS // len(inputs))):
            part = Xs[start : start + size]
            cross = kernel(network, part, inputs)
            tables.append(process.probabilities(cross, kernel_diag(network, part)))
        return np.concatenate(tables)

    def _training_inputs(self) -> Array:
        return np.asarray(self.network.posterior.inputs)


def some_rows(n: int, most: int) -> Index:
    """At most that many of n rows, always the same."""
    return np.random.default_rng(0).permutation(n)[:most]
