"""The report of one conditioning: a plain record of what was done, and its warnings."""

import warnings
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np

from nngp._arrays import Array
from nngp._html import facts_table, panel
from nngp._records import NonNegative, Range, Share
from nngp.architecture import Network
from nngp.errors import ConstantKernelWarning, NoiseWarning, ToleranceWarning
from nngp.gram import KernelMatrix, warn_if_inexact
from nngp.linsolve import Engine, Forecast
from nngp.posterior.solution import GIVEN, Solution

CONSTANT = 1e-6  # of the variance: a kernel that differs less is nearly constant
SAMPLE = 128  # points whose pairs stand for all
RESIDUAL = 1e-4  # relative to the targets, above which a factor's solution gets a warning


@dataclass(frozen=True)
class Report:
    """Facts about one conditioning.

    Attributes
    ----------
    n, d, outputs : int
    engine, tile : where it was computed, and in tiles of how many rows
    method, reason : how the kernel was computed, and why so
    kernel_error : float
        Largest error of an entry of K, relative to `scale`; to the variance if K was taken whole.
    scale, offset : float
        K was taken as a constant scale · offset and a remainder of that scale, so that what tells
        inputs apart is not lost beside the constant; scale 1 and offset 0 if K was taken whole.
    variance, spread : float
        K(x, x), and how much of it tells inputs apart: K(x, x) - K(x, x') of orthogonal inputs if
        norms are equal, the largest in a sample otherwise.
    noise_var, noise_var_asked, noise_unit : float
        The variance of the noise that the factorisation took; the `noise_var` argument, in units of
        `noise_unit`: 1, or the kernel's scale for relative noise. Of noise by row, the smallest.
    noise_var_largest : float
        The largest variance of a row's noise.
    rows_raised : int
        Rows that have more noise than was asked for.
    failed_attempts : int
        Factorisations that failed. After each, rows with the smallest noise get ten times as much,
        and all others at least that.
    residual : float
        Largest |(K + noise) α - Y| over some rows of K recomputed, and how far the constant is
        from what α says it is, relative to the largest |Y|. With solver "cg": the largest residual
        of a system that was solved (targets, and the constant function), relative to the length of
        its right side, over all rows, recomputed at the end.
    factor_bytes, forecast_bytes : int
        Held by the factor, or by what CG keeps; forecast for the whole job, beyond the data.
    seconds : dict
        By phase: factor (with the kernel), solve; or kernel (tiles that are kept), preconditioner,
        cg.
    solver : {"cholesky", "cg"}
    iterations : int
        Of CG; 0 otherwise, and so for what follows.
    tolerance : float
        Tolerance of the residual.
    preconditioner : str
    rank : int
        Of the Nyström preconditioner.
    kept : float
        Share of the kernel's tiles that were kept; the others were computed in every iteration.
    cluster : dict
        On a cluster: workers and their threads, chains of tiles computed, those of them that were
        computed again as a worker was lost, those found in the store, and bytes on the workers'
        disks and in their memory (the most of one) when it was done. Empty elsewhere.
    """

    n: int
    d: int
    outputs: int
    engine: str
    tile: int
    method: str
    reason: str
    kernel_error: NonNegative
    scale: NonNegative
    offset: Annotated[float, Range(0.0, infinite=True)]
    variance: Annotated[float, Range(0.0, infinite=True)]
    spread: NonNegative
    noise_var_asked: NonNegative
    noise_unit: NonNegative
    noise_var: NonNegative
    failed_attempts: int
    residual: Share
    factor_bytes: int
    forecast_bytes: int
    noise_var_largest: NonNegative
    rows_raised: int
    seconds: dict[str, NonNegative] = field(default_factory=dict)
    solver: str = "cholesky"
    iterations: int = 0
    tolerance: Share = 0.0
    preconditioner: str = ""
    rank: int = 0
    kept: Share = 0.0
    cluster: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The record as a dictionary of plain values."""
        return asdict(self)

    @property
    def summary(self) -> dict[str, object]:
        """The most important facts, with units."""
        return {
            "data": f"{self.n:,} points, {self.d} inputs, {self.outputs} output(s)",
            "solver": f"{self.solver} on {self.engine}"
            + (f", {self.iterations} iterations" if self.iterations else ""),
            "kernel": f"{self.method}, error {self.kernel_error:.1e} of the variance",
            "residual": f"{self.residual:.1e}",
            "noise variance": self.noise_var,
            "time": f"{sum(self.seconds.values()):.2g} s",
        }

    def _repr_html_(self) -> str:
        """The summary, and the whole record folded, for notebooks."""
        return panel(
            "Report", facts_table(self.summary), ("all facts", facts_table(self.as_dict()))
        )


def describe(
    engine: Engine,
    matrix: KernelMatrix,
    solution: Solution,
    Y: Array,
    d: int,
    expected: Forecast,
) -> Report:
    """The report on a solved system, with a look at its residual."""
    variance, spread = _spread(engine, matrix)
    noise = solution.noise
    return Report(
        n=len(Y),
        d=d,
        outputs=Y.shape[1],
        engine=engine.name,
        tile=engine.tile_size(len(Y)),
        method=matrix.plan.method,
        reason=matrix.plan.reason,
        scale=solution.split.scale,
        offset=solution.split.whole_offset,
        variance=variance,
        spread=spread,
        noise_var_asked=float(np.min(noise.stated)),
        noise_unit=noise.unit,
        noise_var=noise.least,
        noise_var_largest=noise.largest,
        rows_raised=noise.rows_raised(len(Y)),
        failed_attempts=solution.failed_attempts,
        residual=solution.residual(engine, matrix, Y),
        kernel_error=matrix.error(),
        factor_bytes=solution.bytes,
        forecast_bytes=expected.bytes,
        seconds=solution.seconds,
        cluster=dict(engine.facts()),
        **solution.facts,
    )


def _spread(engine: Engine, matrix: KernelMatrix) -> tuple[float, float]:
    """K(x, x), and how much of it differs between inputs."""
    split = matrix.split
    if not split.is_trivial:
        return split.prior, split.scale
    diagonal = matrix.diagonal[:SAMPLE]
    some = slice(0, len(diagonal))
    with engine.run() as run:
        K = run.fetch(run.chain(partial(matrix.block, some, some)))
    deficits = 0.5 * (diagonal[:, None] + diagonal) - K
    return float(np.max(matrix.diagonal)), max(float(deficits.max()), 0.0)


def warn(report: Report, network: Network, stacklevel: int) -> None:
    """Warn of everything in a report that users should not overlook."""
    unit = "the variance" if report.offset == 0 and report.scale == 1 else "the kernel's scale"
    warn_if_inexact(report.kernel_error, stacklevel + 1, unit)
    almost_constant = report.spread <= CONSTANT * report.variance
    vanished = report.n * report.variance <= CONSTANT * report.noise_var
    covered = report.noise_var > report.n * report.spread
    if report.n > 1 and covered and (almost_constant or vanished):
        deep = network.if_deep("a smaller depth, variances nearer to criticality")
        remedy = deep or ("another kernel" if report.method == GIVEN else "a larger weight_var")
        warnings.warn(
            f"the kernel has become constant: of its variance {report.variance:.1e} only "
            f"{report.spread:.0e} depends on the input, and noise_var {report.noise_var:.0e} "
            f"covers that; use {remedy}, or relative_noise=True",
            ConstantKernelWarning,
            stacklevel=stacklevel,
        )
    if report.failed_attempts:
        used = report.noise_var / report.noise_unit
        of = "" if report.noise_unit == 1 else " (of the kernel's scale)"
        fails = (
            "the Cholesky factorisation fails"
            if report.solver == "cholesky"
            else "the matrix is not positive definite in float64"
        )
        raised, n = report.rows_raised, report.n
        where = "" if raised == n else f" in {raised} of {n} rows, which had less"
        warnings.warn(
            f"noise_var was raised from {report.noise_var_asked:.1g} to {used:.1g}{of}{where}: "
            f"with less {fails} (duplicates, a nearly constant kernel, or one of low rank)",
            NoiseWarning,
            stacklevel=stacklevel,
        )
    if not report.residual <= (report.tolerance or RESIDUAL):
        asked = "a smaller tolerance or " if report.solver == "cg" else ""
        warnings.warn(
            f"the solution leaves a residual of {report.residual:.1e} of the targets: the kernel "
            f"matrix is too ill-conditioned for this noise; pass {asked}a larger noise_var",
            ToleranceWarning,
            stacklevel=stacklevel,
        )
