"""What was done, as a plain record."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
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
    factor_bytes, peak_bytes : int
        Held by the factor; forecast for the whole job, beyond the data.
    forecast_seconds : float
        What was forecast for the factor from a measured rate (0: too small to ask).
    seconds : dict
        By phase.
    """

    n: int
    d: int
    outputs: int
    engine: str
    tile: int
    method: str
    reason: str
    noise_var_asked: float
    noise_var: float = 0.0
    failed_attempts: int = 0
    kernel_error: float = 0.0
    residual: float = 0.0
    factor_bytes: int = 0
    peak_bytes: int = 0
    forecast_seconds: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The record as a dictionary of plain values."""
        return asdict(self)
