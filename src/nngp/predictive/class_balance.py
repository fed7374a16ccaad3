"""Weights of rows and classes, and classes that are never predicted."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index
from nngp.errors import NeverPredictedWarning

ClassWeight = str | Mapping[Any, float] | None
FEWEST_ROWS = 20  # with fewer held-out rows, a class that is never predicted says little
NAMED = 5  # classes named in a warning


def check_class_weight(class_weight: object) -> None:
    """Raise ValueError unless class weights are None, "balanced" or positive numbers by label."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if isinstance(class_weight, Mapping):
        values = list(class_weight.values())
        if all(isinstance(v, int | float | np.number) and 0 < v < np.inf for v in values):
            return
    raise ValueError(
        "class_weight must be None, 'balanced' or a dict of positive numbers by label, got "
        f"{class_weight!r}"
    )


def weights_of_classes(
    class_weight: ClassWeight, classes: NDArray[Any], index: Index, weights: Array
) -> Array:
    """The weight of each class, (classes,): "balanced" gives all classes the same total."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        total = np.bincount(index, weights, minlength=len(classes))
        out: Array = total.sum() / (len(classes) * total)
        return out
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(
            f"class_weight has the label {unknown[0]!r}, which is not in y; its labels are "
            f"{_listed([repr(label) for label in labels])}"
        )
    return np.array([float(class_weight.get(label, 1.0)) for label in labels])


def warn_if_never_predicted(
    predicted: Index, truth: Index, classes: NDArray[Any], stacklevel: int
) -> None:
    """Warn of classes that are predicted for none of the held-out rows."""
    counts = np.bincount(truth, minlength=len(classes))
    missing = np.flatnonzero((np.bincount(predicted, minlength=len(classes)) == 0) & (counts > 0))
    if len(truth) < FEWEST_ROWS or not len(missing):
        return
    missing = missing[np.argsort(-counts[missing], kind="stable")]
    shown = _listed([f"{classes.tolist()[k]!r} ({counts[k]} rows)" for k in missing])
    warnings.warn(
        f"of {len(truth)} held-out rows, none is predicted to be of class {shown}; add rows of "
        "it, pass class_weight='balanced', or use predict_proba",
        NeverPredictedWarning,
        stacklevel=stacklevel + 1,
    )


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - NAMED} more" if len(parts) > NAMED else ""
    return ", ".join(parts[:NAMED]) + more
