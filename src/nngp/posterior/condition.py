"""Conditioning on data: checks, forecast, factorisation, solve, and a report of it all."""

import warnings
from dataclasses import replace

from numpy.typing import ArrayLike

from nngp._machine import single_threaded_blas, threads
from nngp._numbers import whole_number
from nngp._progress import Callback
from nngp.architecture import Network
from nngp.architecture.planes import PlanePlan
from nngp.errors import LongJobWarning
from nngp.gram import check_network, image_bytes
from nngp.linsolve import (
    CG,
    Engine,
    Forecast,
    forecast_cg,
    forecast_factor,
    pick_engine,
)
from nngp.linsolve.tiling import flops
from nngp.posterior.by_cg import CGProblem, solve_by_cg
from nngp.posterior.by_cholesky import solve_by_cholesky
from nngp.posterior.noise import Noise
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import describe, warn
from nngp.posterior.setup import (
    Problem,
    Resources,
    as_targets,
    check_solver,
    choose_solver,
    find_engine,
    kernels_of,
)
from nngp.posterior.solution import Solution


@single_threaded_blas()
def condition(
    network: Network,
    X: ArrayLike,
    Y: ArrayLike,
    *,
    noise_var: ArrayLike = 1e-10,
    relative_noise: bool = False,
    solver: str | CG = "auto",
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Callback | bool | None = None,
) -> Posterior:
    """Condition the network's Gaussian process on data (paper, sec. 2.4).

    Parameters
    ----------
    network : Network
    X : array_like, (n, d), or path
        A large float64 array is not copied: leave it alone while the posterior is in use. (If it
        was changed, the posterior says so.) The path of a .npy file; with a `DaskEngine` also that
        of a zarr array, or a dask array.
    Y : array_like, (n,) or (n, outputs)
        Many outputs share one kernel, so they cost one factorisation.
    noise_var : float or array_like, (n,)
        Variance of the observation noise: one number, or one for each row, zeros allowed. If the
        Cholesky factorisation fails, the smallest is multiplied by ten, all rows with less than
        that are raised to it, and it is tried again, up to 0.2; `report` says what was used.
    relative_noise : bool
        Take `noise_var` in units of the kernel's own scale, K(x, x) - K(x, x') of orthogonal
        inputs. In a deep network that scale may be 1e-100: noise of any usual variance then
        covers all that the network knows (and a warning says so), noise relative to it does not.
    solver : {"auto", "cholesky", "cg"} or CG
        A Cholesky factor (half of n² numbers are held), or preconditioned conjugate gradients,
        which need neither that memory nor n³ operations; `nngp.CG` has its options. "auto" takes
        the factor while it fits. Without a factor there is no evidence and no leave-one-out.
    engine : {"auto", "cpu", "gpu"} or engine
        "auto" takes a GPU if JAX sees one and there are 4,000 points or more (`forecast` says
        where a problem goes). A `DaskEngine` computes on the workers of a cluster.
    memory : int, optional
        The most bytes to use beyond the data; what is free by default.
    progress : callable or bool, optional
        Called with a `Step` (phase, done, seconds) as work proceeds, here and in the
        posterior's own methods. By default a bar appears on a terminal once a phase has taken
        a few seconds (and `rich` is installed); False for none. True shows it at once, and
        prints a line now and then where there is no terminal.

    Returns
    -------
    Posterior

    Warns
    -----
    NoiseWarning
        If the noise had to be raised.
    ToleranceWarning
        If entries of the kernel may be off by more than 1e-9 of its scale, or the solution
        leaves a large residual.
    ConstantKernelWarning
        If the kernel has become constant: noise covers the little that still tells inputs apart.

    Raises
    ------
    MemoryError
        Before any work, if it cannot fit; it says how many points would.
    NotPositiveDefiniteError
        If even the largest noise did not help; it says why.
    NotConvergedError
        If conjugate gradients missed their tolerance; it says how far they came.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> posterior = nngp.condition(nngp.Architecture(2, "erf", 4.0, 0.5), X, np.sin(3 * X[:, 0]))
    >>> bool(abs(posterior.mean([[0.33]])[0] - np.sin(0.99)) < 1e-4)
    True
    >>> posterior.variance([[0.33], [5.0]]).round(3).tolist()
    [0.0, 0.321]
    """
    check_network(network)
    check_solver(solver)
    inputs = kernels_of(engine).inputs(X)
    targets, single = as_targets(Y, len(inputs))
    noise = Noise.of(noise_var, relative_noise, network, inputs)
    outputs = targets.shape[1]
    chosen, expected = find_engine(engine, inputs, outputs, memory, network, solver=solver)
    problem = Problem(network, inputs, Resources(chosen, memory, progress))
    matrix = problem.matrix()
    options = choose_solver(solver, expected)
    solution: Solution
    if options is not None:
        with_options = CGProblem(network, inputs, problem.resources, options)
        solution, expected = solve_by_cg(with_options, matrix, targets, noise)
    else:
        edges = chosen.edges(matrix)
        with problem.resources.track(f"factor ({expected})", flops(edges)) as tracker:
            solution = solve_by_cholesky(chosen, matrix, edges, targets, noise, tracker)
    report = describe(chosen, matrix, solution, targets, inputs.shape[1], expected)
    warn(report, network, stacklevel=4)
    return Posterior(problem, targets, single, solution, report)


def forecast(
    n: int,
    d: int,
    outputs: int = 1,
    *,
    network: Network | None = None,
    solver: str | CG = "cholesky",
    engine: str | Engine = "auto",
    memory: int | None = None,
) -> Forecast:
    """Bytes that `condition` would take for n points, and the largest n that fits.

    A factor takes the same memory for all networks. Activations without a closed form take more
    where inputs differ in norm: their tables, which `condition` counts in, are not part of this
    forecast. Conjugate gradients (`solver="cg"`; "auto" takes them where a factor does not fit)
    keep as much as fits; how large their preconditioner is depends on the `network` where that is
    an `nngp.Invariant`, whose kernel takes a matrix of inner products for each transformation.
    `engine` and `reason` say where it would be computed and why. How long it takes is shown by
    `progress` once a part of the work is done, and not forecast; only for networks of images there
    is an estimate, `kernel_seconds`, and the number of `planes` that a pair takes: it grows with
    the pixels, the layers and the windows of pooling. A warning says where that is days.

    Examples
    --------
    >>> import nngp
    >>> nngp.forecast(1000, 10, engine="cpu").bytes < 100e6
    True
    """
    check_solver(solver)
    products = 1
    if network is not None:
        check_network(network)
        products = network.products(whole_number("d", d))
    picked = pick_engine(engine, whole_number("n", n))
    chosen = picked.engine
    fixed = 0 if network is None else image_bytes(network)
    direct = forecast_factor(chosen, n, d, outputs, memory, lambda n: fixed)
    options, found = choose_solver(solver, direct), direct
    if options is not None:
        expected = forecast_cg(chosen, n, d, outputs, options, memory, products)
        found = replace(expected, solver="cg")
    if network is not None and network.base.planes is not None:
        found = _of_images(found, network.base.planes, products)
    return replace(found, engine=chosen.name, reason=picked.reason)


SECONDS_PER_NUMBER = 3e-9  # of a core, behind one operation of a network of images
DAY = 86_400.0


def _of_images(found: Forecast, plan: PlanePlan, terms: int) -> Forecast:
    """With the planes, and the time of the kernel matrix; warns where that is days."""
    numbers = 0.5 * float(found.n) ** 2 * plan.work * terms
    seconds = numbers * SECONDS_PER_NUMBER / threads()
    if seconds > DAY:
        warnings.warn(
            f"the kernel of {found.n:,} images takes about {seconds / DAY:.0f} days on this "
            f"machine: {plan.planes} planes of positions a pair; use fewer or smaller images, "
            "smaller pooling windows, nngp.Flatten in place of nngp.GlobalAvgPool, or a GPU",
            LongJobWarning,
            stacklevel=3,
        )
    return replace(found, planes=plan.planes, kernel_seconds=seconds)
