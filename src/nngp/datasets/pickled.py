"""CIFAR's pickled batches, read without trusting them.

A pickle can call whatever it can name. This reader lets it name three things of NumPy's, which it
replaces by stand-ins written here: an array begins empty, and is filled from its state.
"""

import io
import math
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray


def read_batch(data: bytes) -> dict[str, Any]:
    """The dictionary in a pickle of lists, strings, numbers and arrays of bytes."""
    batch = _ArraysOnly(io.BytesIO(data), encoding="latin1").load()
    if not isinstance(batch, dict) or not isinstance(batch.get("data"), _PickledArray):
        raise ValueError("its pickle holds no dictionary with an array 'data'")
    if "labels" not in batch:
        raise ValueError("its pickle has no 'labels'")
    return batch | {"data": batch["data"].values}


class _PickledArray:
    """What a pickled array of bytes becomes."""

    def __init__(self, *described: Any) -> None:
        self.values: NDArray[np.uint8] = np.empty(0, np.uint8)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, raw = state
        values = np.frombuffer(raw.encode("latin1"), np.uint8)
        if not isinstance(kind, _ByteType) or by_columns or len(values) != math.prod(shape):
            raise ValueError(f"its pickle holds an array that is no row-by-row uint8 {shape}")
        self.values = values.reshape(shape)


class _ByteType:
    """What the pickled name of a type of numbers becomes: uint8, or an error."""

    def __init__(self, code: str, *flags: Any) -> None:
        if code != "u1":
            raise ValueError(f"its pickle holds an array of '{code}', expected 'u1' (bytes)")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Byte order and the like: bytes have none."""


class _ArraysOnly(pickle.Unpickler):
    ALLOWED = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _PickledArray,
        ("numpy", "ndarray"): _PickledArray,
        ("numpy", "dtype"): _ByteType,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise ValueError(f"its pickle asks for {module}.{name}, which images have no need of")
        return self.ALLOWED[module, name]
