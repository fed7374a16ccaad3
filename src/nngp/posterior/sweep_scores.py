"""The data and the result of a sweep over many networks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Headed, Network
from nngp.curve import curve_at
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import Inputs
from nngp.linsolve import Engine
from nngp.posterior.noise import Noise

NOTHING = float("nan")
UNKNOWN = 1e-4  # error of a kernel, relative to its scale


class LabelledInputs(NamedTuple):
    """Inputs whose targets are known, one row of targets for each."""

    inputs: Inputs
    targets: NDArray[np.float64]


@dataclass(frozen=True)
class SweepData:
    """Training points, the sets on which networks are scored, and where it is computed."""

    engine: Engine
    train: LabelledInputs
    scored: Sequence[LabelledInputs]
    noise_var: float
    relative_noise: bool

    def noise_of(self, architecture: Network) -> Noise:
        """The start of the noise ladder of a network."""
        return Noise.of(self.noise_var, self.relative_noise, architecture, self.train.inputs)


@dataclass(frozen=True)
class SweepResult:
    """One network's scores on the validation set; NaN, with `error`, where there are none.

    `accuracy` compares the largest output with the largest target, and is NaN for one output. The
    scores on the test set are NaN if there is none.
    """

    architecture: Network
    accuracy: float = NOTHING
    mse: float = NOTHING
    log_evidence: float = NOTHING
    noise_var: float = NOTHING
    failed_attempts: int = 0
    seconds: float = 0.0
    error: str = ""
    test_accuracy: float = NOTHING
    test_mse: float = NOTHING


class SweepMethod(ABC):
    """One way to score many networks on the same data."""

    @abstractmethod
    def run(self, architectures: Iterable[Network]) -> Iterator[SweepResult]:
        """The results in order, as they come."""


def score_fields(
    scored: Sequence[LabelledInputs], squared_errors: Iterable[float], agreements: Iterable[float]
) -> dict[str, float]:
    """The fields of a result, from sums of squared errors and numbers of right classes in the
    validation set and, if there is one, the test set."""
    out = {}
    sums = zip(("", "test_"), scored, squared_errors, agreements, strict=False)
    for name, points, errors, agreed in sums:
        m, outputs = points.targets.shape
        out[f"{name}accuracy"] = float(agreed) / m if outputs > 1 else NOTHING
        out[f"{name}mse"] = float(errors) / (m * outputs)
    return out


def failure_fields(error: Exception) -> dict[str, Any]:
    """The fields of the result of a network that cannot be scored; other errors are raised."""
    if isinstance(error, NotPositiveDefiniteError):
        return {
            "noise_var": error.noise_var,
            "failed_attempts": error.failed_attempts,
            "error": str(error),
        }
    if isinstance(error, ActivationError | VarianceError):
        return {"error": str(error)}
    raise error


def check_curve(architecture: Network, input_var: float | None) -> None:
    """Raise VarianceError if the kernel of inputs that share a norm is not known: by the error of
    its deficits, or by that of K, whichever says more of M."""
    if input_var is None:
        return
    if isinstance(architecture, Headed):
        check_curve(architecture.head, 1.0)
    curve = curve_at(architecture, input_var)
    error = min(curve.deficit_error, curve.error * (1 + curve.offset))
    if not error < UNKNOWN:
        raise VarianceError(
            f"at depth {architecture.depth} the kernel is known to {error:.0e} of its scale only; "
            f"use {architecture.if_deep('a smaller depth, or ')}a weight_var nearer to where the "
            "variance stays put"
        )
