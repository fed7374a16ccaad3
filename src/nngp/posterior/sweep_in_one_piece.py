"""A sweep's networks some at a time, as one program on a device: data whose kernel is one square.

Tiles are for matrices that fill a device. Below that, the device is idle whenever the host waits
for an answer before it says what comes next. So here a group of networks is one program (look-up,
factor, solve, means, scores, one network after the other), the next group is queued before the
last is read, and the host reads a handful of numbers of each network. The data are kept as the
signed gap of every pair, so that one look-up serves all pairs, near ones included. The algebra is
that of `constant.py`.
"""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Network
from nngp.curve import AngularCurve, curve_at
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import HostBackend, Inputs, KernelSplit
from nngp.gram.device.arrays import unit_rows
from nngp.gram.device.gaps import gap_values, signed_gaps
from nngp.gram.device.profiles import DEEP
from nngp.gram.device.programs import program
from nngp.linsolve import CpuEngine, climb
from nngp.posterior.constant import (
    Constant,
    log_evidence,
    posterior_variance,
    shift_from_middle,
    uncentred_sums,
)
from nngp.posterior.failures import no_factor
from nngp.posterior.noise import Noise
from nngp.posterior.sweep_scores import (
    SweepData,
    SweepMethod,
    SweepResult,
    check_curve,
    failure_fields,
    score_fields,
)
from nngp.posterior.targets import middle_of

GROUP = 10  # networks in a program
ROWS = 10_000  # whose gaps are computed at a time
ALIGNED = 16  # rows of a matrix are a multiple of this: it is much slower otherwise
BLOCK, BLOCKS_FROM = 500, 2000  # rows
BORDER = 1e100  # diagonal below the targets: larger than any |L⁻¹y|²


@dataclass(frozen=True)
class _Network:
    """A network, its curve, and the noise to begin with."""

    architecture: Network
    curve: AngularCurve
    split: KernelSplit
    noise: Noise


Group = list[_Network | SweepResult]  # the latter for a network that cannot be computed, and why


class OnePieceSweep(SweepMethod):
    """The gaps on the device, and programs on them. Inputs share the norm `input_var`."""

    def __init__(self, data: SweepData, input_var: float) -> None:
        inputs, Y = data.train
        self._data, self._engine, self._input_var = data, data.engine, input_var
        self._middle = middle_of(Y)
        sizes = [len(points.inputs) for points in data.scored]
        self._ends = tuple(np.cumsum(sizes).tolist())
        with self._engine.run() as run:
            rows = unit_rows(inputs)
            own, near = signed_gaps(rows, rows, symmetric=True)
            self._own = _bordered(own, len(self._middle) + 1)
            found = [_gaps(points.inputs, inputs) for points in data.scored]
            self._cross = jnp.concatenate([gaps for gaps, _ in found])
            self._targets = run.put(np.column_stack([Y - self._middle, np.ones(len(Y))]))
            self._answers = run.put(np.concatenate([points.targets for points in data.scored]))
            self._nearest = min(float(gap) for gap in (near, *(gap for _, gap in found)))

    @property
    def suits(self) -> bool:
        """Whether the table goes down to the nearest pair."""
        return self._nearest > 2.0**-DEEP

    def run(self, architectures: Iterable[Network]) -> Iterator[SweepResult]:
        """A group at a time, when the next one is queued."""
        left, before = iter(architectures), (Group(), None)
        while group := [self._prepared(architecture) for architecture in islice(left, GROUP)]:
            now = group, self._begin(group)
            yield from self._results(*before)
            before = now
        yield from self._results(*before)

    def _prepared(self, architecture: Network) -> _Network | SweepResult:
        try:
            curve = curve_at(architecture, self._input_var)
            split, noise = KernelSplit.of(curve), self._data.noise_of(architecture)
            if split.is_trivial:
                raise VarianceError(
                    "the kernel is constant to below 1e-290 of its variance; use "
                    + (architecture.if_deep("a smaller depth or ") + "a larger weight_var")
                )
            noise.check(split)
            check_curve(architecture, self._input_var)
        except (ActivationError, VarianceError) as error:
            return SweepResult(architecture, **failure_fields(error))
        return _Network(architecture, curve, split, noise)

    def _begin(self, group: Group, noise_var: float | None = None) -> DeviceArray:
        """Queue the networks of a group; there is always room for all of one."""
        nets = [_as_numbers(one, noise_var) for one in group if isinstance(one, _Network)]
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

    def _results(self, group: Group, numbers: DeviceArray) -> Iterator[SweepResult]:
        start, found = time.perf_counter(), iter(() if numbers is None else np.asarray(numbers))
        for one in group:
            if isinstance(one, SweepResult):
                yield one
                continue
            fields = self._climbed(one, next(found))
            now = time.perf_counter()
            yield SweepResult(one.architecture, seconds=now - start, **fields)
            start = time.perf_counter()

    def _climbed(self, network: _Network, first: Array) -> dict[str, Any]:
        """The fields of a result, with more noise if need be."""
        noise = network.noise

        def attempt(level: float) -> Array:
            more = level * noise.unit
            found = first if level == noise.level else np.asarray(self._begin([network], more))[0]
            if not np.isfinite(found).all():
                raise NotPositiveDefiniteError
            return found

        try:
            found, level, failed = climb(attempt, noise.level)
            fields = self._fields(found, network.split)
        except NotPositiveDefiniteError as error:
            error.noise_var *= noise.unit
            matrix = HostBackend().matrix(network.architecture, self._data.train.inputs)
            error.args = (no_factor(CpuEngine(), matrix, error.noise_var),)
            return failure_fields(error)
        except VarianceError as error:
            return failure_fields(error)
        return {**fields, "noise_var": level * noise.unit, "failed_attempts": failed}

    def _fields(self, found: Array, split: KernelSplit) -> dict[str, Any]:
        outputs, n = len(self._middle), len(self._data.train.inputs)
        (log_det, fit, beta), sums = found[:3], found[3 : 3 + outputs]
        constant = Constant(split, float(beta), uncentred_sums(sums, self._middle, beta))
        errors, agreements = np.split(found[3 + outputs :], 2)
        evidence = log_evidence(split, constant, fit, log_det, n, outputs)
        return {"log_evidence": evidence, **score_fields(self._data.scored, errors, agreements)}


def _as_numbers(network: _Network, noise_var: float | None) -> tuple[DeviceArray, ...]:
    """A network as its program takes it: M as a function of the gap, noise, offset."""
    profile = network.split.profile(network.curve)
    noise_var = network.noise.least if noise_var is None else noise_var
    return (
        profile.deficit.coefs[:, :DEEP],
        profile.at_one,
        profile.at_one - profile.deficit.ends[1],
        noise_var / network.split.scale,
        network.split.offset,
    )


def _bordered(own: DeviceArray, rows: int) -> DeviceArray:
    """Room below the matrix for the targets: what is factored there is L⁻¹Y."""
    more = rows + -(len(own) + rows) % ALIGNED
    return jnp.pad(own, (0, more), constant_values=1.0)  # a right angle: M is small


def _gaps(other: Inputs, inputs: Inputs) -> tuple[DeviceArray, DeviceArray]:
    """Between two sets, and the smallest."""
    rows = unit_rows(other)
    parts = [
        signed_gaps(rows[start : start + ROWS], unit_rows(inputs), symmetric=False)
        for start in range(0, len(other), ROWS)
    ]
    gaps, nearest = zip(*parts, strict=True)
    return jnp.concatenate(gaps), jnp.stack(nearest).min()


@program
def _scores(
    own: DeviceArray,
    cross: DeviceArray,
    targets: DeviceArray,
    answers: DeviceArray,
    middle: DeviceArray,
    networks: list[DeviceArray],
    *,
    ends: tuple[int, ...],
) -> DeviceArray:
    """For each network log det of M + shift, the fit, β, bᵀ(Y - middle), squared errors and right
    classes; not finite where there is no factor."""

    def score(network: list[DeviceArray]) -> DeviceArray:
        coefs, at_one, at_minus_one, shift, offset = network
        M = gap_values(coefs, at_one, at_minus_one, own)
        log_det, z, alpha = _solved(M, shift, targets)
        one = z[:, -1]
        beta, sums = one @ one, one @ z[:, :-1]
        variance = posterior_variance(offset, beta)
        apart = shift_from_middle(variance, sums, middle / (1.0 + offset * beta))
        weights = alpha[:, :-1] - alpha[:, -1:] * apart
        rest = z[:, :-1] - one[:, None] * apart
        mean = gap_values(coefs, at_one, at_minus_one, cross) @ weights
        mean = mean + variance * uncentred_sums(sums, middle, beta)
        wrong = ((mean - answers) ** 2).sum(axis=1)
        right = (mean.argmax(axis=1) == answers.argmax(axis=1)).astype(wrong.dtype)
        parts = [jnp.split(rows, ends[:-1]) for rows in (wrong, right)]
        counts = [jnp.stack([part.sum() for part in both]) for both in parts]
        return jnp.concatenate([jnp.stack([log_det, (rest * rest).sum(), beta]), sums, *counts])

    return lax.map(score, networks)


def _solved(
    M: DeviceArray, shift: DeviceArray, targets: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """log det of M + shift, L⁻¹Y and its solution; M has room for the targets below it, so that
    the factorisation solves for them on its way."""
    n, more = len(targets), len(M) - len(targets)
    M = lax.dynamic_update_slice(M, targets.T, (n, 0))
    M = M + jnp.diag(jnp.concatenate([jnp.full(n, shift), jnp.full(more, BORDER)]))
    L = lax.linalg.cholesky(M, symmetrize_input=False)
    z, own = L[n : n + targets.shape[1], :n], L[:n, :n]
    solve = _by_blocks if n >= BLOCKS_FROM else _at_once
    return 2.0 * jnp.log(jnp.diagonal(own)).sum(), z.T, solve(own, z).T


def _at_once(L: DeviceArray, z: DeviceArray) -> DeviceArray:
    """z L⁻¹."""
    return lax.linalg.triangular_solve(L, z, left_side=False, lower=True)


def _by_blocks(L: DeviceArray, z: DeviceArray) -> DeviceArray:
    """z L⁻¹ from the inverses of diagonal blocks, the last first: a few rows in z leave a device
    idle in a plain solve. Where blocks do not divide n, the first two overlap."""
    n, count = len(L), -(-len(L) // BLOCK)
    size = -(-n // count)
    starts = jnp.maximum(n - size * jnp.arange(1, count + 1), 0)
    blocks = jax.vmap(lambda start: lax.dynamic_slice(L, (start, start), (size, size)))(starts)
    ones = jnp.broadcast_to(jnp.eye(size), blocks.shape)
    inverses = lax.linalg.triangular_solve(blocks, ones, left_side=True, lower=True)

    def step(solved: DeviceArray, block: DeviceArray) -> tuple[DeviceArray, None]:
        start, inverse = block
        solved = lax.dynamic_update_slice_in_dim(solved, nothing, start, axis=1)
        known = solved @ lax.dynamic_slice_in_dim(L, start, size, axis=1)
        own = (lax.dynamic_slice_in_dim(z, start, size, axis=1) - known) @ inverse
        return lax.dynamic_update_slice_in_dim(solved, own, start, axis=1), None

    nothing = jnp.zeros((len(z), size))
    return lax.scan(step, jnp.zeros_like(z), (starts, inverses))[0]
