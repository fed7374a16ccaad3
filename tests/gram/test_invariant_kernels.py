"""Kernels averaged over transformations: brute force over both inputs, on every backend."""

from itertools import product

import numpy as np
import pytest

import nngp
from nngp import Act, Chain, Dense, Dropout, images, symmetries
from nngp.gram import TRIVIAL_SPLIT, HostBackend

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((7, 48)), RNG.standard_normal((5, 48))
X[5] = X[0]  # a duplicate
X[6] = images.flips((4, 4, 3)).elements(48)[1](X[1:2])  # the mirror image of another
FAMILIES = {
    "flips": [images.flips((4, 4, 3), probability=0.3)],
    "shifts and flips": [images.shifts(1, (4, 4, 3), width=0.8), images.flips((4, 4, 3))],
    "turns": [images.rotations((3, 4, 4))],
    "colours and signs": [images.colour_order((4, 4, 3)), symmetries.signs([1, 4])],
    "sets": [symmetries.permutations([[0, 1], [5, 6], [9, 3]])],
    "functions": [
        symmetries.functions(lambda X: X[:, ::-1] ** 2 - 0.1, weights=[1, 2]),
        images.flips((4, 4, 3)),
    ],
    "small turns": [images.rotations((4, 4, 3), degrees=20)],
}
NETWORKS = {
    "chain": nngp.Architecture(3, "relu", 1.6, 0.1),
    "tangent": nngp.NTK(nngp.Architecture(2, "erf", 1.6, 0.1)),
    "deep": nngp.Architecture(40, "tanh", 1.3, 0.01),
}


def brute_force(net, families, left, right):
    """Σ w_g w_h k(g x, h x'), from kernels of the network alone."""
    first = sorted(families, key=lambda one: not one.of_functions)
    lists = [list(zip(one.elements(48), one.weights, strict=True)) for one in first]

    def versions(rows):
        for chosen in product(*lists):
            out, weight = rows, 1.0
            for transformation, share in chosen:
                out, weight = transformation(out), weight * share
            yield out, weight

    total = np.zeros((len(left), len(right)))
    for (gx, v), (hy, w) in product(list(versions(left)), list(versions(right))):
        total += v * w * nngp.kernel(net, gx, hy, method="pairwise")
    return total


# Every family, both networks, and both kinds of norms; not every combination.
QUICK = [
    ("chain", "flips", True),
    ("tangent", "flips", False),
    ("chain", "shifts and flips", True),
    ("chain", "turns", False),
    ("tangent", "turns", True),
    ("tangent", "colours and signs", True),
    ("chain", "sets", False),
    ("tangent", "functions", True),
    ("chain", "functions", False),
    ("tangent", "small turns", True),
]
OTHERS = [case for case in product(NETWORKS, FAMILIES, (True, False)) if case not in QUICK]


@pytest.mark.parametrize(
    ("name", "family", "unit"),
    [
        *QUICK,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in OTHERS if case[0] != "deep"),
    ],
)
def test_brute_force(name, family, unit):
    families = FAMILIES[family]
    left, right = (nngp.normalize(rows) if unit else rows for rows in (X, Y))
    net = NETWORKS[name]
    invariant = nngp.Invariant(net, families)
    expected, size = brute_force(net, families, left, left), nngp.kernel_diag(net, left).max()
    K = nngp.kernel(invariant, left)
    np.testing.assert_allclose(K, expected, rtol=0, atol=1e-12 * size)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * size
    crossed = nngp.kernel(invariant, left, right)
    np.testing.assert_allclose(
        crossed, brute_force(net, families, left, right), rtol=0, atol=1e-12 * size
    )
    np.testing.assert_allclose(
        nngp.kernel_diag(invariant, left), np.diagonal(expected), rtol=0, atol=1e-12 * size
    )
    one_norm = unit and family != "functions"
    assert nngp.plan_kernel(invariant, left).method == ("curve" if one_norm else "pairwise")


def test_what_a_full_average_maps_onto_each_other_is_equal():
    K = nngp.kernel(nngp.Invariant(NETWORKS["chain"], images.flips((4, 4, 3))), X)
    np.testing.assert_allclose(K[6], K[1], rtol=1e-13)
    K = nngp.kernel(
        nngp.Invariant(NETWORKS["chain"], symmetries.signs()), np.array([[1.0], [-1.0]])
    )
    np.testing.assert_allclose(K, K[0, 0], rtol=1e-14)


def test_two_sided_functions_that_move_columns_are_one_sided_orders():
    mirror = symmetries.functions(lambda X: X.reshape(-1, 4, 4, 3)[:, :, ::-1].reshape(-1, 48))
    for rows in (X, nngp.normalize(X)):
        by_function = nngp.kernel(nngp.Invariant(NETWORKS["deep"], mirror), rows)
        by_order = nngp.kernel(nngp.Invariant(NETWORKS["deep"], images.flips((4, 4, 3))), rows)
        np.testing.assert_allclose(by_function, by_order, rtol=1e-11)


def test_dropout_jumps_once_on_the_diagonal():
    """The masks of an input and of its mirror image are two draws."""
    net = Chain(Dense(1.5, 0.1), Act("relu"), Dropout(0.5), Dense(1.5, 0.1))
    for rows in (X, nngp.normalize(X)):
        jump = nngp.kernel_diag(net, rows) - np.diagonal(nngp.kernel(net, rows, rows))
        invariant = nngp.Invariant(net, images.flips((4, 4, 3), probability=0.3))
        K, without = nngp.kernel(invariant, rows), nngp.kernel(invariant, rows, rows)
        np.testing.assert_allclose(np.diagonal(K - without), (0.7**2 + 0.3**2) * jump, rtol=1e-10)
        off = ~np.eye(len(rows), dtype=bool)
        np.testing.assert_allclose(K[off], without[off], rtol=1e-13)


def test_several_kernels_at_once():
    net = NETWORKS["chain"]
    both = [net, nngp.Invariant(net, images.flips((4, 4, 3)))]
    for found, one in zip(nngp.kernels(both, X, Y), both, strict=True):
        np.testing.assert_allclose(found, nngp.kernel(one, X, Y), rtol=1e-14)


@pytest.mark.parametrize("family", ["shifts and flips", "functions", "colours and signs"])
@pytest.mark.parametrize("with_head", [False, True])
def test_a_device_averages_over_inputs_of_any_norms(family, with_head):
    """By its own programs, where the activation has a closed form."""
    pytest.importorskip("jax")
    from nngp.gram.device.backend import DeviceBackend
    from nngp.gram.device.matrix import DeviceMatrix

    net = nngp.Invariant(NETWORKS["chain"], FAMILIES[family])
    if with_head:
        net = nngp.WithHead(net, nngp.Architecture(2, "relu", 2.0, 0.1))
    backend = DeviceBackend()
    left, right = backend.inputs(X), backend.inputs(Y)
    for other, expected in ((None, nngp.kernel(net, X)), (right, nngp.kernel(net, X, Y))):
        matrix = backend.matrix(net, left, other, split=TRIVIAL_SPLIT)
        assert isinstance(matrix, DeviceMatrix)
        assert matrix.plan.method == "pairwise"
        block = np.asarray(matrix.block(slice(0, 8), slice(0, 8)))
        found = block[: len(expected), : expected.shape[1]]
        np.testing.assert_allclose(found, expected, rtol=1e-11 if with_head else 1e-12)
        assert matrix.error() < 1e-9


def test_gradient_sums_in_units_of_another_norm():
    """A split may be that of other inputs: the sums are divided by its scale, no more."""
    net = nngp.Invariant(NETWORKS["chain"], FAMILIES["flips"])
    backend, everything = HostBackend(), slice(0, len(X))
    split = backend.matrix(net, backend.inputs(nngp.normalize(X))).split
    G = np.random.default_rng(4).standard_normal((len(X), len(X)))

    def sums(split):
        found = backend.gradient(net, backend.inputs(X), split=split, per_layer=False)
        found.contract(G, everything, everything)
        return {name: value * split.scale for name, value in found.result(G.sum()).items()}

    assert not split.is_trivial
    assert sums(split) == pytest.approx(sums(TRIVIAL_SPLIT), rel=1e-10)


def test_infinite_depth():
    net = nngp.Architecture(np.inf, "tanh", 1.2, 0.1)
    rows, families = nngp.normalize(X), [images.flips((4, 4, 3))]
    mirrored = images.flips((4, 4, 3)).elements(48)[1](rows)
    expected = 0.5 * (nngp.kernel(net, rows, rows) + nngp.kernel(net, rows, mirrored))
    np.testing.assert_allclose(
        nngp.kernel(nngp.Invariant(net, families), rows), expected, rtol=1e-11
    )


def test_as_a_jax_function():
    jax = pytest.importorskip("jax")
    invariant = nngp.Invariant(NETWORKS["chain"], FAMILIES["shifts and flips"])
    with jax.enable_x64(True):
        k = nngp.jax_kernel(invariant)
        found = jax.vmap(lambda x: jax.vmap(lambda y: k(x, y))(Y))(X[:2])
        np.testing.assert_allclose(found, nngp.kernel(invariant, X[:2], Y), rtol=1e-12)
        turned = nngp.jax_kernel(nngp.Invariant(NETWORKS["chain"], symmetries.signs()))
        assert float(turned(X[0], Y[0])) == pytest.approx(float(turned(-X[0], Y[0])), rel=1e-12)
        with pytest.raises(TypeError, match="not inside a JAX program"):
            nngp.jax_kernel(nngp.Invariant(NETWORKS["chain"], lambda X: X))(X[0], Y[0])


def test_functions_of_rows_are_looked_at():
    for wrong, sentence in ((lambda X: X[:, 1:], "keep the shape"), (np.log, "not finite")):
        with (
            np.errstate(invalid="ignore"),
            pytest.raises(ValueError, match=sentence),
        ):
            nngp.kernel(nngp.Invariant(NETWORKS["chain"], wrong), X)

    def careless(rows):
        rows *= 2.0
        return rows

    before = X.copy()
    nngp.kernel(nngp.Invariant(NETWORKS["chain"], careless), X)
    np.testing.assert_array_equal(X, before)


def test_where_the_average_itself_has_no_place():
    invariant = nngp.Invariant(NETWORKS["chain"], images.flips((4, 4, 3)))
    with pytest.raises(TypeError, match="no function of the cosine"):
        nngp.curves.compile_curve(invariant)
    pytest.importorskip("jax")
    with pytest.raises(TypeError, match="cannot be drawn"):
        nngp.FiniteNetwork(invariant, 10)
    assert nngp.regimes.diagnose(invariant) == nngp.regimes.diagnose(invariant.network)
