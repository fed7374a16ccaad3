"""An Architecture equals its spelled-out chain to the bit: curves, derivatives, kernels, Θ."""

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
X = nngp.normalize(np.concatenate([RNG.normal(size=(5, 4)), np.eye(4)[:1], -np.eye(4)[:1]]))
X[1] = X[0]  # equal rows
X[2] = X[0] + 1e-7 * X[3]
X = nngp.normalize(X)
UNEQUAL = X * np.linspace(0.5, 2.0, len(X))[:, None]
COSINES = np.concatenate([np.linspace(-1, 1, 41), [1 - 1e-9, -(1 - 1e-9), 1e-300]])
JUMPS = ("sign", "step")
CUT = ("hard_tanh", "relu6")  # derivatives of Θ take minutes: phi' has two jumps or more
NUMBERS = {0: (1.3, 0.2), 1: (1.4, 0.1), 3: ((1.0, 1.3, 0.8, 1.1), (0.1, 0.0, 0.3, 0.2))}
# One with a kink, one that jumps, one smooth, one without a closed form; a layer of the others is
# compared with exact values elsewhere.
TYPICAL = ("relu", "sign", "erf", "tanh")
OTHERS = [name for name in nngp.activations.names() if name not in TYPICAL]


def assert_same(one, other):
    """Equal to the bit, whatever they are made of."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_same(one[name], other[name])
    else:
        np.testing.assert_array_equal(one, other, strict=True)


def curve_numbers(net):
    curve = nngp.curves.compile_curve(net, 0.9, tol=1.0)
    numbers = [curve.variance, curve.error, curve.deficit_error, curve.scale, curve.offset]
    return {
        "numbers": np.array(numbers),
        "values": curve(COSINES),
        "deficits": curve.deficit(one_minus=np.geomspace(1e-290, 2, 50)),
    }


def derivatives(net):
    curve = nngp.curves.compile_curve(net, 0.9, tol=1.0)
    return {
        "slope": curve.derivative(COSINES),
        "alike": curve.sensitivity(COSINES),
        "each": curve.sensitivity(COSINES, per_layer=True),
    }


def kernel_numbers(net, rows):
    return {
        "matrix": nngp.kernel(net, rows),
        "rectangle": nngp.kernel(net, rows, rows[:3]),
        "diagonal": nngp.kernel_diag(net, rows),
    }


def pairs(name, depth):
    net = nngp.Architecture(depth, name, *NUMBERS[depth])
    if name == "exp" and depth == 3:  # three exponentials exceed float64
        with pytest.raises(nngp.errors.VarianceError, match="past the range"):
            nngp.kernel(net, X)
        return []
    tangents = [] if name in JUMPS else [(nngp.NTK(net), nngp.NTK(net.chain))]
    return [(net, net.chain), *tangents]


def all_pairs(names, depth):
    return [(name, pair) for name in names for pair in pairs(name, depth)]


@pytest.mark.parametrize(
    "names", [TYPICAL, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["typical", "others"]
)
@pytest.mark.parametrize("depth", NUMBERS)
def test_curves(names, depth):
    for name, (net, chain) in all_pairs(names, depth):
        assert_same(curve_numbers(net), curve_numbers(chain))
        if name not in CUT or not net.is_tangent:
            assert_same(derivatives(net), derivatives(chain))


@pytest.mark.parametrize(
    "names", [TYPICAL, pytest.param(OTHERS, marks=pytest.mark.deep)], ids=["typical", "others"]
)
@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")
def test_kernels(names):
    for _, (net, chain) in all_pairs(names, 3):
        for rows in (X, UNEQUAL[[0, 1, 3, 4]]):
            assert_same(kernel_numbers(net, rows), kernel_numbers(chain, rows))


def test_repeated_layers_are_the_same_too():
    layer = nngp.Chain(nngp.Act("relu"), nngp.Dense(1.6, 0.1))
    chain = nngp.Chain(nngp.Dense(1.6, 0.1), nngp.Repeat(layer, 20))
    net = nngp.Architecture(20, "relu", 1.6, 0.1)
    assert chain.graph == net.graph == net.chain.graph
    assert_same(curve_numbers(net), curve_numbers(chain))
    assert_same(derivatives(net), derivatives(chain))
