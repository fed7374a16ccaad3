"""Factor, inverse and product of a whole matrix by several threads, against NumPy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from nngp.errors import NotPositiveDefiniteError
from nngp.linsolve import dense


@pytest.mark.parametrize(("n", "threads"), [(1, 3), (300, 0), (768, 3), (1025, 0), (1025, 3)])
def test_factor_inverse_and_product(n, threads):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n))
    K = A @ A.T + n * np.eye(n)
    lower = np.tril(K) + np.triu(rng.standard_normal((n, n)), 1)  # what is above is not read
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        given = pool if threads else None
        L = dense.factor(lower.copy(), given)
        np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=1e-11, atol=1e-11)
        P = dense.mirror(dense.inverse(L, given))
        np.testing.assert_allclose(P, np.linalg.inv(K), rtol=1e-9, atol=1e-14)
        np.testing.assert_array_equal(P, P.T)
        np.testing.assert_allclose(dense.product(K, A, given), K @ A, rtol=1e-12, atol=1e-8)


def test_a_matrix_that_is_not_positive():
    for at in (3, 500, 999):
        K = np.eye(1000)
        K[at, at] = -1.0
        with ThreadPoolExecutor(2) as pool, pytest.raises(NotPositiveDefiniteError):
            dense.factor(K, pool)
