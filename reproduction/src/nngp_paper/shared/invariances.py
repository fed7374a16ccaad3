"""Invariances by name, and how well a network does with one.

A name is a list of words: "whitened, flips, shifts 4, head 16" are inputs that are whitened, mirror
images, shifts by at most four pixels, and sixteen layers on top of the average.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nngp import images
from nngp._arrays import Array
from nngp.architecture import Architecture, Family, Headed, Invariant, Network
from nngp_paper.datasets import Split
from nngp_paper.datasets.catalogue import IMAGE_SETS

if TYPE_CHECKING:  # estimators import scikit-learn
    from nngp.predictors.whitening import InputSpectrum

HEAD, DEGREES = 8, 10  # where a name has no number
STRENGTH = 0.1  # of whitening
WORD = re.compile(r"(plain|whitened|flips)|(shifts) ([1-9]\d*)|(rotations|head)(?: ([1-9]\d*))?")
Scores = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """Transformations to average over, a strength of whitening, and layers on top of the
    average."""

    families: tuple[Family, ...] = ()
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
        return Headed(average, Architecture(self.head, "relu", 2.0, 0.0))


@dataclass(frozen=True)
class ScaledImages:
    """Images of a split, as they are or whitened; whitening is learned on the training images."""

    split: Split

    @cached_property
    def _spectrum(self) -> "InputSpectrum":
        from nngp.predictors.whitening import InputSpectrum

        return InputSpectrum.learn(self.split.X)

    def scaling(self, strength: float | None) -> Callable[[Array], Array]:
        """What is done with images before a network sees them."""
        from nngp.predictors.scaling import InputScaling

        if strength is None:
            return lambda X: X
        return InputScaling.whitened(self._spectrum, strength)


def scores(data: ScaledImages, variant: Variant, base: Architecture, engine: str) -> Scores:
    """Test scores of a network with an invariance, and the engine that was taken. The noise is
    chosen by evidence on training images, nothing else is chosen."""
    from nngp.predictors import NNGPClassifier
    from nngp.predictors.calibration import expected_calibration_error
    from nngp.predictors.one_hot_link import log_loss

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
        "log_loss": log_loss(table, labels, np.ones(len(labels))),
        "calibration_error": float(expected_calibration_error(table.max(axis=1), right)),
        "log_evidence": model.log_evidence_,
        "noise_var": model.noise_var_,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(end - fitted, 2),
    }
