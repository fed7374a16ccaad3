"""Results of the public interface as digests: a change of the code that must change no number is
seen to change none.

    python benchmarks/same_results.py --out before.json          # on the commit before
    python benchmarks/same_results.py --compare before.json      # after; exit code 1 if any differs

The file maps the name of each result to the SHA-256 of its dtypes, shapes and bytes. Two files can
be compared if one machine has made both, with the same packages: other processors round
otherwise. Words, times, dates, paths and bytes of memory in use are in no digest.

Nothing here knows where in the package a name lives. It is imported from `nngp`, from the modules
that the README lists, or asked of the command line.

Left out: derivatives of the evidence over several tiles on several threads, as threads add to one
sum in the order in which they come (several tiles are done on one core here, and several threads
have one tile); pictures as files and the prose of the report, as words move and change them (the
numbers that are drawn and those in tables are compared); images that must be downloaded; a GPU.
"""

import argparse
import csv
import gzip
import hashlib
import io
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

HERE = Path(__file__).resolve().parent
sys.path[:] = [place for place in sys.path if Path(place).resolve() != HERE]  # has a distributed.py
# Before NumPy and JAX are loaded: sums in the same order on every call, and no GPU.
os.environ |= {"OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
os.environ |= {"MPLBACKEND": "agg", "NO_COLOR": "1"}
for name in ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS", "NNGP_DATA"):
    os.environ.pop(name, None)

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import nngp  # noqa: E402
from nngp import regimes  # noqa: E402
from nngp_paper import datasets  # noqa: E402
from nngp_paper.runs import RunStore  # noqa: E402
from nngp_paper.sweep import Sweep  # noqa: E402

Array = NDArray[np.float64]
Work = Callable[[], Any]
MEASURED = HERE.parent / "reproduction" / "measured"
# Of reports and saved models: what a clock or the machine decides, and what is prose
PASSING = {"seconds", "forecast_bytes", "reason", "remarks"}
CLOSED = "identity square cube relu relu2 relu3 abs step sign erf gelu sin cos gaussian leaky_relu"
SMOOTH, KINKED = "tanh sigmoid silu softplus", "elu selu hard_tanh relu6"

RESULTS: dict[str, Work] = {}
APART: set[str] = set()  # results that other processes compute, while this one has others


def result(work: Work) -> Work:
    """Register a function without arguments as a result, by its own name."""
    RESULTS[work.__name__] = work
    return work


def result_of(*cases: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register a function once for each case, by its name and the case."""

    def register(work: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for case in cases:
            RESULTS[f"{work.__name__}[{case}]"] = partial(work, case)
        return work

    return register


def apart(work: Any) -> Any:
    """Mark a result, or all cases of one, as the work of other processes."""
    APART.update(name for name in RESULTS if name.partition("[")[0] == work.__name__)
    return work


# Digests


def digest(value: Any) -> str:
    """The SHA-256 of a value: arrays, numbers, texts, and lists and mappings of them."""
    hasher = hashlib.sha256()
    for piece in pieces(value):
        hasher.update(struct.pack("<q", len(piece)) + piece)
    return hasher.hexdigest()


def pieces(value: Any) -> Iterator[bytes]:
    """A value as bytes, each kind with a mark of its own; names of mappings are sorted."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        yield f"{type(value).__name__} {value}".encode()
    elif isinstance(value, float):
        yield f"float {value!r}".encode()
    elif isinstance(value, Mapping):
        yield f"mapping {len(value)}".encode()
        for name in sorted(value):
            yield from pieces(name)
            yield from pieces(value[name])
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}".encode()
        for part in value:
            yield from pieces(part)
    elif hasattr(value, "__array__"):
        yield from array_pieces(np.asarray(value))
    else:
        raise TypeError(f"a {type(value).__name__} has no digest; give its numbers")


def array_pieces(array: NDArray[Any]) -> Iterator[bytes]:
    """The dtype, the shape and the bytes of an array; one of objects counts as a list."""
    if array.dtype == object:
        yield from pieces(array.tolist())
        return
    yield f"array {array.dtype.str} {array.shape}".encode()
    yield np.ascontiguousarray(array).tobytes()


def lasting(value: Any) -> Any:
    """Mappings without the entries that differ from call to call, at any depth."""
    if isinstance(value, Mapping):
        return {name: lasting(part) for name, part in value.items() if name not in PASSING}
    return [lasting(part) for part in value] if isinstance(value, list) else value


def numbers_in(value: Any) -> Any:
    """Mappings without their texts, at any depth."""
    if isinstance(value, Mapping):
        kept = {name: numbers_in(part) for name, part in value.items()}
        return {name: part for name, part in kept.items() if not isinstance(part, str)}
    return [numbers_in(part) for part in value] if isinstance(value, list) else value


def fields(value: Any, names: str) -> list[Any]:
    """Attributes by name, with spaces between names."""
    return [getattr(value, name) for name in names.split()]


# Data and places


def points(n: int, d: int = 6, seed: int = 0) -> Array:
    """Inputs whose norms differ."""
    return np.random.default_rng(seed).normal(size=(n, d))


def sphere(n: int, d: int = 6, seed: int = 0) -> Array:
    """Inputs of equal norm."""
    return nngp.normalize(points(n, d, seed))


def answers(X: Array, outputs: int = 2) -> Array:
    """Smooth targets with a little noise."""
    noise = np.random.default_rng(7).normal(size=(len(X), outputs))
    return np.sin(2 * X[:, :outputs]) + 0.1 * noise


def network(depth: float = 3, activation: Any = "relu", *variances: Any) -> nngp.Architecture:
    """A network; its variances are the defaults unless they are given."""
    return nngp.Architecture(depth, activation, *variances)


@contextmanager
def one_core() -> Iterator[None]:
    """One core for this process: then one thread does all tiles, in their order."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings: some of the cases are there to have them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for files that are gone afterwards."""
    with TemporaryDirectory(prefix="same-results-") as name:
        yield Path(name)


def command(*words: Any, package: str = "nngp") -> str:
    """What `nngp` prints, or another command, called in a process of its own."""
    call = [sys.executable, "-m", package, *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr[-500:]
        raise RuntimeError(f"{package} {words[0]} ended with {done.returncode}: {said}")
    return done.stdout


paper_command = partial(command, package="nngp_paper")


def rows_of(text: str) -> list[list[str]]:
    """The cells of a CSV, heads first; numbers are compared as they are written."""
    return list(csv.reader(io.StringIO(text)))


# Kernels


@result_of("closed", "smooth", "kinked")
def kernel_by_curve(kind: str) -> Any:
    """Layers of every activation, at equal norms: closed forms, and those that are integrated."""
    names = {"closed": CLOSED, "smooth": SMOOTH, "kinked": KINKED}[kind]
    return {name: nngp.kernel(network(3, name, 1.1, 0.2), sphere(40)) for name in names.split()}


@result
def kernel_by_depth() -> Any:
    """No layer to a hundred and without end, and a variance for each layer."""
    nets = [network(depth, "relu", 1.0, 0.1) for depth in (0, 1, 2, 10, 100, math.inf)]
    nets += [network(20, "tanh", 1.8, 0.05), network(math.inf, "erf", 0.9, 0.3)]
    own = network(2, "erf", (1.0, 2.0, 1.5), (0.1, 0.0, 0.3))
    return [nngp.kernel(net, sphere(30)) for net in (*nets, own)], nngp.kernel(own, points(30))


@result
def kernel_of_own_functions() -> Any:
    """Python callables with and without kinks, one of them JAX's."""
    import jax

    swish = nngp.Activation(lambda x: x / (1 + np.exp(-x)))
    bent = nngp.Activation(lambda x: np.maximum(np.abs(x) - 1, 0), "bent", kinks=(-1.0, 1.0))
    return [nngp.kernel(network(2, phi), sphere(30)) for phi in (swish, bent, jax.nn.silu)]


@result
def kernel_in_many_tiles() -> Any:
    """More points than a tile has, alone and against others."""
    X, Xs = sphere(700), sphere(50, seed=1)
    return nngp.kernel(network(), X), nngp.kernel(network(), X, Xs)


@result
def kernel_pairwise() -> Any:
    """Pair by pair: norms that differ, and the same method where they do not."""
    nets = [network(4, name) for name in ("relu", "erf", "gelu", "sin", "relu2")]
    apart = [nngp.kernel(net, points(60), points(20, seed=1)) for net in nets]
    own = [nngp.kernel(net, points(60)) for net in nets]
    return apart, own, nngp.kernel(network(), sphere(60), method="pairwise")


@result
def kernel_pairwise_numeric() -> Any:
    """Pair by pair for activations that are integrated."""
    return [nngp.kernel(network(2, name), points(15)) for name in ("tanh", "softplus", "hard_tanh")]


@result
def kernel_by_table() -> Any:
    """The paper's look-up table."""
    return table("relu").kernel(sphere(80), depth=4)


@result
def diagonals_and_plans() -> Any:
    """Variances of inputs, how kernels would be computed, and normalised inputs."""
    nets, inputs = (network(5), network(3, "erf")), (sphere(20), points(20), points(20) * 1e3)
    plans = [nngp.plan_kernel(net, X) for net in nets for X in inputs]
    return {
        "diagonals": [nngp.kernel_diag(net, X) for net in nets for X in inputs],
        "numeric": [nngp.kernel_diag(network(3, "tanh"), X) for X in inputs[:2]],
        "plans": [(plan.method, plan.input_var, plan.error) for plan in plans],
        "centred": nngp.normalize(points(20), center=True),
    }


@result
def layers() -> Any:
    """One layer by every method, with errors, and its derivatives."""
    q1, q2, c = 0.7, np.array([0.3, 1.0, 4.0])[:, None], np.array([-1.0, -0.4, 0.0, 0.9, 1.0])
    names = ("relu", "erf", "gelu", "gaussian", "tanh", "hard_tanh")
    both = [nngp.curves.layer_covariance(name, q1, q2, c, return_error=True) for name in names]
    ways = ("series", "quadrature")
    other = [nngp.curves.layer_covariance("tanh", q1, q2, 0.5 * c, method=way) for way in ways]
    return (
        both,
        other,
        [tuple(nngp.curves.layer_derivatives(name, q1, q2, 0.9 * c)) for name in names],
    )


@result_of("relu", "tanh", "selu")
def curve(activation: str) -> Any:
    """All layers as one function of the cosine, with its derivatives."""
    depth = 2 if activation in KINKED.split() else 7
    found = nngp.curves.compile_curve(network(depth, activation, 1.4, 0.1), 1.3)
    c, near = np.linspace(-1, 1, 41), np.geomspace(1e-18, 1, 30)
    facts = found.variance, found.scale, found.offset, found.error, found.deficit_error
    values = found(c), found(one_minus=near), found.deficit(c), found.deficit(one_minus=near)
    moved = [found.sensitivity(c, per_layer=each) for each in (False, True)]
    return facts, values, found.derivative(c), moved


@result
def curves() -> Any:
    """Every depth from one pass, and the curve at infinite depth."""
    c, endless = (
        np.linspace(-1, 1, 21),
        nngp.curves.compile_curve(network(math.inf, "relu", 1.0, 0.1)),
    )
    of_all = nngp.curves.compile_curves(network(6, "gelu", 1.4, 0.1))
    facts = [(one.variance, one.scale, one.offset) for one in (*of_all, endless)]
    return facts, [one(c) for one in (*of_all, endless)], endless.sensitivity(c)


@cache
def table(activation: str, fill: Any = "sum") -> nngp.curves.LookupTable:
    """A small look-up table."""
    return nngp.curves.LookupTable(activation, n_g=101, n_v=81, n_c=80, s_max=10.0, fill=fill)


@result
def lookup_tables() -> Any:
    """Tables filled both ways, and what they interpolate."""
    out = []
    for made in (table(name, fill) for name in ("relu", "tanh") for fill in ("sum", "exact")):
        between = made(np.linspace(0, 9, 7)[:, None], np.linspace(-1, 1, 9))
        out += [made.values, made.at_one, made.at_minus_one, between, made.row(1.23), made.error]
    return out


@result
def jax_kernel() -> Any:
    """The kernel as a JAX function, and its gradients in all arguments."""
    import jax

    X, out = points(8), []
    for k in (nngp.jax_kernel(network(3, name, 1.4, 0.2)) for name in ("relu", "tanh")):
        with jax.enable_x64(True):
            out.append(jax.jit(jax.vmap(jax.vmap(k, (None, 0)), (0, None)))(X, X))
            slopes = jax.jit(jax.grad(k, argnums=(0, 1, 2, 3)))
            out += [slopes(X[0], other, 1.4, 0.2) for other in (X[1], X[0], -X[0])]
        out.append(k(X[0].astype(np.float32), X[1].astype(np.float32)))
    return out


# Posteriors by a Cholesky factor


@cache
def factored(n: int = 450) -> nngp.Posterior:
    """A posterior of several tiles, at equal norms."""
    X = sphere(n)
    return nngp.condition(network(), X, answers(X), noise_var=1e-2, engine="cpu")


@cache
def factored_pairwise() -> nngp.Posterior:
    """A posterior of several tiles, at norms that differ."""
    X = points(300)
    return nngp.condition(network(2, "erf"), X, answers(X), noise_var=1e-2, engine="cpu")


def told(posterior: nngp.Posterior, Xs: Array) -> Any:
    """What a posterior says at test points."""
    noisy = posterior.variance(Xs, noise=True)
    return posterior.mean(Xs), posterior.variance(Xs), noisy, posterior.predict(Xs)


def reported(posterior: nngp.Posterior) -> Any:
    """The report without times, words and what the machine decides."""
    return lasting(posterior.report.as_dict())


@result
def posterior_predictions() -> Any:
    """Means and variances at equal norms and at norms that differ; and the reports."""
    parts = (factored(), sphere(210, seed=1)), (factored_pairwise(), points(210, seed=1))
    return [(told(*part), reported(part[0])) for part in parts]


@result
def posterior_at_other_norms() -> Any:
    """Test points whose norm is not that of the training points."""
    return told(factored(), 1.3 * sphere(60, seed=2)), told(factored(), points(60, seed=2))


@result
def posterior_covariances_and_draws() -> Any:
    """Covariances between test points and draws there, with and without noise."""
    parts = (factored(), sphere(40, seed=1)), (factored_pairwise(), points(40, seed=1))
    each = [(posterior, Xs, noise) for posterior, Xs in parts for noise in (False, True)]
    covariances = [posterior.covariance(Xs, noise=noise) for posterior, Xs, noise in each]
    return covariances, [p.sample(Xs, 3, seed=5, noise=noise) for p, Xs, noise in each]


@result
def evidence() -> Any:
    """The log evidence, and each point left out."""
    both = factored(), factored_pairwise()
    left_out = [tuple(p.leave_one_out(noise=noise)) for p in both for noise in (False, True)]
    return [p.log_evidence for p in both], left_out


@result
def evidence_gradient() -> Any:
    """Derivatives of the evidence, in one tile: sums of several depend on their order."""
    out = []
    for net, X in ((network(), sphere(150)), (network(2, "erf"), points(150))):
        posterior = nngp.condition(net, X, answers(X), noise_var=1e-2, engine="cpu")
        out.append(gradients(posterior))
    return out


@result
def evidence_gradient_in_tiles() -> Any:
    """The same over several tiles, on one core."""
    with one_core():
        return gradients(factored()), gradients(factored_pairwise())


def gradients(posterior: nngp.Posterior) -> Any:
    """Derivatives in the variances, by layer, and in the inputs."""
    return [
        posterior.evidence_gradient(),
        posterior.evidence_gradient(per_layer=True),
        posterior.evidence_gradient(per_layer=True, per_input=True),
    ]


@result
def evidence_gradient_numeric() -> Any:
    """Derivatives for activations that are integrated."""
    X, Xs = points(40), sphere(100)
    parts = (network(2, "tanh"), X), (network(2, "tanh"), Xs), (network(2, "selu"), Xs)
    made = [nngp.condition(net, Z, answers(Z), noise_var=1e-2, engine="cpu") for net, Z in parts]
    return [posterior.evidence_gradient(per_layer=True) for posterior in made]


@result
def leave_one_out_density() -> Any:
    """The density of held-out points, with its gradient, on one core."""
    with one_core():
        return (
            factored(250).leave_one_out_density(per_layer=True),
            factored_pairwise().leave_one_out_density(per_layer=True, per_input=True),
        )


@result
def posterior_update() -> Any:
    """New data that extend a factor: of the same norm, then of another."""
    X, Xs = sphere(500), sphere(30, seed=1)
    Y, made = answers(X), []
    posterior = nngp.condition(network(), X[:300], Y[:300], noise_var=1e-2, engine="cpu")
    for new, values in ((X[300:], Y[300:]), (points(20, seed=3), answers(points(20, seed=3)))):
        posterior.update(new, values)
        made.append((told(posterior, Xs), posterior.log_evidence, reported(posterior)))
    return made


@result
def posterior_of_deep_network() -> Any:
    """Three hundred layers, noise relative to what is left of the kernel."""
    X, Xs, net = sphere(200), sphere(30, seed=1), network(300, "relu", 1.0, 0.1)
    options: dict[str, Any] = {"noise_var": 1e-6, "relative_noise": True, "engine": "cpu"}
    with one_core():
        posterior = nngp.condition(net, X, answers(X), **options)
        found = posterior.evidence_gradient(), posterior.leave_one_out_density()
    rest = posterior.log_evidence, posterior.leave_one_out(), posterior.covariance(Xs)
    return told(posterior, Xs), found, rest, posterior.sample(Xs, 2, seed=1), reported(posterior)


@result
def posterior_at_infinite_depth() -> Any:
    """The infinitely deep network, which has a kernel without its constant."""
    X, Xs, net = sphere(200), sphere(30, seed=1), network(math.inf, "relu", 1.0, 0.1)
    posterior = nngp.condition(net, X, answers(X), noise_var=1e-3, engine="cpu")
    return told(posterior, Xs), posterior.log_evidence, reported(posterior)


@result
def posterior_of_other_shapes() -> Any:
    """One output, one input, few points, single precision and lists, data in a file."""
    line, X = np.linspace(-1, 1, 20)[:, None], sphere(40)
    net, Y = network(2, "erf", 4.0, 0.5), answers(X)
    first = nngp.condition(net, line, np.sin(3 * line[:, 0]), engine="cpu")
    single = nngp.condition(net, X.astype(np.float32), Y.tolist(), noise_var=0.1, engine="cpu")
    alone = nngp.condition(net, X[:1], Y[:1], noise_var=0.1, engine="cpu")
    with folder() as place:
        np.save(place / "X.npy", X)
        kept = nngp.condition(net, str(place / "X.npy"), Y[:, 0], noise_var=0.1, engine="cpu")
        out = told(kept, X[:7]), kept.sample(X[:7], 2, seed=1)
    return told(first, line + 0.01), told(single, X), told(alone, X[:3]), out


@result
def posterior_after_the_ladder() -> Any:
    """Noise that had to be raised, first and in an update; and the names of the warnings."""
    X = sphere(60)
    twice, Xs = np.concatenate([X, X]), sphere(20, seed=1)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        posterior = nngp.condition(network(), twice, answers(twice), noise_var=0.0, engine="cpu")
        first = told(posterior, Xs), reported(posterior), posterior.log_evidence
        fresh = nngp.condition(network(), X, answers(X), noise_var=0.0, engine="cpu")
        fresh.update(X, answers(X))
        faint = network(60, "relu", 0.5, 0.5)
        constant = nngp.condition(faint, X, answers(X), noise_var=1e-3, engine="cpu")
    named = sorted({one.category.__name__ for one in seen})
    return first, told(fresh, Xs), reported(fresh), told(constant, Xs), reported(constant), named


# Posteriors by conjugate gradients


@result_of("nystrom", "single")
def conjugate_gradients(preconditioner: str) -> Any:
    """All that a posterior without a factor says, at equal norms and at others; then an update."""
    rank = {"nystrom": 90}.get(preconditioner)
    solver = nngp.CG(preconditioner=preconditioner, rank=rank, tolerance=1e-9)
    out: list[Any] = []
    for net, X, Xs in (
        (network(), sphere(430), sphere(30, seed=1)),
        (network(2, "erf"), points(300), points(30, seed=1)),
    ):
        Y = answers(X)
        posterior = nngp.condition(
            net, X[:250], Y[:250], noise_var=1e-2, solver=solver, engine="cpu"
        )
        out.append((told(posterior, Xs), posterior.covariance(Xs), reported(posterior)))
        out.append(posterior.sample(Xs, 2, seed=3))
        posterior.update(X[250:], Y[250:])
        out.append((told(posterior, Xs), reported(posterior)))
    return out


@result
def conjugate_gradients_deep() -> Any:
    """A deep network, whose constant is solved apart, with a checkpoint that is written often."""
    X, Xs, net = sphere(220), sphere(20, seed=1), network(100, "relu", 1.0, 0.1)
    with folder() as place:
        solver = nngp.CG(rank=60, checkpoint=place, checkpoint_seconds=0.0)
        posterior = nngp.condition(
            net, X, answers(X), noise_var=1e-4, relative_noise=True, solver=solver, engine="cpu"
        )
        return told(posterior, Xs), reported(posterior), len(list(place.iterdir()))


# Priors, sweeps, forecasts


@result
def prior_draws() -> Any:
    """Functions from the prior, with noise, and at infinite depth."""
    net, endless = network(10, "relu", 1.8, 0.01), network(math.inf, "relu", 1.0, 0.1)
    line = np.linspace(-2, 2, 230)
    return [
        nngp.sample_prior(net, line, n=4, seed=0),
        nngp.sample_prior(net, sphere(50), n=2, seed=1, noise_var=0.1),
        nngp.sample_prior(endless, sphere(50), n=2, seed=2),
    ]


@result
def sweeps() -> Any:
    """Scores of many networks, on a test set too, through a table, and pair by pair."""
    nets = [network(depth, "relu", *pair) for depth in (1, 5) for pair in ((1.6, 0.1), (1.9, 0.0))]
    others = [network(2, "tanh", 1.5, 0.2), network(50, "erf", 0.5, 0.1)]
    X, Xv, Xt = sphere(230), sphere(50, seed=1), sphere(40, seed=2)
    three = X, answers(X), Xv, answers(Xv), Xt, answers(Xt)
    uneven = points(100), answers(points(100))[:, :1], points(30), answers(points(30))[:, :1]
    with quiet():
        sweep = Sweep(*three, engine="cpu")
        relative = Sweep(*three[:4], noise_var=1e-3, relative_noise=True, engine="cpu")
        last = Sweep(*uneven, noise_var=1e-3, engine="cpu")
        return {
            "exact": scores(sweep, [*nets, *others]),
            "table": scores(sweep, nets, table=table("relu")),
            "relative": scores(relative, nets),
            "uneven": scores(last, nets[:2]),
        }


def scores(sweep: Sweep, nets: Sequence[nngp.Architecture], **options: Any) -> Any:
    """What a sweep says of networks, without times and sentences."""
    names = "accuracy mse log_evidence noise_var failed_attempts test_accuracy test_mse"
    return [[bool(one.error), *fields(one, names)] for one in sweep.run(nets, **options)]


@result
def forecasts() -> Any:
    """Bytes of both solvers, and the most points that fit into a given memory."""
    asked = [(100, 5, 1), (20_000, 784, 10), (50_000, 784, 10)]
    solvers = ("cholesky", nngp.CG(rank=500), nngp.CG(preconditioner="single"))
    with one_core():  # what is in flight depends on the number of threads
        found = [
            nngp.forecast(*one, solver=solver, engine="cpu", memory=300_000_000)
            for one in asked
            for solver in solvers
        ]
    return [(one.n, one.bytes, one.largest, one.fits) for one in found]


# Estimators


def table_of_numbers(n: int) -> tuple[Array, Array]:
    """A regression task whose columns differ in spread and in use."""
    X = points(n, 4) * np.array([1.0, 10.0, 0.1, 3.0])
    return X, np.sin(X[:, 0]) + 0.05 * X[:, 1] + 0.1 * answers(X, 1)[:, 0]


def chosen(model: Any) -> Any:
    """The network that an estimator chose, and all that it tried."""
    network = getattr(model, "network_", None) or model.architecture_  # its older name
    found = network.as_dict(), model.noise_var_, model.relevance_
    return found, lasting(model.selection_), reported(model.posterior_)


@cache
def regressor() -> Any:
    """A regressor that has chosen its network by the evidence; one tile, so one order of sums."""
    return nngp.NNGPRegressor().fit(*table_of_numbers(120))


@result
def regressor_by_evidence() -> Any:
    """Everything that a regressor predicts."""
    model, (Xs, _) = regressor(), table_of_numbers(25)
    draws = model.sample_y(Xs, 3, random_state=1)
    intervals = model.predict_interval(Xs), model.predict_interval(Xs, 0.5, noise=False)
    predicted = model.predict(Xs, return_std=True), model.predict(Xs, return_cov=True)
    return chosen(model), predicted, intervals, draws, model.log_marginal_likelihood_


WAYS: dict[str, dict[str, dict[str, Any]]] = {
    "choice": {
        "loo": {"selection": "loo", "budget": 25},
        "none": {"selection": None},
        "cg": {"budget": 15, "solver": nngp.CG(rank=50)},
    },
    "activation": {
        "tanh": {"activation": "tanh", "depth": 2, "budget": 12},
        "hard_tanh": {"activation": "hard_tanh", "depth": 1, "budget": 1},
        "infinite": {"activation": "erf", "depth": math.inf, "budget": 15},
    },
    "scaling": {
        "sphere": {"input_scaling": "sphere", "budget": 25},
        "unit": {"input_scaling": "unit", "target_scaling": "none", "budget": 20},
        "given": {"depth": 2, "relevance": [1.0, 0.0, 2.0, 0.5], "noise_var": 0.1, "budget": 15},
    },
}


@result_of(*WAYS)
def regressor_by(what: str) -> Any:
    """Other choices, solvers, activations and scalings; one output and two."""
    X, y = table_of_numbers(150)
    out = {}
    with quiet():
        for name, options in WAYS[what].items():
            targets = np.column_stack([y, y**2]) if name in ("sphere", "cg") else y
            model = nngp.NNGPRegressor(**options).fit(X, targets)
            out[name] = chosen(model), model.predict(table_of_numbers(25)[0], return_std=True)
    return out


@result
def regressor_of_more_data() -> Any:
    """More points than the choice begins with, and than it looks at; on one core."""
    X, y = table_of_numbers(420)
    with one_core():
        model = nngp.NNGPRegressor(depth=1, activation="erf", selection_size=350)
        return chosen(model.fit(X, y)), model.predict(X[:20], return_std=True)


@cache
def classifier(**options: Any) -> Any:
    """A classifier of irises."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return nngp.NNGPClassifier(budget=40, **options).fit(X[::2], y[::2])


@result_of("evidence")
def classifier_by(selection: str) -> Any:
    """Classes, probabilities and variances."""
    from sklearn.datasets import load_iris

    model, Xs = classifier(selection=selection), load_iris(return_X_y=True)[0][1::2]
    predicted = model.predict(Xs), model.predict_proba(Xs), model.predict_mean(Xs)
    scale = model.output_scale_, model.classes_
    return chosen(model), predicted, scale, model.predict_variance(Xs, noise=True)


@result
def kernel_for_sklearn() -> Any:
    """The kernel with its gradient, and scikit-learn's own regressor with it."""
    from sklearn.gaussian_process import GaussianProcessRegressor

    kernels = [nngp.NNGPKernel(2, "erf"), nngp.NNGPKernel(3, "relu", bias_var_bounds="fixed")]
    values = [k(points(40), eval_gradient=True) for k in kernels]
    plain = [(k(points(40), points(9, seed=1)), k.diag(points(40)), k.theta) for k in kernels]
    X, y = table_of_numbers(40)
    with quiet():
        model = GaussianProcessRegressor(kernels[0], alpha=1e-2).fit(X, y)
    return values, plain, model.kernel_.theta, model.predict(X[:9], return_std=True)


def contents(path: Path) -> Any:
    """A saved model: its description without what passes, and the arrays."""
    import safetensors.numpy  # of later versions of the library only

    arrays, facts = safetensors.numpy.load_file(path), safetensors.safe_open(path, "np").metadata()
    return sorted(arrays), lasting(json.loads(facts["description"])), arrays


def plain_regressor(**options: Any) -> Any:
    """A regressor that chooses nothing."""
    return nngp.NNGPRegressor(selection=None, **options).fit(*table_of_numbers(150))


MODELS: dict[str, list[Work]] = {
    "regressor": [regressor, partial(plain_regressor, relevance=[1.0, 0.0, 2.0, 0.5])],
    "classifier": [partial(classifier, selection="evidence")],
    "other": [
        partial(plain_regressor, solver=nngp.CG(rank=50)),
        partial(plain_regressor, depth=40, weight_var=1.0, input_scaling="sphere"),
    ],
}


@result_of(*MODELS)
def saved_model(kind: str) -> Any:
    """What files hold, with and without the factor, and what the models loaded from them say."""
    out, Xs = [], points(20, 4)
    for make, factor in ((make, factor) for make in MODELS[kind] for factor in (True, False)):
        with folder() as place, quiet():
            make().save(place / "model.nngp", factor=factor, notes={"of": [1, 2.5, "x"]})
            again = nngp.load(place / "model.nngp", engine="cpu")
            says = (
                again.predict_proba(Xs)
                if isinstance(again, nngp.NNGPClassifier)
                else again.predict(Xs, True)
            )
            out.append((contents(place / "model.nngp"), says, chosen(again)))
    return out


# Signal propagation


@result
def fixed_points() -> Any:
    """Where variances and correlations flow, how fast, and into which phase."""
    weights, biases = np.linspace(0.2, 4.0, 9)[:, None], np.array([0.0, 0.1, 1.0])
    out = {}
    with quiet():
        for name in ("relu", "erf", "tanh", "gelu", "sin", "hard_tanh"):
            out[name] = [
                regimes.variance_fixed_point(name, weights, biases),
                regimes.correlation_fixed_point(name, weights, biases),
                [regimes.chi(name, weights, biases, at=at) for at in (1.0, "fixed point")],
                regimes.chi(name, 1.5, 0.1, at=0.3),
                tuple(regimes.depth_scale(name, weights, biases)),
                regimes.phase(name, weights, biases),
            ]
    return out


@result
def critical_lines() -> Any:
    """Critical lines both ways, the variance along them, all fixed points of one network."""
    edges = [tuple(regimes.edge_of_chaos(name, [0.0, 0.1, 0.5])) for name in ("tanh", "erf")]
    line = [regimes.critical_line(name, 0.1) for name in ("tanh", "relu", "silu", "leaky_relu")]
    own = regimes.critical_line(lambda x: x / (1 + x**2), [0.05, 0.2])
    return edges, line, own, regimes.critical_line("tanh", weight_var=1.76)


@result
def phase_diagrams() -> Any:
    """Diagrams on a small grid."""
    grids = np.linspace(0.1, 5.0, 8), np.linspace(0.0, 2.0, 5)
    with quiet():
        found = [regimes.phase_diagram(name, *grids) for name in ("relu", "tanh", "gelu")]
    return [diagram.columns() for diagram in found]


@result
def diagnoses() -> Any:
    """The numbers of diagnoses, and trainable depths."""
    nets = [network(60, "relu", 1.0, 0.1), network(3, "tanh", 1.5, 0.1), network(20, "erf", 3.0)]
    names = (
        "chi variance correlation xi_q xi_c trainable_depth distance phase spread contrast noise"
    )
    names += " critical_weight_var"
    with quiet():
        found = [regimes.diagnose(net, X) for net in nets for X in (None, sphere(50), points(50))]
        depths = [regimes.trainable_depth(net) for net in nets]
    return [fields(one, names) for one in found], depths


# Networks of finite width


@result
def finite_networks() -> Any:
    """Weights, outputs and kernels of networks drawn from the prior."""
    net = nngp.FiniteNetwork(network(2, "relu", 1.6, 0.1), width=(30, 20), n_out=2)
    X = points(9)
    weights = net.draw(6, n_networks=3, seed=1)
    single = net.draw(6, seed=2, dtype="float32")
    outputs = net.forward(weights, X), net.forward(single, X), net.sample(X, 5, seed=3)
    return weights, single, outputs, net.empirical_kernels(X, 4, seed=1)


@cache
def trained() -> Any:
    """Networks trained on digits, one by one and side by side."""
    from nngp_paper import finite

    net = nngp.FiniteNetwork(network(2), width=32, n_out=10)
    recipes = [finite.Recipe(seed=1), finite.Recipe(1e-2, 1e-4, 2.0, 0.0, 32, 2)]
    plan = finite.Plan(steps=60, interval=20)
    digits = datasets.split("digits", 200, test=100)
    return finite.train(net, digits, recipes, plan, lanes=2, progress=False)


@result
def finite_training() -> Any:
    """Scores, curves and weights of trained networks, and recipes from the paper's ranges."""
    from nngp_paper import finite

    recipes = finite.random_recipes(0, 2, 64)
    return [(one.result(), one.weights) for one in trained()], [
        next(recipes).as_dict() for _ in range(5)
    ]


@result
def finite_search() -> Any:
    """A random search in a store: names of runs, what they reached, which was best; and the
    infinitely wide network beside them."""
    from nngp_paper import finite

    digits = datasets.split("digits", 100, test=100)
    cells = [finite.Cell("digits", 100, "relu", 1, 8)]
    plan = finite.Plan("cross_entropy", steps=20, interval=10)
    with folder() as place, RunStore(place / "runs.db") as store:
        found = finite.search(store, cells, digits, plan, trials=3, lanes=3, progress=False)
        finite.infinite(store, digits, "relu", 1, engine="cpu")
        runs = [(run.key, run.config, run.result, run.jitter) for run in store.runs()]
        curves = finite.widths(store, "digits", 100, "relu").curves
    best = [(one.cell.width, one.trials, one.best.key, one.result) for one in found]
    return runs, best, [(curve.depth, curve.trials) for curve in curves]


@result
def finite_convergence() -> Any:
    """Networks of growing width beside the infinite one, and an ensemble trained in its last
    layer."""
    from nngp_paper import finite

    found = nngp.finite.convergence(network(2, "erf"), points(3, 2), (4, 8, 16), 40, progress=False)
    names = "exact mean spread error error_of_error outputs statistic p_value slope slope_error"
    names += " kurtosis expected_kurtosis"
    wide = nngp.FiniteNetwork(network(1, "erf"), width=50)
    X = points(6, 2)
    ensemble = finite.last_layer_ensemble(wide, X, X[:, 0], points(4, 2), n_networks=5)
    return fields(found, names), ensemble


# Data, runs and the paper


@result
def digits() -> Any:
    """The paper's split of the digits, and the images as they come."""
    parts = [datasets.split("digits", 105, test=50), datasets.split("digits")]
    images = datasets.load("digits")
    arrays = [fields(part, "X labels X_val labels_val X_test labels_test") for part in parts]
    pixels = fields(images, "train_images train_labels test_images test_labels class_names")
    rest = parts[0].targets(parts[0].labels), parts[1].first(30).X, datasets.names()
    return arrays, pixels, rest


@result
def tables_in_a_folder() -> Any:
    """UCI tables of three kinds, from files."""
    X, rows = points(12, 3), np.arange(12)
    files: dict[str, dict[str, Any]] = {
        "uci_regression/yacht": {"y": X[:, 0], "test": np.array([[0, 1, 2], [5, 6, 7]])},
        "uci_regression_more/airfoil": {"y": X[:, 1], "fold": rows % 3},
        "uci_classification/iris": {
            "y": rows % 2,
            "cv_train": np.tile(rows[:8], (4, 1)),
            "cv_test": np.tile(rows[8:], (4, 1)),
        },
    }
    with folder() as place:
        for name, arrays in files.items():
            (place / name).parent.mkdir(exist_ok=True)
            np.savez(place / f"{name}.npz", X=X, **arrays)
        kinds = ("uci/yacht", "uci_more/airfoil", "uci_class/iris")
        tables = [datasets.load(name, place) for name in kinds]
    return [fields(one, "X y splits") for one in tables]


@result
def names_of_runs() -> Any:
    """The keys of runs: equal configurations have equal names."""
    configs: list[dict[str, Any]] = [
        {"width": 64, "seed": 0},
        {"width": 64.0, "seed": False},
        {"rate": 1e-3, "of": {"a": [1, 2.5, None], "b": "ä"}, "end": math.inf},
        {"array": np.arange(3), "single": np.float32(0.1), "zero": -0.0},
    ]
    with folder() as place, RunStore(place / "runs.db") as store:
        keys = store.declare("width", configs)
        run = store.claim(keys)
        assert run is not None
        store.finish(run.key, {"accuracy": 0.5, "curve": [1.0, math.inf]}, seconds=1.0)
        store.fail(keys[1], "no", seconds=0.0)
        found = [(run.key, run.config, run.status, run.result) for run in store.runs()]
        return keys, found, store.counts(), store.pending()


@contextmanager
def measured() -> Iterator[Path]:
    """The committed stores as one, in a place where nothing is lost if it is written to."""
    with folder() as place, RunStore(place / "runs.db") as store:
        for packed in sorted(MEASURED.glob("*.db.gz")):
            with gzip.open(packed) as source, (place / packed.stem).open("wb") as target:
                shutil.copyfileobj(source, target)
            store.merge(place / packed.stem)
        yield store.path


@result
def measured_runs() -> Any:
    """All runs of the committed stores, as a store gives them."""
    with measured() as path, RunStore(path, create=False) as store:
        runs = [[run.key, run.config, run.result, run.jitter] for run in store.runs()]
    return json.dumps(runs, sort_keys=True)  # in one piece: there are millions of numbers


@result
def measured_finite_networks() -> Any:
    """Figures 1 and 2 as the committed stores have them."""
    from nngp_paper import finite, plots

    with measured() as path, RunStore(path, create=False) as store:
        of_width = [
            drawn(plots.accuracy_by_width(store, *where))
            for where in (("cifar10", 1000, "relu"), ("mnist", 10_000, "tanh"))
        ]
        train = store.runs("gap", "done")[0].config["train"]
        picture = drawn(plots.generalisation_gap(store, "cifar10", train))
        best = finite.best_of(store.runs("finite", "done"))
    return of_width, picture, [(one.best.key, one.trials) for one in best]


@apart
@result_of("mnist", "cifar10")
def paper_tables(dataset: str) -> Any:
    """Tables 1 and 2 from the committed stores; the runs they need are all there, so that none is
    done."""
    sizes = {"mnist": (), "cifar10": ("--sizes", "1000,10000")}[dataset]
    with measured() as path:
        place = path.parent / "tables"
        shape = ("--dataset", dataset, "--activations", "relu,tanh", "--engine", "cpu", *sizes)
        where = ("--store", path, "--out", place, "--budget", "1s", "--json")
        left = json.loads(paper_command("reproduce", "table1", "table2", *shape, *where))["left"]
        names = [f"{name}-{dataset}.csv" for name in ("table1", "table2")]
        return left, [rows_of((place / name).read_text("utf-8")) for name in names]


@apart
@result
def paper_in_small() -> Any:
    """Runs of three parts of the paper on a few digits, done now, and the table of them."""
    with folder() as place:
        shape = ("--sizes", "20,40", "--depths", "1,2", "--grid", 2, "--activations", "relu")
        where = ("--engine", "cpu", "--store", place / "runs.db", "--out", place, "--json")
        paper_command("reproduce", "table2", "fig3", "fig5", "--dataset", "digits", *shape, *where)
        lines = rows_of((place / "table2-digits.csv").read_text("utf-8"))
        last = lines[0].index("seconds")
        with RunStore(place / "runs.db", create=False) as store:
            runs = [fields(run, "key config result jitter status") for run in store.runs()]
    return runs, [cells[:last] + cells[last + 1 :] for cells in lines]


class Cells(HTMLParser):
    """The cells of all tables of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag in ("td", "th"):
            self.found.append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.found[-1] += f" {data}"


@apart
@result
def paper_report() -> Any:
    """The cells without letters in the tables of the report on the committed stores."""
    with folder() as place:
        stores = sorted(MEASURED.glob("*.db.gz"))
        said = json.loads(paper_command("report", *stores, "-o", place / "page.html", "--json"))
        cells = Cells()
        cells.feed((place / "page.html").read_text("utf-8"))
    numeric = [
        cell.split() for cell in cells.found if re.fullmatch(r"[^A-Za-z]*\d[^A-Za-z]*", cell)
    ]
    return said["shown"], said["missing"], numeric


# Pictures


def drawn(figure: Any) -> Any:
    """The numbers in a picture: lines, areas, dots and images, panel by panel."""
    from matplotlib import pyplot

    out = [
        {
            "lines": [np.asarray(line.get_xydata()) for line in axes.lines],
            "paths": [path.vertices for c in axes.collections for path in c.get_paths()],
            "dots": [np.asarray(c.get_offsets()) for c in axes.collections],
            "images": [np.ma.filled(image.get_array(), np.nan) for image in axes.images],
        }
        for axes in figure.axes
    ]
    pyplot.close(figure)
    return out


@result
def pictures() -> Any:
    """What is drawn of estimators, a training, phases and convergence."""
    from nngp import plots
    from nngp_paper.plots import learning_curve

    X, y = table_of_numbers(60)
    flowers = classifier(selection="evidence")
    labels = np.repeat([0, 1, 2], 20)
    return {
        "intervals": drawn(plots.intervals(regressor(), X, y)),
        "reliability": drawn(plots.reliability(flowers, np.abs(points(60, 4)) + 2, labels)),
        "learning": drawn(learning_curve(trained()[0])),
        "phases": drawn(plots.phase_diagram("erf")),
        "convergence": drawn(plots.convergence(network(1), widths=(4, 8, 16), n_networks=40)),
    }


@result
def pictures_of_kernels() -> Any:
    """What is drawn of a kernel against the angle, and of accuracy against depth."""
    from nngp import plots

    return drawn(plots.angular_structure(network(2))), drawn(plots.accuracy_by_depth())


# The command line


def written(path: Path, n: int, kind: str) -> Path:
    """A table in a file, with a column of words and missing values."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).round(4)
    colour = rng.choice(["red", "green", "blue"], n)
    amount = (np.sin(X[:, 0]) + (colour == "red") + 0.1 * rng.normal(size=n)).round(4)
    target = np.where(amount > 0.5, "high", "low") if kind == "class" else amount.astype(str)
    cells = X.astype(str)
    cells[::17, 1] = ""
    lines = [",".join(row) for row in zip(*cells.T, colour, target, strict=True)]
    path.write_text("\n".join(["a,b,c,colour,price", *lines]) + "\n")
    return path


@apart
@result_of("amount", "class")
def command_line(kind: str) -> Any:
    """Fit a table, predict, evaluate; and what the model's file holds."""
    with folder() as place:
        train, new = written(place / "train.csv", 120, kind), written(place / "new.csv", 30, kind)
        model = place / "model.nngp"
        asked = ("--target", "price", "-o", model, "--budget", 25, "--json")
        said = json.loads(command("fit", train, *asked))
        predicted = rows_of(command("predict", model, new))
        found = json.loads(command("evaluate", model, new, "--json"))
        return numbers_in(said), predicted, numbers_in(found), contents(model)


@apart
@result
def command_line_kernel_and_phase() -> Any:
    """The kernel of a table, and the phases of an activation."""
    with folder() as place:
        np.savetxt(place / "X.csv", points(12, 3), delimiter=",", header="a,b,c", comments="")
        command("kernel", place / "X.csv", "--depth", 2, "--normalize", "-o", place / "K.npy")
        plain = rows_of(command("kernel", place / "X.csv", "--activation", "erf"))
        files = ("--out", place / "phase.svg", "--table", place / "phase.csv")
        said = json.loads(command("phase", "erf", *files, "--json"))
        phases = rows_of((place / "phase.csv").read_text())
        return np.load(place / "K.npy"), plain, numbers_in(said), phases


@apart
@result
def command_line_runs() -> Any:
    """Runs of a committed store, sorted and exported."""
    columns = ("key", "activation", "width", "depth", "val_accuracy", "test_mse")
    asked = ("--experiment", "finite", "--where", "dataset=mnist", "--sort", "val_accuracy")
    with folder() as place:
        words = ("runs", MEASURED / "finite.db.gz", *asked, "--limit", 200)
        said = json.loads(paper_command(*words, "--columns", ",".join(columns), "--json"))
        paper_command(*words, "--export", place / "runs.csv")
        return (
            said["counts"],
            said["matched"],
            said["runs"],
            rows_of((place / "runs.csv").read_text("utf-8")),
        )


# Other engines


@contextmanager
def cpu_as_gpu() -> Iterator[None]:
    """JAX says that its CPU is a GPU: then engine="gpu" computes there, by the code for devices."""
    import jax

    processor = jax.devices("cpu")
    with mock.patch.object(jax, "devices", return_value=processor):
        yield


@result
def device_factor() -> Any:
    """The engine for devices on the CPU: all that a factor gives, and norms that differ."""
    X, Xs, uneven = sphere(200), sphere(20, seed=1), points(100)
    options: dict[str, Any] = {"noise_var": 1e-2, "engine": "gpu"}
    with cpu_as_gpu():
        posterior = nngp.condition(network(), X, answers(X), **options)
        other = nngp.condition(network(2, "erf"), uneven, answers(uneven), **options)
        left_out, gradient = posterior.leave_one_out(), posterior.evidence_gradient(per_layer=True)
        more = posterior.covariance(Xs), posterior.log_evidence, gradient, tuple(left_out)
        said = told(posterior, Xs), told(other, points(20, seed=1))
    return said, more, reported(posterior), reported(other)


@result
def device_conjugate_gradients() -> Any:
    """The same by conjugate gradients."""
    X, Xs, out = sphere(200), sphere(20, seed=1), []
    with cpu_as_gpu():
        for solver in (nngp.CG(rank=60), nngp.CG(preconditioner="single")):
            posterior = nngp.condition(
                network(), X, answers(X), noise_var=1e-2, solver=solver, engine="gpu"
            )
            out.append((told(posterior, Xs), reported(posterior)))
    return out


@result
def cluster() -> Any:
    """Two workers of one thread each: by a factor, also with a store, and without a factor."""
    from distributed import Client, LocalCluster

    X, Xs, single = sphere(400), sphere(30, seed=1), nngp.CG(preconditioner="single")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    options["silence_logs"] = "CRITICAL"  # it would tell of tiles that are gone in the end
    out: list[Any] = []
    with folder() as place, LocalCluster(**options) as workers, Client(workers) as client:
        for solver, store in (("cholesky", None), ("cholesky", place), (single, None)):
            with nngp.DaskEngine(client, 128, store) as engine:
                posterior = nngp.condition(
                    network(), X, answers(X), noise_var=1e-2, solver=solver, engine=engine
                )
                out += [posterior.mean(Xs), posterior.predict(Xs)]
                if posterior.report.solver == "cholesky":
                    out += [posterior.covariance(Xs), posterior.log_evidence]
    return out


# The program


def computed(names: Sequence[str]) -> dict[str, str]:
    """The digest of each result; those that other processes compute come beside the others."""
    with ThreadPoolExecutor(1) as beside:
        waiting = {name: beside.submit(attempted, name) for name in names if name in APART}
        out = {name: attempted(name) for name in names if name not in APART}
        return out | {name: future.result() for name, future in waiting.items()}


def attempted(name: str) -> str:
    """The digest of a result; where there is none, the name of what went wrong."""
    began = time.perf_counter()
    try:
        found = digest(RESULTS[name]())
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        found = f"failed: {type(error).__name__}"
    spent = time.perf_counter() - began
    print(f"{spent:6.2f} s  {found[:16]}  {name}", file=sys.stderr, flush=True)
    return found


def differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names whose digests differ, or that have none."""
    failed = {name for name, found in after.items() if found.startswith("failed")}
    names = before.keys() | after.keys()
    return sorted({name for name in names if before.get(name) != after.get(name)} | failed)


def main() -> int:
    """Compute, write, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--out", type=Path, help="write the digests to this file")
    parser.add_argument("--compare", type=Path, help="compare with the digests in this file")
    parser.add_argument("--only", default="", help="only names that match this expression")
    options = parser.parse_args()
    names = [name for name in RESULTS if re.search(options.only, name)]
    print(f"nngp in {Path(nngp.__file__).parent}", file=sys.stderr)
    began = time.perf_counter()
    found = computed(names)
    print(f"{len(found)} results, {time.perf_counter() - began:.0f} s", file=sys.stderr)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    if options.out is not None:
        options.out.write_text(text)
    elif options.compare is None:
        print(text, end="")
    before = found
    if options.compare is not None:
        known = json.loads(options.compare.read_text())
        before = {name: value for name, value in known.items() if re.search(options.only, name)}
    wrong = differing(before, found)
    for name in wrong:
        print(f"differs: {name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
