"""The data that networks are trained on, checked and on the device.

Training rows are in the order in which smaller training sets take them, so that the first n rows
are the training set of n points.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from nngp_paper.arrays import DeviceArray
from nngp_paper.datasets import Split
from nngp_paper.datasets.split import in_turns


class DataPart(NamedTuple):
    """Inputs, targets and labels on the device, in single precision."""

    X: DeviceArray
    Y: DeviceArray
    labels: DeviceArray


class TrainingData(NamedTuple):
    """A split of the data, and its three parts on the device."""

    data: Split
    train: DataPart
    validation: DataPart
    test: DataPart

    @property
    def parts(self) -> tuple[DataPart, DataPart, DataPart]:
        """Training, validation and test part."""
        return self.train, self.validation, self.test

    @classmethod
    def of(cls, data: Split) -> "TrainingData":
        """Check a split and copy it to the device, once for all networks."""
        parts = {
            "training": _in_turns(data.X, data.labels),
            "validation": (data.X_val, data.labels_val),
            "test": (data.X_test, data.labels_test),
        }
        return cls(data, *(_checked(data, name, *part) for name, part in parts.items()))


def _in_turns(
    X: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Training rows in the order of growing training sets; as they are if they are not valid."""
    if labels.dtype.kind not in "iu" or len(X) != len(labels):
        return X, labels
    order = in_turns(labels)
    return X[order], labels[order]


def _checked(data: Split, name: str, X: NDArray[np.float64], labels: NDArray[np.int64]) -> DataPart:
    """Copy a part to the device; raise ValueError for data that training would take silently."""
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
    Y = jnp.asarray(data.targets(labels), jnp.float32)
    return DataPart(jnp.asarray(X, jnp.float32), Y, jnp.asarray(labels, jnp.int32))
