"""Invariances by name, and how well a network does with one.

A name is a list of words: "whitened, flips, shifts 4, head 16" are inputs that are whitened, mirror
images, shifts by at most four pixels, and sixteen layers on top of the average.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from nngp import Architecture, Invariant, Network, WithHead, images, normalize
from nngp_paper.arrays import Array, Index, Mask
from nngp_paper.datasets import Split
from nngp_paper.datasets.catalogue import IMAGE_SETS

HEAD, DEGREES = 8, 10  # where a name has no number
STRENGTH = 0.1  # of whitening
CONSTANT = 16 * np.finfo(float).eps  # deviation of a pixel that is constant, over its values
LEAST = 1e-12  # probability of a true class, in the loss: so one surprise does not decide
BINS = 15  # of confidence
WORD = re.compile(r"(plain|whitened|flips)|(shifts) ([1-9]\d*)|(rotations|head)(?: ([1-9]\d*))?")
Scores = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """Transformations to average over, a strength of whitening, and layers on top of the
    average."""

    families: tuple[Any, ...] = ()  # of transformations, from `nngp.images`
    strength: float | None = None
    head: int = 0

    @property
    def is_average(self) -> bool:
        """Whether it differs from the plain network by nothing but an average."""
        return bool(self.families) and self.strength is None and self.head == 0

    @classmethod
    def named(cls, name: str, dataset: str) -> "Variant":
        """The variant of that name, for the images of a data set.

        Examples
        --------
        >>> from nngp_paper.shared.invariances import Variant
        >>> Variant.named("whitened, flips, head", "cifar10").head
        8
        """
        out, shape = cls(), IMAGE_SETS[dataset].shape
        for word in name.split(", "):
            found = WORD.fullmatch(word)
            if found is None:
                raise ValueError(
                    f"{word!r} is no word for an invariance; use plain, whitened, flips, shifts 2, "
                    "rotations or head, the last two with a number if you like"
                )
            out = out._with(found[1] or found[2] or found[4], found[3] or found[5], shape)
        if out.head and not out.families:
            raise ValueError(f"{name!r} has a head and nothing to put it on; name a transformation")
        return out

    def _with(self, kind: str, number: str | None, shape: tuple[int, ...]) -> "Variant":
        if kind == "plain":
            return self
        if kind == "whitened":
            return replace(self, strength=STRENGTH)
        if kind == "head":
            return replace(self, head=int(number or HEAD))
        if kind == "flips":
            family = images.flips(shape)
        elif kind == "shifts":
            family = images.shifts(int(number or 1), shape)
        else:
            family = images.rotations(shape, degrees=float(number or DEGREES), count=3)
        return replace(self, families=(*self.families, family))

    def network(self, base: Architecture) -> Network:
        """The network with the invariance."""
        if not self.families:
            return base
        average = Invariant(base, self.families)
        if not self.head:
            return average
        return WithHead(average, Architecture(self.head, "relu", 2.0, 0.0))


@dataclass(frozen=True)
class ScaledImages:
    """Images of a split, as they are or whitened; whitening is learned on the training images."""

    split: Split

    @cached_property
    def _spectrum(self) -> "Spectrum":
        return Spectrum.learn(self.split.X)

    def scaling(self, strength: float | None) -> Callable[[Array], Array]:
        """Preprocessing of images."""
        if strength is None:
            return lambda X: X
        return self._spectrum.whitened(strength)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of the covariance of training images, in units of the root mean
    variance of a pixel. It is what `NNGPClassifier(input_scaling="whiten")` learns; here variants
    share it."""

    center: Array
    factor: Array  # one over that root; 0 for pixels that are constant
    values: Array
    vectors: Array

    @classmethod
    def learn(cls, X: Array) -> "Spectrum":
        """Decompose the covariance of the rows."""
        center, spread = X.mean(axis=0), X.std(axis=0)
        unit = np.sqrt(np.mean(spread**2))
        rounding = CONSTANT * len(X) ** 0.5 * np.abs(X).max(axis=0)
        factor = np.where(spread > rounding, 1.0 / unit, 0.0)
        Z = (X - center) * factor
        values, vectors = eigh(Z.T @ Z / len(Z), driver="evd")
        return cls(center, factor, np.maximum(values, 0.0), vectors)

    def whitened(self, strength: float) -> Callable[[Array], Array]:
        """Multiplication by (covariance + strength)^(-1/2), then rows of equal norm."""
        half = self.vectors * (self.values + strength) ** -0.25
        W = half @ half.T
        return lambda X: normalize(((X - self.center) * self.factor) @ W)


def scores(data: ScaledImages, variant: Variant, base: Architecture, engine: str) -> Scores:
    """Test scores of a network with an invariance, and the engine that was taken. The noise is
    chosen by evidence on training images, nothing else is chosen."""
    from nngp import NNGPClassifier

    scale, split, network = data.scaling(variant.strength), data.split, variant.network(base)
    start = time.perf_counter()
    model = NNGPClassifier(
        network=network,
        input_scaling="none",
        likelihood="regression",
        effort="fast",  # nothing is compared with trees
        engine=engine,
        progress=False,
    ).fit(scale(split.X), split.labels)
    fitted = time.perf_counter()
    table, labels = model.predict_proba(scale(split.X_test)), split.labels_test
    end = time.perf_counter()
    right = table.argmax(axis=1) == labels
    return {
        "engine": model.report_.engine,
        "products": network.products(split.X.shape[1]),
        "test": len(right),
        "accuracy": float(right.mean()),
        "log_loss": log_loss(table, labels),
        "calibration_error": calibration_error(table.max(axis=1), right),
        "log_evidence": model.log_evidence_,
        "noise_var": model.noise_var_,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(end - fitted, 2),
    }


def log_loss(table: Array, labels: Index) -> float:
    """Mean negative log probability of the true classes, of which none counts as impossible."""
    truth = np.maximum(table[np.arange(len(labels)), labels], LEAST)
    return -float(np.log(truth).mean())


def calibration_error(confidence: Array, right: Mask) -> float:
    """Mean gap between confidence and accuracy over bins of equal confidence."""
    index = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(index, weights=confidence - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(index))
