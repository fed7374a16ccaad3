"""dK/d(weight_var) and dK/d(bias_var) of networks of any shape, against differences of kernels."""

import numpy as np
import pytest

import nngp
from nngp.gram import Inputs, kernel_derivatives


def chain(w, b):
    return nngp.Architecture(2, "gelu", w, b)


def residual(w, b):
    block = nngp.Residual(nngp.LayerNorm(), nngp.Act("erf"), nngp.Dense(w, b))
    return nngp.Chain(nngp.Dense(w, b), nngp.Repeat(block, 2), nngp.Dense(w, b))


def product(w, b):
    gate = nngp.Product(nngp.Chain(nngp.Act("erf"), nngp.Dense(w, b)), nngp.Act("relu"))
    return nngp.Chain(nngp.Dense(w, b), gate, nngp.Dropout(0.7), nngp.Dense(w, b))


def tangent(w, b):
    return nngp.NTK(nngp.Architecture(2, "erf", w, b))


def tangent_of_a_residual(w, b):
    return nngp.NTK(residual(w, b))


@pytest.mark.parametrize("shape", [chain, residual, product, tangent, tangent_of_a_residual])
def test_against_differences(shape):
    X = np.random.default_rng(0).normal(size=(9, 3))
    w, b, h = 1.3, 0.2, 1e-5
    found = kernel_derivatives(shape(w, b), Inputs.of(X))
    expected = {
        "weight_var": (nngp.kernel(shape(w + h, b), X) - nngp.kernel(shape(w - h, b), X)) / (2 * h),
        "bias_var": (nngp.kernel(shape(w, b + h), X) - nngp.kernel(shape(w, b - h), X)) / (2 * h),
    }
    for name, matrix in expected.items():
        scale = np.abs(matrix).max()
        np.testing.assert_allclose(found[name] / scale, matrix / scale, atol=1e-8)
