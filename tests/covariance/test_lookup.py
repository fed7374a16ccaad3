"""The paper's table: its sum is the paper's sum, its exact filling is exact, files are checked."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

import nngp

SMALL = {"n_g": 201, "n_v": 21, "n_c": 30, "s_max": 4.0}


def test_sum_is_the_papers_double_sum():
    table = nngp.curves.LookupTable("tanh", **SMALL, u_max=9.0)
    u = np.linspace(-9.0, 9.0, 201)
    phi = np.tanh(u)
    for i, j in [(1, 0), (3, 29), (10, 14), (20, 7)]:
        s, c = table.grid.variances[i], table.grid.correlations[j]
        inverse = np.linalg.inv([[s, s * c], [s * c, s]])
        form = (
            inverse[0, 0] * u[:, None] ** 2
            + inverse[1, 1] * u**2
            + 2 * inverse[0, 1] * np.outer(u, u)
        )
        weight = np.exp(-0.5 * form)
        expected = phi @ weight @ phi / weight.sum()
        # the inverse loses digits at c = ±0.99999; the rotated form does not
        assert table.values[i, j] == pytest.approx(expected, rel=1e-10)


def test_sum_and_exact_agree_where_nothing_is_cut():
    fine = {"n_g": 2001, "n_v": 21, "n_c": 30, "s_max": 4.0, "max_corr": 0.99}
    by_sum = nngp.curves.LookupTable("tanh", **fine, u_max=16.0)
    exact = nngp.curves.LookupTable("tanh", **fine, fill="exact")
    np.testing.assert_allclose(by_sum.values[1:], exact.values[1:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_sum.at_one[1:], exact.at_one[1:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_sum.at_minus_one, exact.at_minus_one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["relu", "tanh", "elu"])
def test_exact_filling_is_the_integral(name):
    table = nngp.curves.LookupTable(name, n_v=6, n_c=11, s_max=3.0, max_corr=0.9, fill="exact")
    var, corr = table.grid.variances[:, None], table.grid.correlations
    np.testing.assert_allclose(
        table.values, nngp.curves.layer_covariance(name, var, var, corr), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(table(2.4, 1.0), nngp.curves.layer_covariance(name, 2.4, 2.4, 1.0))


@pytest.mark.slow
def test_the_authors_table_is_cut_as_theirs_is():
    table = nngp.curves.LookupTable.authors("relu")
    assert (table.grid.n_g, table.grid.u_max, table.grid.max_corr) == (501, 10.0, 0.99999)
    assert (table.grid.s_min, table.grid.clamp, table.values.shape) == (1e-8, True, (501, 500))
    for var, low in [(10.0, 0.017), (25.0, 0.22), (100.0, 0.71)]:
        assert 1 - table.variance(var) / (var / 2) == pytest.approx(low, abs=0.005)


def test_kernel_by_table_is_near_the_exact_one():
    rng = np.random.default_rng(0)
    X = nngp.normalize(rng.standard_normal((20, 8)))
    numbers = {"depth": 3, "weight_var": 1.6, "bias_var": [0.1, 0.2, 0.3, 0.4]}
    table = nngp.curves.LookupTable("relu", n_v=101, n_c=201, s_max=4.0)
    for scale in (1.0, 1.1):
        K, exact = table.kernel(scale * X, **numbers), kernel_of(table, scale * X, **numbers)
        np.testing.assert_allclose(K, exact, atol=2e-3)
        assert np.array_equal(K, K.T)
        cross = table.kernel(scale * X[:5], scale * X, **numbers)
        np.testing.assert_allclose(cross, K[:5], rtol=1e-12)
    assert table.error < 2e-3


def kernel_of(table, X, **numbers):
    return nngp.kernel(nngp.Architecture(activation=table.activation, **numbers), X)


def test_a_kernel_is_the_recursion_with_the_tables_values(monkeypatch):
    """Eq. 5 written out, in strips of a few rows too."""
    table = nngp.curves.LookupTable("relu", n_g=101, n_v=41, n_c=40, s_max=6.0)
    X = 1.2 * nngp.normalize(np.random.default_rng(1).standard_normal((9, 4)))
    weights, biases, cosines = (1.5, 1.1, 1.9), (0.1, 0.0, 0.3), np.clip(X @ X.T / 5.76, -1, 1)
    layers, q = [biases[0] + weights[0] * 1.44 * cosines], biases[0] + weights[0] * 1.44
    for weight, bias in zip(weights[1:], biases[1:], strict=True):
        layers.append(bias + weight * table(q, layers[-1] / q))
        q = bias + weight * float(table(q, 1.0))
    numbers = {"depth": 2, "weight_var": weights, "bias_var": biases}
    whole = table.kernel(X, **numbers)
    np.testing.assert_allclose(whole, layers[-1], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(whole.diagonal(), [q] * 9)
    found = list(table.recursion(cosines, input_var=1.44, **numbers))
    np.testing.assert_allclose(found, layers, rtol=0, atol=1e-12)
    monkeypatch.setattr("nngp.covariance.lookup.STRIP", 20)
    np.testing.assert_array_equal(table.kernel(X, **numbers), whole)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda table: table.kernel([[1.0, 0.0], [2.0, 0.0]], depth=1), "inputs of equal norm"),
        (lambda table: table.kernel([[1.0]], [[2.0]], depth=1), "inputs of equal norm"),
        (lambda table: table.kernel([[1e200], [1.0]], depth=1), "x·x overflows"),
        (lambda table: table.kernel([[1.0]], [[1.0, 0.0]], depth=1), "1 features and Y has 2"),
        (lambda table: table.kernel([1.0], depth=1), "X must be two-dimensional"),
        (lambda table: table.kernel([[np.nan]], depth=1), "X holds NaN"),
        (lambda table: table.kernel([[1.0]], depth=np.inf), "finite depth"),
        (lambda table: table.kernel([[1.0]], depth=1, weight_var=9.0), "past the table's s_max"),
        (lambda table: table.recursion(1.1, depth=1), "correlations in"),
        (lambda table: table.recursion(0.5, depth=1, input_var=-1.0), "input_var must be finite"),
    ],
)
def test_what_a_table_has_no_kernel_of(call, message):
    with pytest.raises(ValueError, match=message):
        call(nngp.curves.LookupTable("relu", **SMALL))


def test_out_of_range_and_bad_sizes():
    table = nngp.curves.LookupTable("relu", **SMALL)
    with pytest.raises(ValueError, match="past the table's s_max"):
        table(5.0, 0.0)
    with pytest.raises(ValueError, match="n_g must be odd"):
        nngp.curves.LookupTable("relu", n_g=500)
    with pytest.raises(ValueError, match="max_corr must lie between"):
        nngp.curves.LookupTable("relu", max_corr=1.0)
    with pytest.raises(ValueError, match="needs var1 == var2"):
        nngp.curves.layer_covariance("relu", 1.0, 2.0, 0.0, method="lookup")


def test_a_row_is_the_table_at_one_variance():
    """To the ends: beyond the last correlation it goes straight to the table for 1 or -1."""
    from nngp.covariance.lookup import along_row

    table = nngp.curves.LookupTable("relu", n_g=51, n_v=21, n_c=20, s_max=4.0, max_corr=0.9)
    corr = np.concatenate([np.linspace(-1, 1, 41), [-0.97, -0.93, 0.91, 0.99]])
    for var in (0.0, 0.13, 2.0, 4.0):
        found = along_row(table.row(var), 0.9, corr)
        np.testing.assert_allclose(found, table(var, corr), rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="past the table's s_max"):
        table.row(4.1)


@pytest.mark.slow
def test_the_authors_table_makes_near_inputs_equal_in_a_deep_network():
    """The paper's row for MNIST with 200 images: what the report says of differences."""
    table = nngp.curves.LookupTable.authors("tanh")
    numbers = {"depth": 100, "weight_var": 3.99, "bias_var": 2.0}
    angle = np.arccos([1.0, 0.95, 0.9, 0.5])
    X = np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])
    by_table, exact = (
        1 - row / row[0]
        for row in (table.kernel(X, **numbers)[0], kernel_of(table, X, **numbers)[0])
    )
    np.testing.assert_allclose(by_table[1:3], 0.0, atol=1e-6)
    assert by_table[3] > 5e-5
    assert exact[2] > 1e-4


def authors_grid(phi, n_g, n_v, n_c, max_var=100.0, max_gauss=10.0):
    """The tables of `_compute_qmap_grid` in nngp.py of github.com/brain-research/nngp, as it is
    described there: normalised log weights over the square of u, one variance after the other. Its
    published files are binary and not to be had here; this is written from the code that made
    them."""
    z1 = np.linspace(-max_gauss, max_gauss, n_g)[:, None, None]
    z2 = z1.transpose(1, 0, 2)
    var, corr = np.linspace(1e-8, max_var, n_v), np.linspace(-0.99999, 0.99999, n_c)
    qaa, qab = [], []
    for s in var:
        alone = -0.5 * z1[:, 0, 0] ** 2 / s
        qaa.append(phi(z1[:, 0, 0]) ** 2 @ np.exp(alone - logsumexp(alone)))
        pair = -(z1**2 + z2**2 - 2 * z1 * z2 * corr) / (2 * s * (1 - corr**2))
        weights = np.exp(pair - logsumexp(pair, axis=(0, 1)))
        qab.append((phi(z1) * phi(z2) * weights).sum(axis=(0, 1)))
    return var, corr, np.array(qaa), np.array(qab)


def authors_place(nodes, at):
    """Two nodes and their weights, as in interp.py: truncated, the last one repeated at the end,
    weights of one minus the distance, and normalised."""
    spacing = nodes[1] - nodes[0]
    low = int((at - nodes[0]) / spacing)
    pair = [min(low, len(nodes) - 1), min(low + 1, len(nodes) - 1)]
    weights = np.array([1 - abs(at - (nodes[0] + i * spacing)) / spacing for i in pair])
    return list(zip(pair, weights / weights.sum(), strict=True))


def authors_kernel(grid, cosines, depth, weight_var, bias_var):
    """`k_diag` and `k_full` of nngp.py, for each cosine."""
    var, corr, qaa, qab = grid
    out = []
    for cosine in np.ravel(cosines):
        q, k = weight_var + bias_var, weight_var * cosine + bias_var
        for _ in range(depth):
            places = product(authors_place(var, q), authors_place(corr, k / q))
            k = bias_var + weight_var * sum(a * b * qab[i, j] for (i, a), (j, b) in places)
            q = bias_var + weight_var * sum(a * qaa[i] for i, a in authors_place(var, q))
        out.append(k)
    return np.reshape(out, np.shape(cosines))


@pytest.mark.parametrize("name", ["relu", "tanh"])
def test_the_authors_code_gives_the_same_tables_and_kernels(name):
    """For networks on either side of the critical line, of equal points too."""
    sizes = {"n_g": 101, "n_v": 21, "n_c": 40}
    phi = {"relu": lambda u: np.maximum(u, 0), "tanh": np.tanh}[name]
    grid = authors_grid(phi, **sizes)
    table = clamped(name, **sizes, s_max=100.0)
    np.testing.assert_allclose(table.at_one, grid[2], rtol=1e-12, atol=1e-15)
    # their form of the exponent loses digits at c = ±0.99999, ours does not
    np.testing.assert_allclose(table.values, grid[3], rtol=1e-10, atol=1e-13)
    X = nngp.normalize(np.random.default_rng(0).standard_normal((7, 5)))
    X[3], X[4] = X[2], nngp.normalize(X[2:3] + 1e-4)[0]
    for depth, *variances in [(1, 1.6, 0.1), (3, 2.5, 0.4), (20, 2.5, 0.4), (20, 1.0, 1.0)]:
        expected = authors_kernel(grid, X @ X.T / 5, depth, *variances)
        found = table.kernel(X, depth=depth, weight_var=variances[0], bias_var=variances[1])
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_clamped_table_has_no_correlation_above_its_largest():
    """A point and itself count as two points; the variance is that of the one-dimensional table."""
    table = clamped("relu", n_g=801, n_v=5, s_max=4.0)
    assert table(2.0, 1.0) == table(2.0, 0.999999) == table(2.0, 0.99999)
    assert table(2.0, 0.99999) < table.variance(2.0) - 1e-6
    X = nngp.normalize([[1.0, 0.5], [1.0, 0.5 + 1e-6]])
    K = table.kernel(X, depth=2, weight_var=1.6, bias_var=0.4)
    q = 0.4 + 1.6 * table.variance(2.0)
    expected = 0.4 + 1.6 * table(q, (0.4 + 1.6 * table(2.0, 0.99999)) / q)
    np.testing.assert_allclose(K, np.full((2, 2), expected), rtol=1e-14)


def clamped(name, n_g=101, n_v=21, n_c=40, s_max=20.0):
    """A table as the authors' are made, but smaller."""
    return nngp.curves.LookupTable(name, n_g, n_v, n_c, s_max, u_max=10.0, s_min=1e-8, clamp=True)
