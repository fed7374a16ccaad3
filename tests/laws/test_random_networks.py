"""Random networks of all parts, on inputs of all scales, against closed forms in 120 digits: the
value of a pair does not depend on other rows, and errors are at most ten times those reported."""

import warnings

import numpy as np
import pytest
from exact_walk import LAYERS, exact_entries

import nngp
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs

DEFAULT, DEEP = 50, 2000
WITHOUT_SLOPE = {"sign", "step"}  # their slopes have no variance, so no tangent kernel


def random_network(rng, tangent):
    names = sorted(set(LAYERS) - (WITHOUT_SLOPE if tangent else set()))

    def dense():
        return nngp.Dense(2 ** rng.uniform(-2, 2), rng.choice([0.0, rng.uniform(0, 1)]))

    def act():
        return nngp.Act(str(rng.choice(names)))

    def branch():
        """From Gaussian units to units of its own."""
        inner = (nngp.Dropout(rng.uniform(0.3, 1)),) if rng.random() < 0.2 else ()
        norm = (nngp.LayerNorm(),) if rng.random() < 0.2 else ()
        return nngp.Chain(*norm, act(), *inner, dense())

    def block():
        match rng.integers(8):
            case 0 | 1:
                return branch()
            case 2:
                return nngp.Residual(branch())
            case 3:
                return nngp.Sum(branch(), branch(), dense())
            case 4:
                return nngp.Chain(nngp.Product(branch(), branch()), dense())
            case 5:
                share = rng.uniform(0.1, 0.9)
                joined = nngp.Concat(branch(), branch(), shares=(share, 1 - share))
                return nngp.Chain(joined, dense())
            case 6:
                return nngp.Repeat(branch(), int(rng.integers(2, 12)))
            case _:
                smooth = nngp.Act(str(rng.choice(["identity", "erf", "sin", "relu"])))
                return nngp.ContinuousResidual(smooth, dense(), steps=int(rng.integers(4, 9)))

    return nngp.Chain(dense(), *(block() for _ in range(rng.integers(1, 4))))


def random_rows(rng, scale, equal):
    """Two rows, from far to nearly parallel."""
    first, other = rng.standard_normal((2, 5))
    X = np.stack([first, first + 10 ** rng.uniform(-6, 1) * other])
    if equal:
        return nngp.normalize(X) * scale
    return X * scale * 10 ** rng.uniform(-1, 1, (2, 1))


def with_error(net, X):
    """What `nngp.kernel` gives, and the error that it would warn of."""
    matrix = HostMatrix(net, Inputs.of(X), None)
    return matrix.block(slice(0, len(X)), slice(0, len(X))), matrix.error()


def measured(seed):
    """Errors over what was reported: of a pair, and of the same pair in a batch; None where
    variances leave the range of float64."""
    rng = np.random.default_rng(seed)
    tangent, equal = seed % 2 == 1, seed % 4 < 2
    part = random_network(rng, tangent)
    net = nngp.NTK(part) if tangent else part
    scale = 10 ** rng.uniform(-8, 8)
    X = random_rows(rng, scale, equal)
    others = rng.standard_normal((4, 5)) * 10 ** rng.uniform(-8, 8, (4, 1))
    batch = np.concatenate([others[:2], X[:1], others[2:], X[1:]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nngp.errors.ToleranceWarning)
        try:
            (K, alone), (among, together) = (with_error(net, rows) for rows in (X, batch))
        except nngp.errors.VarianceError:
            return None
    exact = exact_entries(part, X, tangent=tangent)
    unit = float(exact[0]) ** 0.5 * float(exact[1]) ** 0.5
    K, among = ([M[i, i], M[j, j], M[i, j]] for M, i, j in ((K, 0, 1), (among, 2, 5)))
    sizes = float(exact[0]), float(exact[1]), unit
    error = max(abs(float(a - b)) / s for a, b, s in zip(exact, K, sizes, strict=True))
    moved = max(abs(a - b) / s for a, b, s in zip(K, among, sizes, strict=True))
    return error / alone, moved / (alone + together), error, alone, part


def check(seeds):
    found = {seed: result for seed in seeds if (result := measured(seed)) is not None}
    assert len(found) > 0.9 * len(seeds)  # most variances stay within float64
    wrong = {s: f for s, f in found.items() if not (f[0] <= 10 and f[1] <= 10)}
    assert not wrong


def test_fifty_random_networks():
    check(range(DEFAULT))


@pytest.mark.deep
def test_two_thousand_random_networks():
    check(range(DEEP))


@pytest.mark.parametrize(
    ("part", "scale"),
    [
        (nngp.Architecture(60, "erf", 6.0, 0.5).chain, 1e-7),
        (nngp.Architecture(2, "sign", 1.3, 0.2).chain, 1e-8),
        (
            nngp.Chain(
                nngp.Dense(1.0),
                nngp.ContinuousResidual(nngp.Act("relu"), nngp.Dense(20.0), steps=30),
            ),
            1.0,
        ),
    ],
    ids=["small inputs, chaos", "small inputs, a jump", "few steps"],
)
def test_errors_that_were_not_reported(part, scale):
    X = scale * np.random.default_rng(0).standard_normal((2, 5))
    exact = [float(entry) for entry in exact_entries(part, X)]
    K, reported = with_error(part, X)
    error = abs(K[0, 1] - exact[2]) / np.sqrt(exact[0] * exact[1])
    assert 1e-6 < error <= 10 * reported
    with pytest.warns(nngp.errors.ToleranceWarning):
        nngp.kernel(part, X)


@pytest.mark.parametrize("name", ["square", "relu2"])
def test_variances_that_overflow_within_a_layer_are_refused(name):
    layer = nngp.Chain(nngp.Act(name), nngp.Dense(1.0))
    net = nngp.Chain(nngp.Dense(1.0), nngp.Repeat(layer, 6))
    with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
        nngp.kernel(net, [[1e8, 0.0], [0.0, 1e8]])
