"""Kernel of a network as a scikit-learn `Kernel`, with theta, bounds and gradients."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from nngp._arrays import Array
from nngp.architecture import Architecture, Network
from nngp.estimators.parameters import ActivationLike
from nngp.gram import Inputs, kernel, kernel_derivatives, kernel_diag

Bounds = tuple[float, float] | str


class NNGPKernel(Kernel):
    """The covariance of a deep network of infinite width.

    For `GaussianProcessRegressor` and `GaussianProcessClassifier`, alone or in sums and products
    with scikit-learn's kernels, and as a plain function K(X, Y) for `SVC(kernel=...)` or, by its
    values, `KernelRidge(kernel="precomputed")`. The network's variances are the hyperparameters.

    Parameters
    ----------
    depth : int or math.inf
        Number of hidden layers. Infinite depth needs inputs of equal norm, and its kernel leaves
        out the constant.
    activation : str, callable or Activation
    weight_var, bias_var : float
        Prior variances, shared by all layers.
    weight_var_bounds, bias_var_bounds : pair of floats or "fixed"
    network : Network, optional
        A network of any shape, or an `NTK`, instead of these four. It stays as it is: there are no
        hyperparameters then.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> X = np.linspace(-2, 2, 15)[:, None]
    >>> model = GaussianProcessRegressor(nngp.NNGPKernel(2, "erf"), alpha=1e-6)
    >>> model = model.fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[0.5]])[0] - np.sin(0.5)) < 1e-2)
    True
    """

    def __init__(
        self,
        depth: int = 2,
        activation: ActivationLike = "relu",
        weight_var: float = 1.6,
        bias_var: float = 0.1,
        weight_var_bounds: Bounds = (1e-3, 1e3),
        bias_var_bounds: Bounds = (1e-5, 1e2),
        network: Network | None = None,
    ) -> None:
        self.depth = depth
        self.activation = activation
        self.weight_var = weight_var
        self.bias_var = bias_var
        self.weight_var_bounds = weight_var_bounds
        self.bias_var_bounds = bias_var_bounds
        self.network = network

    @property
    def hyperparameter_weight_var(self) -> Hyperparameter:
        return self._hyperparameter("weight_var", self.weight_var_bounds)

    @property
    def hyperparameter_bias_var(self) -> Hyperparameter:
        return self._hyperparameter("bias_var", self.bias_var_bounds)

    def _hyperparameter(self, name: str, bounds: Bounds) -> Hyperparameter:
        return Hyperparameter(name, "numeric", "fixed" if self.network is not None else bounds)

    @property
    def network_(self) -> Network:
        """The network with these variances, or the one that was given."""
        if self.network is not None:
            return self.network
        return Architecture(self.depth, self.activation, self.weight_var, self.bias_var)

    def __call__(
        self, X: ArrayLike, Y: ArrayLike | None = None, eval_gradient: bool = False
    ) -> Any:
        """Compute K(X, Y); with `eval_gradient` also d K / d theta, (n, n, len(theta))."""
        if not eval_gradient:
            return kernel(self.network_, X, Y)
        if Y is not None:
            raise ValueError("the gradient can only be evaluated when Y is None")
        K = kernel(self.network_, X)
        free = [h.name for h in self.hyperparameters if not h.fixed]  # in the order of theta
        net, derivatives = self.network_, {}
        if free and isinstance(net, Architecture):  # a given network has nothing free
            derivatives = kernel_derivatives(net, Inputs.of(X))
        parts = [derivatives[name] * getattr(self, name) for name in free]
        return K, np.stack(parts, axis=-1) if parts else np.empty((*K.shape, 0))

    def diag(self, X: ArrayLike) -> Array:
        """Compute K(x, x) of every row.

        Examples
        --------
        >>> import nngp
        >>> nngp.NNGPKernel(depth=0, weight_var=2.0, bias_var=0.5).diag([[1.0, 1.0], [3.0, 1.0]])
        array([ 2.5, 10.5])
        """
        return kernel_diag(self.network_, X)

    def is_stationary(self) -> bool:
        """Whether K depends on the difference of two inputs alone: it does not.

        Examples
        --------
        >>> import nngp
        >>> nngp.NNGPKernel().is_stationary()
        False
        """
        return False

    def __repr__(self) -> str:
        if self.network is not None:
            return f"NNGPKernel(network={self.network!r})"
        return (
            f"NNGPKernel(depth={self.depth}, activation={self.activation!r}, "
            f"weight_var={self.weight_var:.3g}, bias_var={self.bias_var:.3g})"
        )
