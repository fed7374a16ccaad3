"""GPyTorch's exact inference with BoTorch's InfiniteWidthBNNKernel, in float64."""

from typing import Any

import numpy as np
import worker_common as common
from worker_common import Net


class GPyTorch(common.Library):
    modules = ("gpytorch", "botorch", "linear_operator", "torch", "numpy")

    def __init__(self) -> None:
        import botorch.models.kernels
        import gpytorch
        import torch

        torch.set_default_dtype(torch.float64)
        self.torch, self.gpytorch = torch, gpytorch
        self.kernel_class = botorch.models.kernels.InfiniteWidthBNNKernel

    def make_kernel(self, net: Net) -> common.Kernel:
        kernel = self._kernel(net)

        def compute(X: np.ndarray) -> np.ndarray:
            with self.torch.no_grad():
                return np.asarray(kernel(self.torch.from_numpy(X)).to_dense().numpy())

        return compute

    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> common.Predict:
        if relative:
            raise NotImplementedError("no noise in units of the kernel's scale")

        def predict(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> common.Prediction:
            outputs = Y.shape[1:] if Y.ndim > 1 and Y.shape[1] > 1 else ()
            targets = self.torch.from_numpy(np.ascontiguousarray(Y.T if outputs else Y.ravel()))
            model = self._model(net, noise_var, self.torch.from_numpy(X), targets, outputs)
            with self.torch.no_grad():
                posterior = model(self.torch.from_numpy(Xs))
                mean, variance = posterior.mean.numpy(), posterior.variance.numpy()
            facts = {"noise_used": float(model.likelihood.noise.detach().max())}
            if outputs:  # all have the same variance
                return mean.T, variance[0], facts
            return mean.reshape(len(Xs), *Y.shape[1:]), variance, facts

        return predict

    def _model(
        self, net: Net, noise_var: float, X: Any, targets: Any, outputs: tuple[int, ...]
    ) -> Any:
        """One process a column of targets, in one batch: there is no shared kernel matrix."""
        gpytorch, shape = self.gpytorch, self.torch.Size(outputs)

        class Model(gpytorch.models.ExactGP):  # type: ignore[name-defined]
            def __init__(model, likelihood: Any, kernel: Any) -> None:  # noqa: N805
                super().__init__(X, targets, likelihood)
                model.mean, model.kernel = gpytorch.means.ZeroMean(batch_shape=shape), kernel

            def forward(model, inputs: Any) -> Any:  # noqa: N805
                normal = gpytorch.distributions.MultivariateNormal
                return normal(model.mean(inputs), model.kernel(inputs))

        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            batch_shape=shape, noise_constraint=gpytorch.constraints.GreaterThan(0.0)
        )
        likelihood.noise = noise_var
        return Model(likelihood, self._kernel(net, shape)).eval()

    def _kernel(self, net: Net, shape: Any = None) -> Any:
        if net.activation != "relu":
            raise NotImplementedError("InfiniteWidthBNNKernel has relu only")
        kernel = self.kernel_class(depth=net.depth, batch_shape=shape or self.torch.Size())
        kernel.weight_var, kernel.bias_var = net.weight_var, net.bias_var
        return kernel


if __name__ == "__main__":
    common.main(GPyTorch)
