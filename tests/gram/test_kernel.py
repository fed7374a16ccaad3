"""Kernel matrices: both ways agree with a plain recursion, and every odd input is defined."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

import nngp
from nngp._machine import available_memory

RNG = np.random.default_rng(0)
EQUAL = nngp.normalize(RNG.standard_normal((60, 7)))
UNEQUAL = RNG.standard_normal((60, 7)) * RNG.uniform(0.3, 3.0, (60, 1))


def plain_relu(X1, X2, depth, w, b):
    """Eq. 11 of the paper (appendix B), as written, in 80-bit floats."""
    X1, X2 = X1.astype(np.longdouble), X2.astype(np.longdouble)
    d = X1.shape[1]
    cov = b + w * (X1 @ X2.T) / d
    q1, q2 = b + w * (X1**2).sum(1) / d, b + w * (X2**2).sum(1) / d
    pi = np.longdouble("3.14159265358979323846264338327950288")
    for _ in range(depth):
        size = np.sqrt(np.outer(q1, q2))
        theta = np.arccos(np.clip(cov / size, -1, 1))
        cov = b + w / (2 * pi) * size * (np.sin(theta) + (pi - theta) * np.cos(theta))
        q1, q2 = b + w * q1 / 2, b + w * q2 / 2
    return cov


def test_against_the_papers_recursion():
    for X in [EQUAL, UNEQUAL]:
        for depth in [0, 1, 3, 10]:
            net = nngp.Architecture(depth, "relu", 1.6, 0.1)
            exact = plain_relu(X, X, depth, 1.6, 0.1)
            np.testing.assert_allclose(nngp.kernel(net, X), exact, rtol=0, atol=2e-14 * exact.max())
            np.testing.assert_allclose(
                nngp.kernel(net, X[:9], X[20:]), exact[:9, 20:], rtol=0, atol=2e-14 * exact.max()
            )


@pytest.mark.parametrize("name", ["relu", "erf", "gelu", "tanh", "sin", "step"])
def test_curve_and_pairwise_agree(name):
    net = nngp.Architecture(4, name, 1.3, 0.2)
    curve, pairwise = (nngp.kernel(net, EQUAL, method=m) for m in ("curve", "pairwise"))
    np.testing.assert_allclose(curve, pairwise, rtol=0, atol=2e-13 * curve.max())


@pytest.mark.parametrize("name", ["hard_tanh", "elu"])
def test_kinked_numeric_activation_pairwise(name):
    net = nngp.Architecture(2, name, 1.3, 0.2)
    X = EQUAL[:8]
    curve, pairwise = (nngp.kernel(net, X, method=m) for m in ("curve", "pairwise"))
    np.testing.assert_allclose(curve, pairwise, rtol=0, atol=1e-12 * curve.max())


@pytest.mark.parametrize(
    ("X", "name"),
    [
        *product([EQUAL], ["relu", "tanh", "sign", "erf", "gelu"]),
        *product([UNEQUAL], ["relu", "sign", "erf", "gelu"]),
        pytest.param(UNEQUAL, "tanh", marks=pytest.mark.slow),
    ],
)
def test_symmetric_with_the_exact_diagonal(X, name):
    net = nngp.Architecture(5, name, 1.5, 0.1)
    K = nngp.kernel(net, X)
    assert np.array_equal(K, K.T)
    assert np.array_equal(np.diag(K), nngp.kernel_diag(net, X))


def test_duplicates_have_the_value_of_the_diagonal():
    for X in [EQUAL, UNEQUAL]:
        for name, weight_var in [("sign", 1.5), ("erf", 8.0), ("relu", 1.6)]:
            net = nngp.Architecture(30, name, weight_var, 0.0)
            twice = np.concatenate([X[:5], X[:5]])
            K = nngp.kernel(net, twice)
            assert np.array_equal(np.diag(K, 5), np.diag(K)[:5])
            assert np.array_equal(np.diag(nngp.kernel(net, X[:5], X[:5])), np.diag(K)[:5])


def test_near_neighbours_are_told_apart_in_the_chaotic_phase():
    """At distance 1e-9 the cosine rounds to 1; the network is chaotic enough to see it."""
    x = nngp.normalize(RNG.standard_normal((1, 50)))
    direction = RNG.standard_normal((1, 50))
    X = nngp.normalize(np.concatenate([x, x + 1e-9 * direction]))
    net = nngp.Architecture(40, "erf", 50.0, 0.0)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    e = 0.5 * np.sum((unit[0] - unit[1]) ** 2)
    with pytest.warns(nngp.errors.ToleranceWarning, match="may be off by"):
        K = nngp.kernel(net, X)
    assert K[0, 1] == pytest.approx(float(nngp.curves.compile_curve(net)(one_minus=e)), rel=2e-6)
    assert K[0, 1] < 0.9 * K[0, 0]


def test_a_pairwise_kernel_says_when_rounding_was_amplified():
    x = RNG.standard_normal(50)
    X = np.stack([x, (1 + 1e-9) * x + 1e-9 * RNG.standard_normal(50)])
    with pytest.warns(nngp.errors.ToleranceWarning, match="may be off by"):
        nngp.kernel(nngp.Architecture(38, "erf", 20.0, 0.0), X)
    nngp.kernel(nngp.Architecture(38, "erf", 1.0, 0.1), X)  # ordered: nothing to say


def test_the_planned_error_holds_for_the_matrix():
    """Against the curve at cosines computed in 80-bit floats, in a chaotic network."""
    for gap in [1e-1, 1e-2, 6e-3]:
        net = nngp.Architecture(20, "erf", 20.0, 0.0)
        x = RNG.standard_normal((1, 50))
        X = nngp.normalize(np.concatenate([x, x + gap * RNG.standard_normal((30, 50))]))
        unit = X.astype(np.longdouble)
        unit /= np.sqrt((unit**2).sum(axis=1, keepdims=True))
        e = (0.5 * (unit[:1] - unit[1:]) ** 2).sum(axis=1).astype(float)
        curve = nngp.curves.compile_curve(net)
        difference = nngp.kernel(net, X)[0, 1:] - curve(one_minus=e)
        assert np.abs(difference).max() <= nngp.plan_kernel(net, X).error * curve.variance


def test_concurrent_calls_leave_the_thread_count_of_blas_alone():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def counts():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before = counts()
    sizes = [1500, 700, 1200, 900]
    data = [nngp.normalize(RNG.standard_normal((n, 30))) for n in sizes]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda X: nngp.kernel(nngp.Architecture(2), X), data))
    assert counts() == before


def test_inputs_of_every_kind():
    net = nngp.Architecture(2, "relu", 1.6, 0.1)
    K = nngp.kernel(net, UNEQUAL[:4])
    assert np.array_equal(nngp.kernel(net, UNEQUAL[:4].tolist()), K)
    single = UNEQUAL[:4].astype(np.float32)
    assert nngp.kernel(net, single).dtype == np.float64
    np.testing.assert_allclose(nngp.kernel(net, single), K, rtol=1e-5)
    assert np.array_equal(nngp.kernel(net, [[1, 2], [3, 4]]), nngp.kernel(net, [[1.0, 2], [3, 4]]))
    assert nngp.kernel(net, UNEQUAL[:1]).shape == (1, 1)
    for call in (nngp.kernel, nngp.kernel_diag):
        with pytest.raises(ValueError, match=r"reshape\(-1, 1\)"):
            call(net, np.ones(3))
    assert nngp.kernel(net, np.asfortranarray(UNEQUAL)[:, ::2]).shape == (60, 60)


def test_zero_rows():
    for bias_var in [0.0, 0.3]:
        net = nngp.Architecture(3, "relu", 1.6, bias_var)
        X = np.vstack([np.zeros((2, 7)), UNEQUAL[:3]])
        K = nngp.kernel(net, X)
        np.testing.assert_allclose(K, plain_relu_with_zeros(X, 3, 1.6, bias_var), atol=1e-14)
        only_zeros = nngp.kernel(net, np.zeros((3, 7)))
        assert np.ptp(only_zeros) == 0
        assert only_zeros[0, 0] == pytest.approx(K[0, 0], abs=1e-15)
        assert nngp.kernel(net, np.zeros((3, 7)), np.zeros((2, 7))).shape == (3, 2)


def plain_relu_with_zeros(X, depth, w, b):
    with np.errstate(invalid="ignore"):
        K = plain_relu(X, X, depth, w, b)
    return np.where(np.isnan(K), 0.0, K)  # only with b = 0, where a zero row stays zero


def test_bad_inputs_get_a_sentence():
    cases = [
        ([[1.0, np.nan]], ValueError, r"holds nan \(row 0, column 1\)"),
        ([[1.0], [np.inf]], ValueError, r"holds inf \(row 1, column 0\)"),
        (np.empty((0, 3)), ValueError, "is empty"),
        (np.empty((3, 0)), ValueError, "is empty"),
        (np.zeros((2, 3, 4)), ValueError, "must be two-dimensional"),
        (5.0, ValueError, "a single number"),
        ([["a", "b"]], TypeError, "must hold real numbers"),
        ([[1j]], TypeError, "complex"),
        ([[1.0], [2.0, 3.0]], TypeError, "must hold real numbers"),
        ([[1e200, 1.0]], ValueError, "overflows"),
    ]
    for X, error, message in cases:
        with pytest.raises(error, match=message):
            nngp.kernel(nngp.Architecture(1), X)


def test_sparse_and_mismatched_inputs():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="is sparse"):
        nngp.kernel(nngp.Architecture(1), sparse.eye(3))
    with pytest.raises(ValueError, match="X1 has 7 features and X2 has 3"):
        nngp.kernel(nngp.Architecture(1), EQUAL, np.ones((2, 3)))


def test_variances_past_float64_are_refused_both_ways():
    for net in (nngp.Architecture(300, "relu", 1e-6, 0.0), nngp.Architecture(12, "relu3", 0.1, 0)):
        for X in (EQUAL, UNEQUAL):
            with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
                nngp.kernel(net, X)
    with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
        nngp.curves.compile_curve(nngp.Architecture(1, "cube", 1.0, 0.0), 1e-120)


def test_zero_input_without_bias_is_the_same_by_every_way():
    net = nngp.Architecture(3, "step", 3.0, 0.0)
    K = nngp.kernel(net, np.zeros((2, 3)))
    np.testing.assert_allclose(nngp.kernel(net, np.zeros((2, 3)), method="pairwise"), K)


def test_something_that_is_no_architecture():
    with pytest.raises(
        TypeError, match=r"must be an nngp\.Architecture or another network, got str"
    ):
        nngp.kernel("relu", EQUAL)
    with pytest.raises(
        TypeError, match=r"must be an nngp\.Architecture or another network, got str"
    ):
        nngp.kernel_diag("relu", EQUAL)


@pytest.mark.parametrize("X", [EQUAL, UNEQUAL], ids=["equal norms", "unequal norms"])
def test_a_noisy_activation_is_said_whatever_the_norms(X):
    net = nngp.Architecture(2, lambda x: np.tanh(x.astype(np.float32)), 1.5, 0.1)
    with pytest.warns(nngp.errors.ToleranceWarning, match="not computed to float64"):
        nngp.kernel(net, X[:4])


# a jump cannot tell parallel inputs from very near ones by their cosine, so the kernel warns
@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")
def test_parallel_inputs_of_different_norms_are_one_direction():
    """Without bias their correlation is 1: a jump sees no difference between them."""
    for name in ["step", "sign", "relu"]:
        X = np.array([[1.0], [2.0], [1.875], [0.3]])
        K = nngp.kernel(nngp.Architecture(2, name, 0.109375, 0.0), X)
        diagonal = np.sqrt(np.diag(K))
        np.testing.assert_allclose(K, np.outer(diagonal, diagonal), rtol=1e-14)


def test_the_choice_is_visible_and_can_be_forced():
    net = nngp.Architecture(2)
    assert nngp.plan_kernel(net, EQUAL).method == "curve"
    assert nngp.plan_kernel(net, EQUAL).error < 1e-12
    assert nngp.plan_kernel(net, UNEQUAL).method == "pairwise"
    assert nngp.plan_kernel(net, EQUAL, 2 * EQUAL).method == "pairwise"
    with pytest.raises(ValueError, match="needs inputs of equal norm"):
        nngp.kernel(net, UNEQUAL, method="curve")
    with pytest.raises(ValueError, match="method must be one of"):
        nngp.kernel(net, EQUAL, method="best")


def test_too_little_memory_is_said_beforehand(monkeypatch):
    monkeypatch.setattr("nngp._machine.available_memory", lambda: 10_000)
    with pytest.raises(MemoryError, match="use at most 35 points at a time"):
        nngp.kernel(nngp.Architecture(1), EQUAL)


@pytest.mark.slow
@pytest.mark.skipif((available_memory() or 0) < 6e9, reason="needs 6 GB of free memory")
def test_more_points_than_a_whole_matrix_call_survives():
    X = nngp.normalize(RNG.standard_normal((16_000, 5)))
    net = nngp.Architecture(10, "relu", 1.6, 0.1)
    K = nngp.kernel(net, X)
    some = RNG.integers(0, 16_000, (2, 200))
    curve = nngp.curves.compile_curve(net)
    cosines = np.einsum("ij,ij->i", X[some[0]], X[some[1]]) / 5
    np.testing.assert_allclose(K[some[0], some[1]], curve(np.clip(cosines, -1, 1)), rtol=1e-9)
    assert K[123, 15_999] == K[15_999, 123]


def test_normalize():
    X = nngp.normalize(UNEQUAL)
    np.testing.assert_allclose((X**2).mean(axis=1), 1.0, rtol=1e-15)
    centred = nngp.normalize(UNEQUAL, center=True)
    np.testing.assert_allclose(centred.mean(axis=1), 0.0, atol=1e-15)
    np.testing.assert_allclose((centred**2).mean(axis=1), 1.0, rtol=1e-15)
    assert nngp.plan_kernel(nngp.Architecture(1), centred).method == "curve"
    np.testing.assert_allclose(nngp.normalize([[1e200, 1e200]]), 1.0)
    np.testing.assert_allclose(nngp.normalize([[1e-200, 0.0]]), [[np.sqrt(2), 0.0]])
    with pytest.raises(ValueError, match="row 1 is zero"):
        nngp.normalize([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match="row 0 is constant"):
        nngp.normalize([[0.1, 0.1, 0.1]], center=True)


finite = st.floats(-1e3, 1e3).filter(lambda x: x == 0 or abs(x) > 1e-3)


@settings(max_examples=60, deadline=None)
@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 4)), elements=finite),
    depth=st.integers(0, 6),
    name=st.sampled_from(["relu", "erf", "abs", "gelu", "sin", "step", "identity"]),
    weight_var=st.floats(0.1, 5.0),
    bias_var=st.floats(0.0, 2.0).filter(lambda b: b == 0 or b > 1e-200),  # below: VarianceError
)
def test_always_symmetric_finite_and_positive_semidefinite(X, depth, name, weight_var, bias_var):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        K = nngp.kernel(nngp.Architecture(depth, name, weight_var, bias_var), X)
    assert np.isfinite(K).all()
    assert np.array_equal(K, K.T)
    assert all(warning.category is nngp.errors.ToleranceWarning for warning in told)
    if told:  # a jump on nearly parallel inputs of unequal norm: some 1e-8, and it was said
        return
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * max(np.trace(K), 1e-300)


def test_normalized_inputs_of_many_features_have_equal_norms():
    images = np.random.default_rng(0).integers(0, 256, (300, 3072))
    X = nngp.normalize(images, center=True)
    exact = (X.astype(np.longdouble) ** 2).sum(axis=1) / 3072
    assert np.ptp(exact) < 4e-15
    assert nngp.plan_kernel(nngp.Architecture(2, "tanh"), X[:200], X[200:]).method == "curve"


def test_a_variance_past_float64_in_the_first_layer():
    for depth in [0, 2]:
        for equal in [True, False]:
            X = np.random.default_rng(0).normal(size=(4, 3))
            X = 1e10 * (nngp.normalize(X) if equal else X)
            with pytest.raises(nngp.errors.VarianceError, match="the variance of layer 0 is inf"):
                nngp.kernel(nngp.Architecture(depth, "relu", 1e308, 0.0), X)


def several():
    block = nngp.Residual(nngp.Act("erf"), nngp.Dense(0.5, 0.1))
    deep = nngp.Chain(nngp.Dense(1.2, 0.1), nngp.Repeat(block, 4), nngp.Dropout(0.8), nngp.Dense())
    return [deep, nngp.NTK(deep), nngp.Architecture(2, "tanh", 1.5, 0.1)]


@pytest.mark.parametrize("norms", ["equal", "different"])
def test_several_kernels_at_once_are_those_of_one_at_a_time(norms):
    X = np.random.default_rng(0).normal(size=(700, 5))  # more than a tile
    X[1] = X[0]
    X = nngp.normalize(X) if norms == "equal" else X[:40]
    for other in (None, X[::-7]):
        found = nngp.kernels(several(), X, other)
        for net, K in zip(several(), found, strict=True):
            np.testing.assert_array_equal(K, nngp.kernel(net, X, other))


def test_kernels_takes_a_list():
    net = nngp.Architecture(1)
    for wrong in (net, [], "relu"):
        with pytest.raises(TypeError, match=r"takes a list of networks|must be an nngp\.Arch"):
            nngp.kernels(wrong, np.eye(3))
    with pytest.raises(TypeError, match=r"must be an nngp\.Architecture"):
        nngp.kernels([net, 3], np.eye(3))


@pytest.mark.parametrize("norms", [True, False])
def test_kernel_and_tangent_are_those_of_one_at_a_time(norms):
    X = np.random.default_rng(0).standard_normal((9, 4))
    X = nngp.normalize(X) if norms else X
    net = nngp.Architecture(3, "erf", 1.6, 0.1)
    for other in (None, X[:4] + 0.1):
        found = nngp.kernel_and_tangent(net, X, other)
        np.testing.assert_array_equal(found.nngp, nngp.kernel(net, X, other))
        np.testing.assert_array_equal(found.ntk, nngp.kernel(nngp.NTK(net), X, other))
    with pytest.raises(TypeError, match="the network itself"):
        nngp.kernel_and_tangent(nngp.NTK(net), X)
