"""Networks of any shape at unequal norms on a device, against the host."""

import numpy as np
import pytest

pytest.importorskip("jax")

import nngp
from nngp.gram import TRIVIAL_SPLIT, Inputs
from nngp.gram.device.backend import DeviceBackend
from nngp.gram.device.matrix import DeviceMatrix

Act, Dense, Chain = nngp.Act, nngp.Dense, nngp.Chain
SIGNS = nngp.symmetries.signs([0])
BLOCK = nngp.Residual(Act("relu"), Dense(0.5, 0.1))
SHAPES = {
    "residual": Chain(Dense(1.6, 0.1), nngp.Repeat(BLOCK, 6), Dense(1.0)),
    "layer norm": Chain(Dense(1.6, 0.1), nngp.LayerNorm(), Act("erf"), Dense(1.0, 0.1)),
    "product": Chain(
        nngp.Product(Chain(Dense(1.0, 0.1), Act("relu")), Chain(Dense(1.0), Act("erf"))), Dense(1.0)
    ),
    "concatenation": Chain(
        nngp.Concat(Chain(Dense(1.0), Act("relu")), Dense(2.0), shares=(0.3, 0.7)), Dense(1.0, 0.1)
    ),
    "dropout": Chain(Dense(1.6, 0.1), Act("relu"), nngp.Dropout(0.8), Dense(1.0)),
    "signs": nngp.Invariant(nngp.Architecture(2, "erf"), SIGNS),
}


def inputs():
    X = np.random.default_rng(0).normal(size=(9, 4))
    X[3], X[6], X[7] = X[1], 2 * X[1], 0.0  # a duplicate, a parallel input, zeros
    return X


@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")  # parallel inputs
@pytest.mark.parametrize("tangent", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_the_device_walks_networks_of_any_shape(name, tangent):
    X, net = inputs(), SHAPES[name]
    if tangent:
        net = nngp.NTK(net) if net.base is net else nngp.Invariant(nngp.NTK(net.base), SIGNS)
    matrix = DeviceBackend().matrix(net, Inputs.of(X), split=TRIVIAL_SPLIT)
    assert isinstance(matrix, DeviceMatrix)
    block, n = np.asarray(matrix.block(slice(0, 12), slice(0, 12))), len(X)
    expected = nngp.kernel(net, X)
    np.testing.assert_allclose(block[:n, :n], expected, rtol=0, atol=1e-13 * expected.max())
    np.testing.assert_array_equal(block[n:], np.eye(12)[n:])  # beyond the inputs
    assert 0 < matrix.error() < 1e-6


def test_all_networks_of_one_kind_of_operations_share_programs():
    from nngp.gram.device import arrays

    def programs(depth):
        net = Chain(Dense(1.6, 0.1), nngp.Repeat(BLOCK, depth), Dense(1.0))
        before = len(arrays.made)
        DeviceBackend().matrix(net, Inputs.of(inputs())).block(slice(0, 9), slice(0, 9))
        return len(arrays.made) - before

    programs(2)
    assert programs(40) == 0
