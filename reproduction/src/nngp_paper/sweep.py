"""Many networks over one data set: the paper's grids (sec. 3, appendix D).

With inputs of equal norm a kernel is a function of the cosine, and cosines do not depend on the
network: they are computed once. A network then costs its curve (`nngp.curves.compile_curve`), a
look-up for each pair, and a Cholesky factor by LAPACK. What is too large for one dense matrix, or
better done on a GPU, is conditioned by `nngp.condition`, one network after the other.

Depth must cost no precision. A curve gives the deficit D = v - K, v = K(x, x), which is exact
however alike a deep network makes all inputs; v - D would not be. So with s = D(c = 0)

    K = s (M + g 11ᵀ),    M = 1 + k - D/s,    v = s (1 + k + g),    k = min(v/s - 1, 1)

and B = M + noise/s is factored, B = L Lᵀ. The constant function, of prior variance s g, has a
posterior of its own. With z = L⁻¹(y - m), m the median of the targets, and o = L⁻¹1 (Sherman and
Morrison, for any g from zero to infinity):

    κ = 1 / (1/g + o·o)                        its posterior variance, over s
    μ = m + a,  a = κ o·z - m / (1 + g o·o)    its mean
    mean at x = μ + m(x)·L⁻ᵀ(z - a o)
    yᵀ(K + noise)⁻¹y = (|z - a o|² + μ²/g) / s
    log det (K + noise) = n log s + log det B + log(1 + g o·o)

At infinite depth g is infinite; its logarithm is left out of the evidence.
"""

import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg

import nngp
from nngp_paper.arrays import Array
from nngp_paper.engines import engine_name
from nngp_paper.pairs import Pairs, SortedPairs, cubics_of

LARGEST_DENSE = 10_000  # training points up to which a kernel is one dense matrix here
FIRST_NOISE, LAST_NOISE = 1e-10, 0.2  # of the ladder: what follows 0, and where it ends
LARGEST_SHIFT = 1e300  # noise in units of a kernel's scale that float64 holds
SMALLEST_SCALE = 1e-290  # of a kernel, over its variance, that can be split off
UNKNOWN = 1e-4  # error of a kernel, over its scale
EQUAL = 256 * float(np.finfo(np.float64).eps)  # relative spread of norms that rounding explains
MOST_SORTED = 10**8  # pairs that are kept in order for look-up tables, 12 bytes each
BLOCK = 2**22  # pairs of scored and training points whose kernel is held at a time
NOTHING = float("nan")


@dataclass(frozen=True)
class SweepResult:
    """One network's scores on the validation set; NaN, with `error`, where there are none.

    `accuracy` compares the largest output with the largest target, and is NaN for one output. The
    scores on the test set are NaN if there is none.
    """

    architecture: nngp.Network
    accuracy: float = NOTHING
    mse: float = NOTHING
    log_evidence: float = NOTHING
    noise_var: float = NOTHING
    failed_attempts: int = 0
    seconds: float = 0.0
    error: str = ""
    test_accuracy: float = NOTHING
    test_mse: float = NOTHING


class Sweep:
    """Scores of many networks on one data set, as `nngp.condition` would give them.

    Parameters
    ----------
    X, Y : array, (n, d) and (n, outputs)
    X_val, Y_val : array
        Where the scores are taken.
    X_test, Y_test : array, optional
        Where scores are taken as well.
    noise_var, relative_noise, engine
        As in `nngp.condition`.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> from nngp_paper.sweep import Sweep
    >>> angle = np.linspace(0, 2, 30)[:, None]
    >>> X, Y = np.hstack([np.cos(angle), np.sin(angle)]), np.sin(3 * angle)
    >>> sweep = Sweep(X[::2], Y[::2], X[1::2], Y[1::2])
    >>> nets = [nngp.Architecture(depth, "erf") for depth in (1, 2, 3)]
    >>> all(result.mse < 1e-3 for result in sweep.run(nets))
    True
    """

    def __init__(
        self,
        X: Array,
        Y: Array,
        X_val: Array,
        Y_val: Array,
        X_test: Array | None = None,
        Y_test: Array | None = None,
        *,
        noise_var: float = FIRST_NOISE,
        relative_noise: bool = False,
        engine: str = "auto",
    ) -> None:
        self._X, self._Y = X, Y
        self._scored = [(X_val, Y_val)]
        if X_test is not None and Y_test is not None:
            self._scored.append((X_test, Y_test))
        self._options: dict[str, Any] = {"noise_var": noise_var, "relative_noise": relative_noise}
        self._engine = engine
        self._input_var = _common_var([X, *(points for points, _ in self._scored)])
        self._lock = threading.Lock()  # the memory holds one matrix at a time

    def run(
        self, networks: Iterable[nngp.Network], *, table: nngp.curves.LookupTable | None = None
    ) -> Iterator[SweepResult]:
        """The results, one network after the other.

        With `table`, kernels are read from this table of the paper's, which raises ValueError where
        it has no values; a network that has no kernel or no factor is a result with an error.
        """
        for network in networks:
            start = time.perf_counter()
            try:
                with self._lock:
                    found = self._scores(network, table)
            except nngp.errors.NotPositiveDefiniteError as error:
                found = {
                    "noise_var": error.noise_var,
                    "failed_attempts": error.failed_attempts,
                    "error": str(error),
                }
            except (nngp.errors.ActivationError, nngp.errors.VarianceError) as error:
                found = {"error": str(error)}
            yield SweepResult(network, seconds=time.perf_counter() - start, **found)

    @cached_property
    def is_dense(self) -> bool:
        """Whether kernels are dense matrices here, and not those of `nngp.condition`."""
        n, others = len(self._X), sum(len(points) for points, _ in self._scored)
        if self._input_var is None or not takes_dense(n, self._engine):
            return False
        available = nngp.forecast(n, self._X.shape[1], self._Y.shape[1], engine="cpu").available
        return available is None or held_bytes(n, others) <= available

    def _scores(
        self, network: nngp.Network, table: nngp.curves.LookupTable | None
    ) -> dict[str, Any]:
        if table is not None:
            if not isinstance(network, nngp.Architecture):
                raise TypeError("a look-up table has kernels of an nngp.Architecture only")
            found = self._dense(network, _TableKernel(self, network, table))
            if found is None:
                raise nngp.errors.NotPositiveDefiniteError(
                    "the kernel matrix of the look-up table is not positive definite even with "
                    f"noise_var {LAST_NOISE}; pass a larger noise_var"
                )
            return found
        if self._input_var is None or isinstance(network, nngp.Invariant | nngp.WithHead):
            return self._conditioned(network)
        curve = self._curve(network)
        _check_known(curve)
        found = None
        if self.is_dense and curve.scale > SMALLEST_SCALE * curve.variance:
            found = self._dense(network, _CurveKernel(self, curve))
        # What has no factor is left to `condition`, too: it says why.
        return self._conditioned(network) if found is None else found

    def _conditioned(self, network: nngp.Network) -> dict[str, Any]:
        with _without_warnings():
            posterior = nngp.condition(
                network,
                self._X,
                self._Y,
                solver="cholesky",
                engine=self._engine,
                progress=False,
                **self._options,
            )
            means = [posterior.mean(points) for points, _ in self._scored]
        return {
            "log_evidence": posterior.log_evidence,
            "noise_var": posterior.report.noise_var,
            "failed_attempts": posterior.report.failed_attempts,
            **self._judged(means),
        }

    def _dense(self, network: nngp.Network, kernel: "_Kernel") -> dict[str, Any] | None:
        """Scores by a dense factor, up the noise ladder if need be; None where there are none."""
        unit = self._unit(network)
        noise, failed = self._options["noise_var"], 0
        while True:
            shift = noise * unit / kernel.scale
            if not shift <= LARGEST_SHIFT:
                return None
            kernel.fill(self._matrix)
            try:
                upper = _factor(self._matrix, shift)
                break
            except np.linalg.LinAlgError:
                noise, failed = 10 * noise if noise > 0 else FIRST_NOISE, failed + 1
                if noise > LAST_NOISE:
                    return None
        found = self._solved(kernel, upper)
        if found is None:
            return None
        return {"noise_var": noise * unit, "failed_attempts": failed, **found}

    def _solved(self, kernel: "_Kernel", upper: Array) -> dict[str, Any] | None:
        """The algebra of the module's docstring; None if the evidence overflows."""
        (n, outputs), s, g = self._Y.shape, kernel.scale, kernel.offset
        middle = np.median(self._Y, axis=0)
        targets = np.column_stack([self._Y - middle, np.ones(n)])
        z = scipy.linalg.solve_triangular(upper, targets, trans="T", check_finite=False)
        z, ones = z[:, :-1], z[:, -1]
        beta = float(ones @ ones)
        kappa = 1.0 / (1.0 / g + beta) if g > 0 else 0.0
        apart = kappa * (ones @ z) - middle / (1.0 + g * beta)
        constant = kappa * (ones @ z + beta * middle)
        rest = z - np.outer(ones, apart)
        fit = float(np.sum(rest**2)) + (float(np.sum(constant**2)) / g if g > 0 else 0.0)
        log_det = 2.0 * float(np.log(np.diagonal(upper)).sum()) + n * float(np.log(2 * np.pi * s))
        log_det += float(np.log(beta) if g == np.inf else np.log1p(g * beta))
        with np.errstate(over="ignore"):
            evidence = float(-0.5 * (np.float64(fit) / s + outputs * log_det))
        if not np.isfinite(evidence):
            return None
        weights = scipy.linalg.solve_triangular(upper, rest, check_finite=False)
        means = [
            constant + np.concatenate([part @ weights for part in kernel.cross(k)])
            for k in range(len(self._scored))
        ]
        return {"log_evidence": evidence, **self._judged(means)}

    def _judged(self, means: list[Array]) -> dict[str, float]:
        out = {}
        for name, mean, (_, targets) in zip(("", "test_"), means, self._scored, strict=False):
            right = float(np.mean(mean.argmax(axis=1) == targets.argmax(axis=1)))
            out[f"{name}accuracy"] = right if targets.shape[1] > 1 else NOTHING
            out[f"{name}mse"] = float(np.mean((mean - targets) ** 2))
        return out

    def _unit(self, network: nngp.Network) -> float:
        """The unit of the noise."""
        return self._curve(network).scale if self._options["relative_noise"] else 1.0

    def _curve(self, network: nngp.Network) -> nngp.curves.AngularCurve:
        assert self._input_var is not None
        with _without_warnings():
            return nngp.curves.compile_curve(network, self._input_var)

    @cached_property
    def _matrix(self) -> Array:
        """Memory that every network uses again."""
        return np.empty((len(self._X), len(self._X)))

    @cached_property
    def _own(self) -> Pairs:
        return Pairs(_unit_rows(self._X), _unit_rows(self._X))

    @cached_property
    def _others(self) -> list[Pairs]:
        own = _unit_rows(self._X)
        return [Pairs(_unit_rows(points), own) for points, _ in self._scored]

    @cached_property
    def _sorted(self) -> list[SortedPairs] | None:
        """For look-up tables: pairs of the training points, then of each scored set with them. None
        where that would take too much memory."""
        sets = [self._X, *(points for points, _ in self._scored)]
        if len(self._X) * sum(map(len, sets)) > MOST_SORTED:
            return None
        own = _unit_rows(self._X)
        return [SortedPairs(_unit_rows(points), own) for points in sets]


class _Kernel(Protocol):
    """K = scale (M + offset 11ᵀ)."""

    scale: float
    offset: float

    def fill(self, out: Array) -> None:
        """Write M of the training points."""

    def cross(self, k: int) -> Iterator[Array]:
        """M of the scored set k with the training points, some rows at a time."""


class _CurveKernel:
    """The kernel of a network, from its curve."""

    def __init__(self, sweep: Sweep, curve: nngp.curves.AngularCurve) -> None:
        kept = min(curve.offset, 1.0)
        self._sweep, self._curve, self._at_one = sweep, curve, 1.0 + kept
        self.scale, self.offset = curve.scale, curve.offset - kept
        self._cubics = cubics_of(curve)

    def fill(self, out: Array) -> None:
        self._values(self._sweep._own, slice(0, len(out)), out)
        np.fill_diagonal(out, self._at_one)

    def cross(self, k: int) -> Iterator[Array]:
        pairs = self._sweep._others[k]
        for rows in _blocks(*pairs.shape):
            out = np.empty((rows.stop - rows.start, pairs.shape[1]))
            self._values(pairs, rows, out)
            yield out

    def _values(self, pairs: Pairs, rows: slice, out: Array) -> None:
        """M = 1 + k - D/s."""
        pairs.look_up(self._curve, self._cubics, rows, out)
        out *= -1.0 / self.scale
        out += self._at_one


class _TableKernel:
    """The kernel of a network, from the paper's look-up table."""

    scale, offset = 1.0, 0.0

    def __init__(
        self, sweep: Sweep, network: nngp.Architecture, table: nngp.curves.LookupTable
    ) -> None:
        if table.activation != network.activation:
            raise ValueError(
                f"the table is for '{table.activation.name}', the network has "
                f"'{network.activation.name}'"
            )
        if sweep._input_var is None:
            raise ValueError("the look-up table needs inputs of equal norm; normalise them first")
        self._sweep, self._table = sweep, table
        self._network: dict[str, Any] = {
            "depth": network.depth,
            "weight_var": network.weight_var,
            "bias_var": network.bias_var,
        }

    def fill(self, out: Array) -> None:
        if self._sweep._sorted is None:
            out[...] = self._table.kernel(self._sweep._X, **self._network)
            return
        np.concatenate(list(self._interpolated(0)), out=out)
        np.fill_diagonal(out, self._profile[1][-1])

    def cross(self, k: int) -> Iterator[Array]:
        if self._sweep._sorted is not None:
            yield from self._interpolated(k + 1)
            return
        points, _ = self._sweep._scored[k]
        for rows in _blocks(len(points), len(self._sweep._X)):
            yield self._table.kernel(points[rows], self._sweep._X, **self._network)

    def _interpolated(self, k: int) -> Iterator[Array]:
        assert self._sweep._sorted is not None
        return self._sweep._sorted[k].interpolate(*self._profile)

    @cached_property
    def _profile(self) -> tuple[Array, Array]:
        variance = self._sweep._input_var
        assert variance is not None  # as __init__ checks
        return self._table.profile(**self._network, input_var=variance)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Networks are many, and a result has its noise, or an error where its kernel is not known."""
    with warnings.catch_warnings():
        for kind in (
            nngp.errors.NoiseWarning,
            nngp.errors.ToleranceWarning,
            nngp.errors.ConstantKernelWarning,
        ):
            warnings.simplefilter("ignore", kind)
        yield


def takes_dense(n: int, engine: str) -> bool:
    """Whether kernels of n training points are dense matrices here, if memory allows."""
    return n <= LARGEST_DENSE and engine_name(engine, n) == "cpu"


def held_bytes(n: int, others: int) -> int:
    """Bytes that a sweep with dense matrices keeps, for n training and other points."""
    return 8 * n * (2 * n + others)


def _factor(M: Array, shift: float) -> Array:
    """U with UᵀU = M + shift, in the memory of M."""
    M[np.diag_indices_from(M)] += shift
    # LAPACK's matrices are transposed, so that this is no copy.
    found: Array = scipy.linalg.cholesky(M.T, lower=False, overwrite_a=True, check_finite=False)
    return found


def _blocks(rows: int, columns: int) -> list[slice]:
    step = max(1, BLOCK // columns)
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def _check_known(curve: nngp.curves.AngularCurve) -> None:
    """Raise VarianceError if the kernel is not known: by the error of its deficits, or by that of
    K, whichever says more of M."""
    error, network = min(curve.deficit_error, curve.error * (1 + curve.offset)), curve.network
    if not error < UNKNOWN:
        raise nngp.errors.VarianceError(
            f"at depth {network.depth} the kernel is known to {error:.0e} of its scale only; use a "
            "smaller depth, or a weight_var nearer to where the variance stays put"
        )


def _common_var(sets: list[Array]) -> float | None:
    """x·x/d of all points, if it is the same up to rounding; exactly 1 where that is its value."""
    found = np.concatenate([np.square(points).sum(axis=1) / points.shape[1] for points in sets])
    low, high = float(found.min()), float(found.max())
    if high - low > EQUAL * high:
        return None
    return 1.0 if max(high - 1, 1 - low) <= EQUAL else float(np.median(found))


def _unit_rows(X: Array) -> Array:
    lengths = np.sqrt(np.square(X).sum(axis=1, keepdims=True))
    return np.divide(X, lengths, out=np.zeros_like(X), where=lengths > 0)
