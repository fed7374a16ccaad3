import gpytorch
import numpy as np
import torch
from botorch.models.kernels import InfiniteWidthBNNKernel

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
X, y, X_test = (torch.from_numpy(rng.standard_normal(s)) for s in ((20, 4), (20,), (3, 4)))


class Network(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = InfiniteWidthBNNKernel(depth=3)
        self.covar_module.weight_var = 1.6
        self.covar_module.bias_var = 0.1

    def forward(self, x):
        mean, covariance = self.mean_module(x), self.covar_module(x)
        return gpytorch.distributions.MultivariateNormal(mean, covariance)


likelihood = gpytorch.likelihoods.GaussianLikelihood()
likelihood.noise = 1e-2
model = Network(X, y, likelihood)
model.eval()
with torch.no_grad():
    posterior = model(X_test)
    print("mean", posterior.mean.tolist())
    print("variance", posterior.variance.tolist())
model.train()
log_likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
print("log_evidence", [len(y) * log_likelihood(model(X), y).item()])
