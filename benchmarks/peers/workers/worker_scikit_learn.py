"""scikit-learn's GaussianProcessRegressor. It has no kernel of a network: another model of the
same size, with RBF (DotProduct for the linear model) and nothing fitted."""

import numpy as np
import worker_common as common
from worker_common import Net


class ScikitLearn(common.Library):
    modules = ("sklearn", "numpy", "scipy")

    def __init__(self) -> None:
        from sklearn import gaussian_process

        self.gp = gaussian_process

    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> common.Predict:
        kernels = self.gp.kernels
        if relative or net.depth > 10:
            raise NotImplementedError("no kernel of a network")

        def predict(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> common.Prediction:
            width = float(np.sqrt(X.shape[1]))
            kernel = kernels.RBF(width) if net.depth > 0 else kernels.DotProduct(1.0)
            model = self.gp.GaussianProcessRegressor(kernel, alpha=noise_var, optimizer=None)
            mean, std = model.fit(X, Y).predict(Xs, return_std=True)
            return mean, std**2, {}

        return predict


if __name__ == "__main__":
    common.main(ScikitLearn)
