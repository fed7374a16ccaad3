"""What a sweep says of one network."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.gram import Inputs

NOTHING = float("nan")


class Points(NamedTuple):
    """Inputs whose targets are known, one row of targets for each."""

    inputs: Inputs
    targets: NDArray[np.float64]


@dataclass(frozen=True)
class SweepResult:
    """One network's scores on the validation set; NaN, with `error`, where there are none.

    `accuracy` compares the largest output with the largest target, and is NaN for one output. The
    scores on the test set are NaN if there is none.
    """

    architecture: Architecture
    accuracy: float = NOTHING
    mse: float = NOTHING
    log_evidence: float = NOTHING
    noise_var: float = NOTHING
    failed_attempts: int = 0
    seconds: float = 0.0
    error: str = ""
    test_accuracy: float = NOTHING
    test_mse: float = NOTHING


def scores(
    asked: Sequence[Points], wrong: Iterable[float], right: Iterable[float]
) -> dict[str, float]:
    """The fields of a result, from sums of squared errors and numbers of right classes in the
    validation set and, if there is one, the test set."""
    out = {}
    for name, points, errors, agreed in zip(("", "test_"), asked, wrong, right, strict=False):
        m, outputs = points.targets.shape
        out[f"{name}accuracy"] = float(agreed) / m if outputs > 1 else NOTHING
        out[f"{name}mse"] = float(errors) / (m * outputs)
    return out
