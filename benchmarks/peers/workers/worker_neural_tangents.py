"""neural-tangents, jitted, in float64."""

import os
import warnings
from typing import Any

import numpy as np
import worker_common as common
from worker_common import Net

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
DEGREE = 25  # of Gauss-Hermite quadrature, what its documentation advises to start with


class NeuralTangents(common.Library):
    modules = ("neural_tangents", "jax", "jaxlib", "numpy")

    def __init__(self) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        import neural_tangents

        self.jax, self.nt = jax, neural_tangents

    def make_kernel(self, net: Net) -> common.Kernel:
        kernel = self._kernel_fn(net)
        return lambda X: np.asarray(kernel(X, None, "nngp").block_until_ready())

    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> common.Predict:
        if relative:
            raise NotImplementedError("no noise in units of the kernel's scale")
        kernel = self._kernel_fn(net)

        def predict(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> common.Prediction:
            targets = Y.reshape(len(X), -1)
            posterior = self.nt.predict.gradient_descent_mse_ensemble(
                kernel, X, targets, diag_reg=noise_var, diag_reg_absolute_scale=True
            )
            found = posterior(x_test=Xs, get="nngp", compute_cov=True)
            mean = np.asarray(found.mean).reshape(len(Xs), *Y.shape[1:])
            return mean, np.diagonal(np.asarray(found.covariance)), {}

        return predict

    def _kernel_fn(self, net: Net) -> Any:
        stax = self.nt.stax
        layers: list[Any] = []
        for _ in range(net.depth):
            layers += [self._dense(net), self._activation(net.activation)]
        kernel = stax.serial(*layers, self._dense(net))[2]
        if not self.compiles:
            return kernel
        return self.jax.jit(kernel, static_argnums=(2,), static_argnames=("get",))

    def _dense(self, net: Net) -> Any:
        return self.nt.stax.Dense(1, W_std=net.weight_var**0.5, b_std=net.bias_var**0.5)

    def _activation(self, name: str) -> Any:
        exact = {"relu": "Relu", "erf": "Erf", "gelu": "Gelu"}
        if name in exact:
            return getattr(self.nt.stax, exact[name])()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that the error is not known
            return self.nt.stax.ElementwiseNumerical(getattr(self.jax.numpy, name), deg=DEGREE)


if __name__ == "__main__":
    common.main(NeuralTangents)
