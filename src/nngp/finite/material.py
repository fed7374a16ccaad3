"""The data that networks are trained on, checked and on the device."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp.datasets import Split
from nngp.finite.lanes import Part, part_of


class Material(NamedTuple):
    """A split of the data, and its three parts on the device."""

    data: Split
    train: Part
    validation: Part
    test: Part

    @classmethod
    def of(cls, data: Split) -> "Material":
        """In single precision, once for all networks; checked, since no error would show later."""
        parts = {
            "training": (data.X, data.labels),
            "validation": (data.X_val, data.labels_val),
            "test": (data.X_test, data.labels_test),
        }
        for name, (X, labels) in parts.items():
            _check_part(data, name, X, labels)
        return cls(data, *(part_of(X, data.targets(y), y) for X, y in parts.values()))


def _check_part(data: Split, name: str, X: NDArray[Any], labels: NDArray[Any]) -> None:
    if X.ndim != 2 or X.shape[1] != data.X.shape[1] or len(X) != len(labels) or not len(X):
        raise ValueError(
            f"{data.name}: the {name} part has inputs {X.shape} and {len(labels)} labels; it needs "
            f"at least one point, a label for each, and {data.X.shape[1]} features"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{data.name}: the {name} inputs hold values that are not finite")
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= data.n_classes:
        raise ValueError(
            f"{data.name}: the {name} labels must be whole numbers from 0 to {data.n_classes - 1}"
        )
