"""What was done, as a plain record."""

import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.curve import ToleranceWarning
from nngp.gram import warn_if_inexact
from nngp.linsolve import Engine, Forecast
from nngp.posterior.system import KernelBlocks, System, residual

Array = NDArray[np.float64]
RESIDUAL = 1e-3  # relative to the targets, above which a warning is given


@dataclass(frozen=True)
class Report:
    """Facts about one conditioning.

    Attributes
    ----------
    n, d, outputs : int
    engine, tile : where it was computed, and in tiles of how many rows
    method, reason : how the kernel was computed, and why so
    kernel_error : float
        Largest error of an entry of K, relative to the variance.
    noise_var, noise_var_asked : float
        The noise that the factorisation took, and the one asked for.
    failed_attempts : int
        Factorisations that failed, each followed by ten times the noise.
    residual : float
        Largest |(K + noise) α - Y| over some rows of K computed anew, relative to the largest |Y|.
    factor_bytes, forecast_bytes : int
        Held by the factor; forecast for the whole job, beyond the data.
    forecast_seconds : float
        What was forecast for the factor from a measured rate (0: too small to ask).
    seconds : dict
        By phase: factor (with the kernel), solve.
    """

    n: int
    d: int
    outputs: int
    engine: str
    tile: int
    method: str
    reason: str
    kernel_error: float
    noise_var_asked: float
    noise_var: float
    failed_attempts: int
    residual: float
    factor_bytes: int
    forecast_bytes: int
    forecast_seconds: float
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The record as a dictionary of plain values."""
        return asdict(self)


def describe(
    engine: Engine,
    blocks: KernelBlocks,
    system: System,
    Y: Array,
    d: int,
    asked: float,
    expected: Forecast,
) -> Report:
    """The report on a solved system, with a look at its residual."""
    return Report(
        n=len(Y),
        d=d,
        outputs=Y.shape[1],
        engine=engine.name,
        tile=engine.tile_size(len(Y)),
        method=blocks.plan.method,
        reason=blocks.plan.reason,
        noise_var_asked=asked,
        noise_var=system.factor.noise_var,
        failed_attempts=system.failed_attempts,
        residual=residual(engine, blocks, system, Y),
        kernel_error=blocks.error(),
        factor_bytes=system.factor.bytes,
        forecast_bytes=expected.bytes,
        forecast_seconds=expected.seconds,
        seconds=system.seconds,
    )


class NoiseWarning(UserWarning):
    """More noise was used than asked for, because the Cholesky factorisation failed."""


def warn(report: Report, stacklevel: int) -> None:
    """Say what the user should not overlook."""
    warn_if_inexact(report.kernel_error, stacklevel + 1)
    if report.failed_attempts:
        warnings.warn(
            f"noise_var was raised from {report.noise_var_asked:.1g} to {report.noise_var:.1g}: "
            "with less the Cholesky factorisation fails (duplicates, or a nearly constant kernel)",
            NoiseWarning,
            stacklevel=stacklevel,
        )
    if not report.residual <= RESIDUAL:
        warnings.warn(
            f"the solution leaves a residual of {report.residual:.1e} of the targets: the kernel "
            "matrix is too ill-conditioned for this noise; pass a larger noise_var",
            ToleranceWarning,
            stacklevel=stacklevel,
        )
