"""Probabilities from the regression on one-hot targets.

The probability of a class is that its output is the largest. A factor on the prior and noise
variances of an output changes its variance and no mean. One factor for all outputs is too little
where classes differ in size: a one-hot target of frequency π has the variance π (1 - π), so the
outputs of rare classes were drawn as widely as those of frequent ones, and the factor that this
allowed was too small elsewhere. Gaussians also leave next to nothing to a class whose few rows lie
elsewhere. So there are three numbers, found where the true classes of held-out points are most
probable:

    variance of output k   scale · v · (π_k (1 - π_k) / mean)^exponent
    probability            (1 - mixing) · P(k is largest) + mixing · π_k

The last two are used only if they gain more than Akaike's one nat each. The exponent is tried only
where points compared times classes are at most `UNEQUAL`: variances of their own make the integral
many times dearer.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Array, Index
from nngp.predictive.probability import STEP, above_zero, largest_probability

MIN_PROBABILITY = 1e-12  # of a true class, in the loss: so one surprise does not decide
EXPONENT = 1.0  # tried beside zero: each output has the variance of its own targets
LARGEST_MIXING = 0.5
COMPARED = 1000  # points on which forms of the link are compared
UNEQUAL = 2**19  # most probabilities at a time for which the exponent is tried
# Steps of the quadrature while searching, for few classes and for many; errors of some 1e-4.
FEW_CLASSES, COARSE_STEPS = 8, (0.5, 0.25)
Interval = tuple[float, float]


@dataclass(frozen=True)
class OneHotLink:
    """How outputs of the regression become probabilities."""

    frequencies: Array  # of the classes, (classes,)
    scale: float = 1.0
    exponent: float = 0.0
    mixing: float = 0.0

    def __call__(self, mean: Array, variance: Array) -> Array:
        """Probabilities, (m, classes), for means (m, classes) and variances (m,)."""
        table = self.largest(mean, variance)
        if self.mixing:
            table = (1.0 - self.mixing) * table + self.mixing * self.frequencies
        return above_zero(table)

    @property
    def keeps_order(self) -> bool:
        """Whether the largest mean is the most probable class."""
        return self.mixing == 0 and self.exponent == 0

    @property
    def fitted_numbers(self) -> int:
        """Numbers that a search chose: the scale always, the others where they differ from 0."""
        return 1 + (self.exponent > 0) + (self.mixing > 0)

    def largest(self, mean: Array, variance: Array, step: float = STEP) -> Array:
        """Probability that an output is the largest, before anything is mixed in."""
        variance = variance * self.scale
        if self.exponent:
            spread = self.frequencies * (1.0 - self.frequencies)
            variance = variance[:, None] * (spread / spread.mean()) ** self.exponent
        return largest_probability(mean, variance, step)


@dataclass(frozen=True)
class LinkSearch:
    """Means (n, classes) and variances (n,) of held-out points, their classes and weights."""

    mean: Array
    variance: Array
    labels: Index
    weights: Array

    def best(self, frequencies: Array) -> OneHotLink:
        """The link that makes the true classes most probable."""
        link = OneHotLink(frequencies)
        n, classes = self.mean.shape
        if classes == 1 or n < 2:
            return link
        if n <= COMPARED:
            return self._best_form(link)
        some = np.random.default_rng(0).permutation(n)[:COMPARED]
        few = LinkSearch(
            self.mean[some], self.variance[some], self.labels[some], self.weights[some]
        )
        found = few._best_form(link)
        around = np.log(found.scale)
        return self._scaled(found, (around - 1.0, around + 1.0), mixed=found.mixing > 0)

    def _best_form(self, link: OneHotLink) -> OneHotLink:
        """Find all three numbers, of which the last two cost one nat each."""
        plain = self._scaled(link, (-7.0, 7.0), mixed=False)
        around = np.log(plain.scale)
        wide = float(around - 2.0), float(around + 1.0)
        forms = [plain, self._scaled(plain, wide, mixed=True)]
        differ = len(np.unique(link.frequencies)) > 1 and len(link.frequencies) > 2
        if differ and self.mean.size <= UNEQUAL:
            unequal = replace(plain, exponent=EXPONENT)
            forms.append(self._scaled(unequal, wide, mixed=False))
            # Both together only where each pays alone.
            if self._criterion(plain) > max(self._criterion(form) for form in forms[1:]):
                forms.append(self._scaled(unequal, wide, mixed=True))
        return min(forms, key=self._criterion)

    def _criterion(self, link: OneHotLink) -> float:
        """Akaike's: the loss, and one nat for each number."""
        return self._loss(link, self._truth(link)) + link.fitted_numbers

    def _scaled(self, link: OneHotLink, log_scales: Interval, *, mixed: bool) -> OneHotLink:
        """Find the scale, and the mixing if it is asked for, with the exponent as it is."""
        expected = link.frequencies[self.labels]

        def at(log_scale: float) -> tuple[OneHotLink, Array]:
            found = replace(link, scale=float(np.exp(log_scale)), mixing=0.0)
            truth = self._truth(found)
            if mixed:
                found = replace(found, mixing=_best_mixing(truth, expected, self.weights))
            return found, truth

        options = {"xatol": 0.02 * (log_scales[1] - log_scales[0]) / 2}
        least = minimize_scalar(
            lambda log_scale: self._loss(*at(log_scale)),
            bounds=log_scales,
            method="bounded",
            options=options,
        )
        return at(float(least.x))[0]

    def _truth(self, link: OneHotLink) -> Array:
        """Probability that the output of the true class is the largest."""
        step = COARSE_STEPS[len(link.frequencies) > FEW_CLASSES]
        table = link.largest(self.mean, self.variance, step)
        return np.maximum(table[np.arange(len(self.labels)), self.labels], MIN_PROBABILITY)

    def _loss(self, link: OneHotLink, truth: Array) -> float:
        """Negative log probability of the true classes, summed."""
        mixed = (1.0 - link.mixing) * truth + link.mixing * link.frequencies[self.labels]
        return -float(self.weights @ np.log(mixed))


def log_loss(table: Array, labels: Index, weights: Array) -> float:
    """Mean negative log probability of the true classes, of which none counts as impossible."""
    truth = np.maximum(table[np.arange(len(labels)), labels], MIN_PROBABILITY)
    return -float(weights @ np.log(truth)) / float(weights.sum())


def _best_mixing(truth: Array, expected: Array, weights: Array) -> float:
    """Share of the frequencies under which the true classes are most probable: a concave
    problem."""
    gain, low, high = expected - truth, 0.0, LARGEST_MIXING
    if weights @ (gain / truth) <= 0:
        return 0.0
    for _ in range(30):  # bisection of the derivative
        middle = 0.5 * (low + high)
        rising = weights @ (gain / (truth + middle * gain)) > 0
        low, high = (middle, high) if rising else (low, middle)
    return low
