"""Forecast of a fit: seconds and bytes, before it starts, and the phases that a bar shows."""

from dataclasses import dataclass

from nngp.linsolve import Forecast
from nngp.predictors.selection.problem import CHOOSE

# Phases of the final solve by its solver, as the posterior names them, and their share of the time.
SOLVING = {
    "cholesky": {"factor": 1.0},
    "cg": {"preconditioner": 0.3, "kernel": 0.1, "cg": 0.6},
}
LEAVE_ONE_OUT = "leave one out"
KERNEL_SECONDS = 5e-8  # of a pair of points on two cores, beyond the arithmetic of the factor


@dataclass(frozen=True)
class FitForecast:
    """The choice of networks, for each the system of all points, and points left out for the
    spread of its predictions."""

    choice: float  # seconds
    final: Forecast
    left_out: float  # seconds
    networks: int = 1

    @property
    def final_seconds(self) -> float:
        return self.networks * ((self.final.seconds or 0.0) + KERNEL_SECONDS * self.final.n**2)

    @property
    def seconds(self) -> float:
        return self.choice + self.final_seconds + self.networks * self.left_out

    @property
    def phases(self) -> dict[str, float]:
        """Seconds of each phase, in their order, by the beginning of its name."""
        shares = SOLVING[self.final.solver]
        solving = {name: share * self.final_seconds for name, share in shares.items()}
        return {CHOOSE: self.choice, **solving, LEAVE_ONE_OUT: self.networks * self.left_out}
