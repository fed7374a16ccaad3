"""nngp, from the checkout."""

from typing import Any

import numpy as np
import worker_common as common
from worker_common import Net


class Nngp(common.Library):
    modules = ("nngp", "numpy", "scipy")

    def __init__(self) -> None:
        import nngp

        self.nngp = nngp

    def make_kernel(self, net: Net) -> common.Kernel:
        return lambda X: self.nngp.kernel(self._network(net), X)

    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> common.Predict:
        def predict(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> common.Prediction:
            posterior = self.nngp.condition(
                self._network(net), X, Y, noise_var=noise_var, relative_noise=relative
            )
            mean, variance = posterior.predict(Xs)
            return mean, variance, {"noise_used": posterior.report.noise_var}

        return predict

    def deficits(self, net: Net, X: np.ndarray, K: np.ndarray) -> np.ndarray:
        """From the curve, as `condition` takes them: no difference of two large numbers."""
        curve = self.nngp.curves.compile_curve(self._network(net))
        gaps = ((X - X[0]) ** 2).sum(axis=1) / (2 * X.shape[1])
        return np.asarray(curve.deficit(one_minus=gaps) / curve.variance)

    def _network(self, net: Net) -> Any:
        return self.nngp.Architecture(net.depth, net.activation, net.weight_var, net.bias_var)


if __name__ == "__main__":
    common.main(Nngp)
