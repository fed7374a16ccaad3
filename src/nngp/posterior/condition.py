"""Conditioning on data: checks, forecast, factorisation, solve, and a report of it all."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.architecture import Architecture
from nngp.gram import Inputs, check_architecture, kernel_blocks, warn_if_inexact
from nngp.linsolve import (
    LIMIT,
    Engine,
    Forecast,
    NotPositiveDefiniteError,
    Progress,
    choose_engine,
    forecast_factor,
    progress_for,
)
from nngp.linsolve.cholesky import cut, flops
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.system import KernelBlocks, System, solve
from nngp.posterior.targets import as_noise, as_targets

Array = NDArray[np.float64]
CHECKED_ROWS = 64  # of K, computed anew for the residual


def condition(
    architecture: Architecture,
    X: ArrayLike,
    Y: ArrayLike,
    *,
    noise_var: float = 1e-10,
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Any = None,
) -> Posterior:
    """Condition the network's Gaussian process on data (paper, sec. 2.4).

    Parameters
    ----------
    architecture : Architecture
    X : array_like, (n, d)
    Y : array_like, (n,) or (n, outputs)
        Many outputs share one kernel, so they cost one factorisation.
    noise_var : float
        Variance of the observation noise. If the Cholesky factorisation fails it is multiplied
        by ten and tried again, up to 0.2; `report` says what was used.
    engine : {"auto", "cpu", "gpu"}
        "auto" takes a GPU if JAX sees one and the data are worth it.
    memory : int, optional
        The most bytes to use beyond the data; what is free by default.
    progress : callable or bool, optional
        Called with a `Step` as work proceeds. By default a bar appears on a terminal when the
        job takes longer than a few seconds (and `rich` is installed); False for none.

    Returns
    -------
    Posterior

    Raises
    ------
    MemoryError
        Before any work, if it cannot fit; it says how many points would.
    NotPositiveDefiniteError
        If even the largest noise did not help; it says why.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 20)
    >>> posterior = nngp.condition(nngp.Architecture(2, "erf", 4.0, 0.5), X, np.sin(3 * X))
    >>> bool(abs(posterior.mean([0.33])[0] - np.sin(0.99)) < 1e-4)
    True
    >>> posterior.variance([0.33, 5.0]).round(3).tolist()
    [0.0, 0.321]
    """
    check_architecture(architecture)
    inputs = Inputs.of(X)
    targets, single = as_targets(Y, len(inputs))
    noise_var = as_noise(noise_var)
    chosen = choose_engine(engine, len(inputs))
    n, d = inputs.X.shape
    expected = forecast_factor(chosen, n, d, targets.shape[1], memory)
    expected.check()
    report = _begin(inputs, targets, chosen, expected, noise_var)
    with _timed(report, "prepare"):
        blocks = kernel_blocks(chosen.where, architecture, inputs)
    report.method, report.reason = blocks.plan.method, blocks.plan.reason
    edges = cut(len(inputs), report.tile)
    callback = progress_for(progress, expected.seconds)
    try:
        tracker = Progress(f"factor ({expected})", flops(edges), callback, expected.seconds)
        system = solve(chosen, blocks, edges, targets, noise_var, tracker)
    except NotPositiveDefiniteError:
        raise NotPositiveDefiniteError(_why(architecture, inputs, blocks, noise_var)) from None
    finally:
        getattr(callback, "close", lambda: None)()
    report.seconds |= system.seconds
    with _timed(report, "check"):
        report.residual = _residual(chosen, blocks, system, targets)
    report.noise_var, report.factor_bytes = system.factor.noise_var, system.factor.bytes
    report.failed_attempts = system.failed_attempts
    report.kernel_error = blocks.error()
    warn_if_inexact(report.kernel_error, stacklevel=3)
    return Posterior(architecture, inputs, targets, single, chosen, system, report)


def forecast(
    n: int, d: int, outputs: int = 1, *, engine: str | Engine = "auto", memory: int | None = None
) -> Forecast:
    """Bytes and seconds that `condition` would take for n points, and the largest n that fits.

    The seconds are those of the factorisation, from a rate measured now.

    Examples
    --------
    >>> import nngp
    >>> nngp.forecast(1000, 10, engine="cpu").bytes < 100e6
    True
    """
    return forecast_factor(choose_engine(engine, n), n, d, outputs, memory)


def _begin(
    inputs: Inputs, targets: Array, engine: Engine, expected: Forecast, noise_var: float
) -> Report:
    n, d = inputs.X.shape
    return Report(
        n=n,
        d=d,
        outputs=targets.shape[1],
        engine=engine.name,
        tile=engine.tile_size(n),
        method="",
        reason="",
        noise_var_asked=noise_var,
        peak_bytes=expected.bytes,
        forecast_seconds=expected.seconds,
    )


@contextmanager
def _timed(report: Report, phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    report.seconds[phase] = time.perf_counter() - start


def _residual(engine: Engine, blocks: KernelBlocks, system: System, targets: Array) -> float:
    """max |(K + noise) α - Y| over some rows of K computed anew, relative to max |Y|."""
    n, factor = len(targets), system.factor
    count = min(CHECKED_ROWS, n)
    start = int(np.random.default_rng(0).integers(0, n - count + 1))
    rows = slice(start, start + count)
    with engine.run() as run:
        handles = [
            run.apply(_part, blocks, rows, columns, factor.noise_var, alpha)
            for columns, alpha in zip(factor.slices, system.alpha, strict=True)
        ]
        fitted = np.sum([np.asarray(run.wait(handle)) for handle in handles], axis=0)
    largest = float(np.abs(targets).max())
    return float(np.abs(fitted - targets[rows]).max()) / (largest if largest > 0 else 1.0)


def _part(blocks: KernelBlocks, rows: slice, columns: slice, shift: float, alpha: Any) -> Any:
    return blocks.block(rows, columns, shift=shift) @ alpha.T


def _why(architecture: Architecture, inputs: Inputs, blocks: KernelBlocks, noise_var: float) -> str:
    """The likely cause of a matrix without a factor, and the remedy."""
    head = (
        f"the kernel matrix has no Cholesky factor even with noise_var {max(noise_var, LIMIT):g}: "
    )
    sample = slice(0, min(len(inputs), 200))
    K = np.asarray(blocks.block(sample, sample))
    spread, size = float(K.max() - K.min()), float(np.abs(K).max())
    if spread <= 1e-12 * size:
        return head + (
            f"at depth {architecture.depth} the kernel has become constant (its entries differ by "
            f"{spread / max(size, 1e-300):.0e} of the variance); use a smaller depth, other "
            "variances, or a larger noise_var"
        )
    duplicates = len(inputs) - len(np.unique(inputs.X, axis=0))
    if duplicates:
        return head + (
            f"X holds {duplicates} duplicated row(s); drop them or pass a larger noise_var"
        )
    return head + (
        f"its variance is {size:.1e}, far above the noise; pass a larger noise_var or rescale "
        "the network"
    )
