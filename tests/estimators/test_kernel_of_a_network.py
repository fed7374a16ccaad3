"""`NNGPKernel(network=...)`: a fixed network of any shape as a scikit-learn kernel."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor

import nngp

BLOCK = nngp.Residual(nngp.Act("erf"), nngp.Dense(0.5))
NET = nngp.Chain(nngp.Dense(1.0, 0.1), nngp.Repeat(BLOCK, 3), nngp.Dense(1.0))
X = nngp.normalize(np.random.default_rng(0).standard_normal((12, 4)))


@pytest.mark.parametrize("net", [NET, nngp.NTK(NET)], ids=["nngp", "ntk"])
def test_a_given_network_is_the_kernel_and_stays_as_it_is(net):
    kernel = nngp.NNGPKernel(network=net)
    np.testing.assert_array_equal(kernel(X), nngp.kernel(net, X))
    np.testing.assert_array_equal(kernel.diag(X), nngp.kernel_diag(net, X))
    assert kernel.theta.size == 0
    assert clone(kernel).network == net
    assert kernel(X, eval_gradient=True)[1].shape == (12, 12, 0)
    assert repr(kernel) == f"NNGPKernel(network={net!r})"
    y = X[:, 0] ** 2
    model = GaussianProcessRegressor(kernel, alpha=1e-2).fit(X, y)
    ours = nngp.condition(net, X, y, noise_var=1e-2)
    np.testing.assert_allclose(model.predict(X[:5]), ours.mean(X[:5]), rtol=1e-8)
