"""NumPy and SciPy by hand: what one writes in twenty lines, in place where that is easy."""

import numpy as np
import worker_common as common
from worker_common import Net


class SciPy(common.Library):
    modules = ("scipy", "numpy")

    def __init__(self) -> None:
        import scipy.linalg

        self.linalg = scipy.linalg

    def make_kernel(self, net: Net) -> common.Kernel:
        if net.activation == "product":  # the bare product that every kernel needs
            return lambda X: X @ X.T
        return lambda X: covariance(net, X, X)

    def make_predict(self, net: Net, noise_var: float, relative: bool = False) -> common.Predict:
        if relative:
            raise NotImplementedError("no noise in units of the kernel's scale")

        def predict(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> common.Prediction:
            K, cross = covariance(net, X, X), covariance(net, X, Xs)
            K[np.diag_indices(len(X))] += noise_var
            L = self.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
            mean = cross.T @ self.linalg.cho_solve((L, True), Y)
            V = self.linalg.solve_triangular(L, cross, lower=True, check_finite=False)
            return mean, variances(net, Xs)[-1] - np.einsum("ij,ij->j", V, V), {}

        return predict


def variances(net: Net, X: np.ndarray) -> list[np.ndarray]:
    """K(x, x) after each layer."""
    q = [net.bias_var + net.weight_var * np.einsum("ij,ij->i", X, X) / X.shape[1]]
    for _ in range(net.depth):
        q.append(net.bias_var + net.weight_var * q[-1] / 2)
    return q


def covariance(net: Net, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """The arc-cosine recursion of a relu network."""
    if net.activation != "relu":
        raise NotImplementedError("written by hand for relu only")
    K = X @ Z.T
    K *= net.weight_var / X.shape[1]
    K += net.bias_var
    for q, p in zip(variances(net, X)[:-1], variances(net, Z)[:-1], strict=True):
        size = np.sqrt(np.outer(q, p))
        c = np.clip(K / size, -1, 1)
        K = np.sqrt(1 - c * c) + (np.pi - np.arccos(c)) * c
        K *= size
        K *= net.weight_var / (2 * np.pi)
        K += net.bias_var
    return K


if __name__ == "__main__":
    common.main(SciPy)
