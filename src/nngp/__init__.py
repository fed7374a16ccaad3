"""nngp: neural network Gaussian processes, that is, deep networks of infinite width.

(Not the nearest-neighbour Gaussian process of spatial statistics, which has the same acronym.)

A network whose layers become infinitely wide is a Gaussian process (Lee et al., "Deep Neural
Networks as Gaussian Processes", ICLR 2018). Fit one to a table, or describe one and compute:

    import nngp
    model = nngp.NNGPRegressor().fit(X, y)
    mean, std = model.predict(X_test, return_std=True)

    net = nngp.Architecture(depth=10, activation="relu", weight_var=1.6, bias_var=0.1)
    K = nngp.kernel(net, nngp.normalize(X))
    posterior = nngp.condition(net, nngp.normalize(X), y, noise_var=1e-2)

For tables      NNGPRegressor, NNGPClassifier, NNGPKernel, load
Networks        Architecture; Chain of Dense, Act, Residual, Repeat, Sum, Product, Concat,
                LayerNorm, Dropout, ContinuousResidual; Image, Conv, AvgPool, GlobalAvgPool,
                Flatten; NTK, Invariant, WithHead; Activation; Network (their base class)
Kernels         kernel, kernel_and_tangent, kernel_diag, kernels, normalize, jax_kernel;
                plan_kernel, KernelPlan, KernelPair
Inference       condition, Posterior, condition_matrix, MatrixPosterior, sample_prior, forecast
Large problems  CG, DaskEngine
Finite width    FiniteNetwork

Modules: `activations`, `curves` (one layer, all layers as one curve), `errors` (all errors and
warnings), `finite`, `images` and `symmetries` (transformations for Invariant), `optuna` (a
sampler), `plots`, `regimes` (phases and critical lines), `training` (ensembles trained by gradient
descent). What needs scikit-learn, JAX or Dask is imported when it is first used. Each name has a
docstring with an example: `help(nngp.kernel)`.
"""

from typing import TYPE_CHECKING

from nngp import (  # interrupts first
    _interrupts as _interrupts,
    activations,
    curves,
    errors,
    images,
    symmetries,
    training,
)
from nngp._lazy import lazy_attributes
from nngp.architecture import (
    NTK,
    Act,
    Activation,
    Architecture,
    AvgPool,
    Chain,
    Concat,
    ContinuousResidual,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Image,
    Invariant,
    LayerNorm,
    Network,
    Product,
    Repeat,
    Residual,
    Sum,
    WithHead,
)
from nngp.gram import (
    KernelPair,
    KernelPlan,
    jax_kernel,
    kernel,
    kernel_and_tangent,
    kernel_diag,
    kernels,
    normalize,
    plan_kernel,
)
from nngp.linsolve import CG
from nngp.posterior import (
    MatrixPosterior,
    Posterior,
    condition,
    condition_matrix,
    forecast,
    sample_prior,
)

if TYPE_CHECKING:
    from nngp import finite, optuna, plots, regimes
    from nngp.estimators import NNGPClassifier, NNGPKernel, NNGPRegressor, load
    from nngp.finite.network import FiniteNetwork
    from nngp.linsolve.engines.dask.dask_engine import DaskEngine

__version__ = "0.2.0"

__all__ = [
    "CG",
    "NTK",
    "Act",
    "Activation",
    "Architecture",
    "AvgPool",
    "Chain",
    "Concat",
    "ContinuousResidual",
    "Conv",
    "DaskEngine",
    "Dense",
    "Dropout",
    "FiniteNetwork",
    "Flatten",
    "GlobalAvgPool",
    "Image",
    "Invariant",
    "KernelPair",
    "KernelPlan",
    "LayerNorm",
    "MatrixPosterior",
    "NNGPClassifier",
    "NNGPKernel",
    "NNGPRegressor",
    "Network",
    "Posterior",
    "Product",
    "Repeat",
    "Residual",
    "Sum",
    "WithHead",
    "__version__",
    "activations",
    "condition",
    "condition_matrix",
    "curves",
    "errors",
    "finite",
    "forecast",
    "images",
    "jax_kernel",
    "kernel",
    "kernel_and_tangent",
    "kernel_diag",
    "kernels",
    "load",
    "normalize",
    "optuna",
    "plan_kernel",
    "plots",
    "regimes",
    "sample_prior",
    "symmetries",
    "training",
]

_LAZY = {
    **dict.fromkeys(("NNGPRegressor", "NNGPClassifier", "NNGPKernel", "load"), "nngp.estimators"),
    "DaskEngine": "nngp.linsolve.engines.dask.dask_engine",
    "FiniteNetwork": "nngp.finite.network",
    **{name: f"nngp.{name}" for name in ("finite", "optuna", "plots", "regimes")},
}
if not TYPE_CHECKING:  # a type checker reports a name that is not imported above
    __getattr__, __dir__ = lazy_attributes(__name__, _LAZY, public=__all__)
    del __all__  # with it `help(nngp)` would print the docstrings of all names, thousands of lines
