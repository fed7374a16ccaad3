"""Estimators: scikit-learn's interface to the posterior, and saved models.

One `fit`, file by file:

1. `regressor` or `classifier`, `fit`: check X and y (`training_rows`: weights, known noise), list
   the scalings of `predictive.targets`. A data frame that is not all numbers is encoded by
   `frames`.
2. `estimator`, `_choose_networks`: take the steps 3 to 5.
3. `parameters`, `_check_parameters` and `_candidates`: the networks to choose from.
4. `selection`, `choose`: call `selection.stages`, which calls `selection.maximise` for each
   network, which maximises `selection.objective` over a `selection.space`. The inputs' scaling,
   whitening and maps (`frames`) and the targets' transform are chosen with the network.
5. `fitted_network`, `FittedNetwork.condition`: `posterior.condition` on all rows.
6. Held-out rows decide the rest. `regressor`: `predictive.resolution` and `varying_noise` of the
   noise, `mixing` and `predictive.blend` of networks and widths. `classifier`: `class_model`, with
   one of the likelihoods of `predictive`. Both: `trees`.

The package `predictive` turns scaled predictions into those of the data. `save` and `load`
(`loading`) use `saved`.
`NNGPKernel` is the kernel alone, for scikit-learn's own Gaussian processes.
"""

from typing import TYPE_CHECKING

from nngp._lazy import lazy_attributes
from nngp.errors import ModelFileError

if TYPE_CHECKING:
    from nngp.estimators.classifier import NNGPClassifier
    from nngp.estimators.loading import load
    from nngp.estimators.regressor import NNGPRegressor
    from nngp.estimators.sklearn_kernel import NNGPKernel

__all__ = ["ModelFileError", "NNGPClassifier", "NNGPKernel", "NNGPRegressor", "load"]

# The table of parameters is read without scikit-learn, which takes half a second to import.
__getattr__, __dir__ = lazy_attributes(
    "nngp.estimators",
    {
        "NNGPClassifier": "nngp.estimators.classifier",
        "NNGPKernel": "nngp.estimators.sklearn_kernel",
        "NNGPRegressor": "nngp.estimators.regressor",
        "load": "nngp.estimators.loading",
    },
    public=__all__,
)
