"""A sweep's networks some at a time, as one program on a device: data whose kernel is one square.

Tiles are for matrices that fill a device. Below that, what costs is asking: the device is idle
whenever the host waits for an answer before it says what comes next. So here a group of networks
is one program (look-up, factor, solve, means, scores, one network after the other), the next group
is queued before the last is read, and the host reads a handful of numbers of each network. What is
kept of the data is the signed gap of every pair, so that one look-up serves all pairs, near ones
included. The algebra is that of `constant`.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.curve import AngularCurve, curve_at
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import Inputs, KernelSplit, kernel_blocks
from nngp.gram.device.blocks import DEEP
from nngp.gram.device.gaps import gap_values, signed_gaps
from nngp.linsolve import CpuEngine, Engine, climb
from nngp.posterior.constant import Constant
from nngp.posterior.failures import no_factor
from nngp.posterior.noise import Noise
from nngp.posterior.sweep_result import Points, SweepResult, scores
from nngp.posterior.system import check_curve, check_noise, evidence

Array = NDArray[np.float64]
GROUP = 10  # networks in a program
ROWS = 10_000  # whose gaps are computed at a time
ALIGNED = 16  # rows of a matrix are a multiple of this: it is much slower otherwise
BLOCK, BLOCKS_FROM = 500, 2000  # rows
BORDER = 1e100  # diagonal below the targets: larger than any |L⁻¹y|²


@dataclass(frozen=True)
class _Asked:
    """A network and what it is asked with."""

    architecture: Architecture
    curve: AngularCurve
    split: KernelSplit
    noise: Noise


Group = list[_Asked | SweepResult]  # the latter for a network that cannot be asked, and why


class QueuedSweep:
    """The gaps on the device, and programs on them. Inputs share the norm `input_var`."""

    def __init__(
        self,
        engine: Engine,
        inputs: Inputs,
        Y: Array,
        asked: Sequence[Points],
        noise: tuple[float, bool],
        input_var: float,
    ) -> None:
        self._engine, self._inputs, self._noise = engine, inputs, noise
        self._points, self._input_var = asked, input_var
        self._middle = np.median(Y, axis=0)
        self._ends = tuple(np.cumsum([len(points.inputs) for points in asked]).tolist())
        with engine.run() as run:
            own, near = signed_gaps(inputs.on_device, inputs.on_device, symmetric=True)
            self._own = _bordered(own, len(self._middle) + 1)
            found = [_gaps(points.inputs, inputs) for points in asked]
            self._cross = jnp.concatenate([gaps for gaps, _ in found])
            self._targets = run.put(np.column_stack([Y - self._middle, np.ones(len(Y))]))
            self._answers = run.put(np.concatenate([points.targets for points in asked]))
            self._nearest = min(float(gap) for gap in (near, *(gap for _, gap in found)))

    @staticmethod
    def bytes(n: int, m: int) -> int:
        """For n training and m other points: gaps, kernels, and the factor with its copies."""
        return 8 * (5 * n * n + 3 * n * m)

    @property
    def suits(self) -> bool:
        """Whether the table goes down to the nearest pair."""
        return self._nearest > 2.0**-DEEP

    def run(self, architectures: Iterable[Architecture]) -> Iterator[SweepResult]:
        """The results in order, a group at a time, when the next one is queued."""
        left, before = iter(architectures), (Group(), None)
        while group := [self._asked(architecture) for architecture in islice(left, GROUP)]:
            now = group, self._begin(group)
            yield from self._results(*before)
            before = now
        yield from self._results(*before)

    def _asked(self, architecture: Architecture) -> _Asked | SweepResult:
        try:
            curve = curve_at(architecture, self._input_var)
            split, noise = KernelSplit.of(curve), Noise.of(*self._noise, architecture, self._inputs)
            if split.is_trivial:
                raise VarianceError(
                    "the kernel is constant to below 1e-290 of its variance; use a smaller depth"
                )
            check_noise(noise, split)
            check_curve(architecture, self._input_var)
        except (ActivationError, VarianceError) as error:
            return SweepResult(architecture, error=str(error))
        return _Asked(architecture, curve, split, noise)

    def _begin(self, group: Group, noise_var: float | None = None) -> Any:
        """Queue the networks of a group; there is always room for all of one."""
        nets = [_as_numbers(asked, noise_var) for asked in group if isinstance(asked, _Asked)]
        if not nets:
            return None
        size = 1 if len(nets) == 1 else GROUP
        nets += nets[-1:] * (size - len(nets))
        columns = [np.stack(column) for column in zip(*nets, strict=True)]
        with self._engine.run():
            return _scores(
                self._own,
                self._cross,
                self._targets,
                self._answers,
                self._middle,
                columns,
                ends=self._ends,
            )

    def _results(self, group: Group, numbers: Any) -> Iterator[SweepResult]:
        start, found = time.perf_counter(), iter(() if numbers is None else np.asarray(numbers))
        for asked in group:
            if isinstance(asked, SweepResult):
                yield asked
                continue
            fields = self._climbed(asked, next(found))
            now = time.perf_counter()
            yield SweepResult(asked.architecture, seconds=now - start, **fields)
            start = time.perf_counter()

    def _climbed(self, asked: _Asked, first: Array) -> dict[str, Any]:
        """The fields of a result, with more noise if need be."""
        noise = asked.noise

        def attempt(stated: float) -> Array:
            more = stated * noise.unit
            found = first if stated == noise.stated else np.asarray(self._begin([asked], more))[0]
            if not np.isfinite(found).all():
                raise NotPositiveDefiniteError
            return found

        try:
            found, stated, failed = climb(attempt, noise.stated)
            fields = self._fields(found, asked.split)
        except NotPositiveDefiniteError as error:
            noise_var = error.noise_var * noise.unit
            blocks = kernel_blocks("host", asked.architecture, self._inputs)
            return {
                "noise_var": noise_var,
                "failed_attempts": error.failed_attempts,
                "error": no_factor(CpuEngine(), blocks, noise_var),
            }
        except VarianceError as error:
            return {"error": str(error)}
        return {**fields, "noise_var": stated * noise.unit, "failed_attempts": failed}

    def _fields(self, found: Array, split: KernelSplit) -> dict[str, Any]:
        outputs = len(self._middle)
        (log_det, fit, beta), sums = found[:3], found[3 : 3 + outputs]
        constant = Constant(split, float(beta), sums + self._middle * beta)
        wrong, right = np.split(found[3 + outputs :], 2)
        log_evidence = evidence(split, constant, fit, log_det, len(self._inputs), outputs)
        return {"log_evidence": log_evidence, **scores(self._points, wrong, right)}


def _as_numbers(asked: _Asked, noise_var: float | None) -> tuple[Any, ...]:
    """A network as its program takes it: M as a function of the gap, noise, offset."""
    profile = asked.split.profile(asked.curve)
    noise_var = asked.noise.variance if noise_var is None else noise_var
    return (
        profile.deficit.coefs[:, :DEEP],
        profile.at_one - profile.deficit.ends[1],
        noise_var / asked.split.scale,
        asked.split.offset,
    )


def _bordered(own: Any, rows: int) -> Any:
    """Room below the matrix for the targets: what is factored there is L⁻¹Y."""
    more = rows + -(len(own) + rows) % ALIGNED
    return jnp.pad(own, (0, more), constant_values=1.0)  # a right angle: M is 0


def _gaps(other: Inputs, inputs: Inputs) -> tuple[Any, Any]:
    """Between two sets, and the smallest."""
    parts = [
        signed_gaps(other.on_device[start : start + ROWS], inputs.on_device, symmetric=False)
        for start in range(0, len(other), ROWS)
    ]
    gaps, nearest = zip(*parts, strict=True)
    return jnp.concatenate(gaps), jnp.stack(nearest).min()


@partial(jax.jit, static_argnames="ends")
def _scores(
    own: Any,
    cross: Any,
    targets: Any,
    answers: Any,
    middle: Any,
    networks: list[Any],
    *,
    ends: tuple[int, ...],
) -> Any:
    """For each network log det of M + shift, the fit, β, bᵀ(Y - middle), squared errors and right
    classes; not finite where there is no factor."""

    def score(network: list[Any]) -> Any:
        coefs, at_minus_one, shift, offset = network
        M = gap_values(coefs, 1.0, at_minus_one, own)
        log_det, z, alpha = _solved(M, shift, targets)
        one = z[:, -1]
        beta, sums = one @ one, one @ z[:, :-1]
        variance = 1.0 / (1.0 / offset + beta)
        apart = variance * sums - middle / (1.0 + offset * beta)
        weights = alpha[:, :-1] - alpha[:, -1:] * apart
        rest = z[:, :-1] - one[:, None] * apart
        mean = gap_values(coefs, 1.0, at_minus_one, cross) @ weights
        mean = mean + variance * (sums + middle * beta)
        wrong = ((mean - answers) ** 2).sum(axis=1)
        right = (mean.argmax(axis=1) == answers.argmax(axis=1)).astype(wrong.dtype)
        parts = [jnp.split(rows, ends[:-1]) for rows in (wrong, right)]
        counts = [jnp.stack([part.sum() for part in both]) for both in parts]
        return jnp.concatenate([jnp.stack([log_det, (rest * rest).sum(), beta]), sums, *counts])

    return lax.map(score, networks)


def _solved(M: Any, shift: Any, targets: Any) -> tuple[Any, Any, Any]:
    """log det of M + shift, L⁻¹Y and its solution; M has room for the targets below it, so that
    the factorisation solves for them on its way."""
    n, more = len(targets), len(M) - len(targets)
    M = lax.dynamic_update_slice(M, targets.T, (n, 0))
    M = M + jnp.diag(jnp.concatenate([jnp.full(n, shift), jnp.full(more, BORDER)]))
    L = lax.linalg.cholesky(M, symmetrize_input=False)
    z, own = L[n : n + targets.shape[1], :n], L[:n, :n]
    solve = _by_blocks if n >= BLOCKS_FROM else _at_once
    return 2.0 * jnp.log(jnp.diagonal(own)).sum(), z.T, solve(own, z).T


def _at_once(L: Any, z: Any) -> Any:
    """z L⁻¹."""
    return lax.linalg.triangular_solve(L, z, left_side=False, lower=True)


def _by_blocks(L: Any, z: Any) -> Any:
    """z L⁻¹ from the inverses of diagonal blocks, the last first: a few rows in z leave a device
    idle in a plain solve. Where blocks do not divide n, the first two overlap."""
    n, count = len(L), -(-len(L) // BLOCK)
    size = -(-n // count)
    starts = jnp.maximum(n - size * jnp.arange(1, count + 1), 0)
    blocks = jax.vmap(lambda start: lax.dynamic_slice(L, (start, start), (size, size)))(starts)
    ones = jnp.broadcast_to(jnp.eye(size), blocks.shape)
    inverses = lax.linalg.triangular_solve(blocks, ones, left_side=True, lower=True)

    def step(solved: Any, block: Any) -> tuple[Any, None]:
        start, inverse = block
        solved = lax.dynamic_update_slice_in_dim(solved, nothing, start, axis=1)
        known = solved @ lax.dynamic_slice_in_dim(L, start, size, axis=1)
        own = (lax.dynamic_slice_in_dim(z, start, size, axis=1) - known) @ inverse
        return lax.dynamic_update_slice_in_dim(solved, own, start, axis=1), None

    nothing = jnp.zeros((len(z), size))
    return lax.scan(step, jnp.zeros_like(z), (starts, inverses))[0]
