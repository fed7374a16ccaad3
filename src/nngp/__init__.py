"""nngp: the infinitely wide deep network as a practical tool.

Name a network (depth, activation, weight and bias variance) and get the Gaussian process that it
is in the limit of infinite width (Lee et al., "Deep Neural Networks as Gaussian Processes",
ICLR 2018):

    import nngp
    net = nngp.Architecture(depth=10, activation="relu", weight_var=1.6, bias_var=0.1)
    K = nngp.kernel(net, nngp.normalize(X))

The public names, in the order of the pipeline. The estimators are loaded when they are first asked
for, as scikit-learn takes a while to import; so are `nngp.regimes` (phases and critical lines),
`nngp.datasets`, `nngp.finite` and `FiniteNetwork` (networks of finite width), and `RunStore`.
"""

from typing import TYPE_CHECKING, Any

from nngp.architecture import (
    Activation as Activation,
    ActivationError as ActivationError,
    Architecture as Architecture,
    activation_names as activation_names,
    leaky_relu as leaky_relu,
)
from nngp.covariance import (
    LookupTable as LookupTable,
    layer_covariance as layer_covariance,
    layer_derivatives as layer_derivatives,
)
from nngp.curve import (
    AngularCurve as AngularCurve,
    NoLimitError as NoLimitError,
    ToleranceWarning as ToleranceWarning,
    VarianceError as VarianceError,
    compile_curve as compile_curve,
    compile_curves as compile_curves,
)
from nngp.gram import (
    KernelPlan as KernelPlan,
    jax_kernel as jax_kernel,
    kernel as kernel,
    kernel_diag as kernel_diag,
    normalize as normalize,
    plan_kernel as plan_kernel,
)
from nngp.linsolve import (
    CG as CG,
    CheckpointWarning as CheckpointWarning,
    NotConvergedError as NotConvergedError,
    NotPositiveDefiniteError as NotPositiveDefiniteError,
)
from nngp.posterior import (
    ConstantKernelWarning as ConstantKernelWarning,
    NoFactorError as NoFactorError,
    NoiseWarning as NoiseWarning,
    Posterior as Posterior,
    Sweep as Sweep,
    condition as condition,
    forecast as forecast,
    sample_prior as sample_prior,
)

if TYPE_CHECKING:
    from nngp import datasets as datasets, finite as finite, regimes as regimes
    from nngp.linsolve.cluster import DaskEngine as DaskEngine
    from nngp.linsolve.cluster_client import ClusterError as ClusterError
    from nngp.linsolve.tile_store import StoreError as StoreError
    from nngp.predictors import (
        ModelFileError as ModelFileError,
        NNGPClassifier as NNGPClassifier,
        NNGPKernel as NNGPKernel,
        NNGPRegressor as NNGPRegressor,
        load as load,
    )
    from nngp.reproduce.finite.network import FiniteNetwork as FiniteNetwork
    from nngp.reproduce.store import RunStore as RunStore

# names that are loaded when they are first asked for, and where they are; modules are themselves
_LATER = {
    **dict.fromkeys(
        ("NNGPRegressor", "NNGPClassifier", "NNGPKernel", "ModelFileError", "load"),
        "nngp.predictors",
    ),
    "DaskEngine": "nngp.linsolve.cluster",
    "ClusterError": "nngp.linsolve.cluster_client",
    "StoreError": "nngp.linsolve.tile_store",
    "FiniteNetwork": "nngp.reproduce.finite.network",
    "RunStore": "nngp.reproduce.store",
    "datasets": "",
    "finite": "",
    "regimes": "",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LATER:
        raise AttributeError(f"module 'nngp' has no attribute '{name}'")
    home = _LATER[name]
    return getattr(import_module(home), name) if home else import_module(f"nngp.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__version__ = "0.1.0.dev0"
