"""Cost of a fit: bytes of the final solve, said before it starts, and the work of each phase, by
which a bar moves."""

from dataclasses import dataclass

from nngp.linsolve import Forecast
from nngp.selection.cost import LOOK_UP
from nngp.selection.problem import CHOOSE

# Phases of the final solve by its solver, as the posterior names them, and their share of it.
SOLVING = {
    "cholesky": {"factor": 1.0},
    "cg": {"preconditioner": 0.3, "kernel": 0.1, "cg": 0.6},
}
LEAVE_ONE_OUT = "leave one out"
READ = 2000  # multiplications in the time that all iterations of CG take for a number they read


@dataclass(frozen=True)
class FitForecast:
    """The choice of networks, for each the system of all points, and held-out points for the
    spread of its predictions. Work is counted in multiplications."""

    choice: float  # work
    final: Forecast
    left_out: int  # rows
    columns: int
    products: int = 1  # of the inputs, for a kernel
    networks: int = 1

    @property
    def phases(self) -> dict[str, float]:
        """Work of each phase, in their order, by the beginning of its name."""
        n = self.final.n
        each = n / 6 if self.final.solver == "cholesky" else READ
        work = self.networks * self._solve(n, each)
        solving = {name: share * work for name, share in SOLVING[self.final.solver].items()}
        left_out = self.networks * self._solve(self.left_out, self.left_out / 6)
        return {CHOOSE: self.choice, **solving, LEAVE_ONE_OUT: left_out}

    def _solve(self, n: int, each: float) -> float:
        """Work of a kernel and its solve, which takes so much for each pair."""
        return float(n) ** 2 * (each + self.products * (self.columns + LOOK_UP) / 2)
