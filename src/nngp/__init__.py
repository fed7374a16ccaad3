"""nngp: the infinitely wide deep network as a practical tool.

Name a network (depth, activation, weight and bias variance) and get the Gaussian process that it
is in the limit of infinite width (Lee et al., "Deep Neural Networks as Gaussian Processes",
ICLR 2018):

    import nngp
    net = nngp.Architecture(depth=10, activation="relu", weight_var=1.6, bias_var=0.1)
    K = nngp.kernel(net, nngp.normalize(X))

    model = nngp.NNGPRegressor().fit(X, y)
    mean, std = model.predict(X_test, return_std=True)

Modules beside these names: `nngp.images` and `nngp.symmetries` (transformations for
`nngp.Invariant`), `nngp.regimes` (phases and critical lines), `nngp.finite` (networks of finite
width), `nngp.optuna` (a sampler for Optuna), `nngp.plots`, `nngp.errors` (all errors and warnings).
Names that need scikit-learn, JAX, Optuna or Dask are imported on first use.
"""

from typing import TYPE_CHECKING

from nngp import _interrupts as _interrupts, errors, images, symmetries  # interrupts first
from nngp._lazy import lazy_attributes
from nngp.architecture import (
    NTK,
    Act,
    Activation,
    Architecture,
    AvgPool,
    Chain,
    Concat,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Flow,
    GlobalAvgPool,
    Headed,
    Image,
    Invariant,
    LayerNorm,
    Network,
    Product,
    Repeat,
    Residual,
    Sum,
    activation_names,
    leaky_relu,
    network_from_dict,
)
from nngp.covariance import LookupTable, layer_covariance, layer_derivatives
from nngp.curve import AngularCurve, compile_curve, compile_curves
from nngp.errors import (
    ActivationError,
    CheckpointWarning,
    ClusterError,
    ColumnWarning,
    ConstantKernelWarning,
    DuplicateRowsWarning,
    ExtrapolationWarning,
    FewDataWarning,
    LeakageWarning,
    ModelFileError,
    NeverPredictedWarning,
    NoFactorError,
    NoiseWarning,
    NoLimitError,
    NoSignalWarning,
    NotConvergedError,
    NotPositiveDefiniteError,
    TileStoreError,
    ToleranceWarning,
    TreesWarning,
    VarianceError,
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
    FunctionSpaceDescent,
    MatrixPosterior,
    Posterior,
    Trained,
    TrainedMatrices,
    condition,
    condition_matrix,
    descend_in_function_space,
    forecast,
    max_learning_rate,
    sample_prior,
    trained,
    trained_matrices,
)

if TYPE_CHECKING:
    from nngp import finite, optuna, plots, regimes
    from nngp.estimators import NNGPClassifier, NNGPKernel, NNGPRegressor, load
    from nngp.finite.network import FiniteNetwork
    from nngp.linsolve.engines.dask.dask_engine import DaskEngine

__version__ = "0.2.0.dev0"

__all__ = [
    "CG",
    "NTK",
    "Act",
    "Activation",
    "ActivationError",
    "AngularCurve",
    "Architecture",
    "AvgPool",
    "Chain",
    "CheckpointWarning",
    "ClusterError",
    "ColumnWarning",
    "Concat",
    "ConstantKernelWarning",
    "Conv",
    "DaskEngine",
    "Dense",
    "Dropout",
    "DuplicateRowsWarning",
    "ExtrapolationWarning",
    "FewDataWarning",
    "FiniteNetwork",
    "Flatten",
    "Flow",
    "FunctionSpaceDescent",
    "GlobalAvgPool",
    "Headed",
    "Image",
    "Invariant",
    "KernelPair",
    "KernelPlan",
    "LayerNorm",
    "LeakageWarning",
    "LookupTable",
    "MatrixPosterior",
    "ModelFileError",
    "NNGPClassifier",
    "NNGPKernel",
    "NNGPRegressor",
    "Network",
    "NeverPredictedWarning",
    "NoFactorError",
    "NoLimitError",
    "NoSignalWarning",
    "NoiseWarning",
    "NotConvergedError",
    "NotPositiveDefiniteError",
    "Posterior",
    "Product",
    "Repeat",
    "Residual",
    "Sum",
    "TileStoreError",
    "ToleranceWarning",
    "Trained",
    "TrainedMatrices",
    "TreesWarning",
    "VarianceError",
    "__version__",
    "activation_names",
    "compile_curve",
    "compile_curves",
    "condition",
    "condition_matrix",
    "descend_in_function_space",
    "errors",
    "finite",
    "forecast",
    "images",
    "jax_kernel",
    "kernel",
    "kernel_and_tangent",
    "kernel_diag",
    "kernels",
    "layer_covariance",
    "layer_derivatives",
    "leaky_relu",
    "load",
    "max_learning_rate",
    "network_from_dict",
    "normalize",
    "optuna",
    "plan_kernel",
    "plots",
    "regimes",
    "sample_prior",
    "symmetries",
    "trained",
    "trained_matrices",
]

_LAZY = {
    **dict.fromkeys(("NNGPRegressor", "NNGPClassifier", "NNGPKernel", "load"), "nngp.estimators"),
    "DaskEngine": "nngp.linsolve.engines.dask.dask_engine",
    "FiniteNetwork": "nngp.finite.network",
    **{name: f"nngp.{name}" for name in ("finite", "optuna", "plots", "regimes")},
}
if not TYPE_CHECKING:  # a type checker reports a name that is not imported above
    __getattr__, __dir__ = lazy_attributes(__name__, _LAZY, public=__all__)
