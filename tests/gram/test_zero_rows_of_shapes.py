"""Rows of zeros in networks with branches: a branch without biases is exactly zero there, whatever
the others are, and that is no underflow."""

import numpy as np
import pytest

import nngp
from nngp import NTK, Act, Chain, Dense, Product, Sum

ROWS = {"alone": np.zeros((2, 3)), "beside others": np.array([[0.0, 0, 0], [1, 1, 1], [2, 0, 0]])}
BIASED = Chain(Dense(1.0, 0.5), Act("erf"), Dense(1.0))
AT_ZERO = 2 / np.pi * np.arcsin(0.5)  # E[erf(u)²] for u of variance 1/2


@pytest.mark.parametrize("X", ROWS.values(), ids=ROWS.keys())
@pytest.mark.parametrize("wrap", [lambda net: net, NTK], ids=["K", "NTK"])
def test_a_branch_of_zeros_behind_one_that_is_not(wrap, X):
    one = wrap(Sum(BIASED, Dense(0.3)))
    expected = nngp.kernel(wrap(BIASED), X) + nngp.kernel(wrap(Dense(0.3)), X)
    np.testing.assert_allclose(nngp.kernel(one, X), expected, rtol=1e-13)
    if wrap is not NTK:
        np.testing.assert_allclose(nngp.kernel_diag(one, X)[0], AT_ZERO, rtol=1e-13)


def test_a_product_with_zero_is_zero():
    for X in ROWS.values():
        one = Chain(Product(Dense(1.0, 0.5), Dense(2.0)), Dense(1.0))
        gram = X @ X.T / 3
        np.testing.assert_allclose(nngp.kernel(one, X), (0.5 + gram) * 2 * gram, rtol=1e-13)


def test_what_underflows_is_still_an_error():
    for scale in [1.0, [[1.0], [2.0]]]:
        factor = Dense(1e-200)
        one = Chain(Product(factor, factor), Dense(1.0))
        with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
            nngp.kernel(one, np.eye(2) * scale)
