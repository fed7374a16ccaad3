"""Stage 7, estimators: scikit-learn's interface to the posterior, and saved models.

One `fit`, file by file:

1. `regressor` or `classifier`, `fit`: check X and y, make and scale the targets. A data frame
   that is not all numbers is encoded by `columns`.
2. `estimator`, `_fit_process`: take the steps 3 to 5, then `posterior.condition` on all points.
3. `parameters`, `_check_parameters` and `_candidates`: the networks to choose from.
4. `scaling`, `InputScaling.learn`: bring the inputs to one scale.
5. `selection`, `choose`: call `selection.stages`, which calls `selection.climb` for each network,
   which maximises `selection.objective` over a `selection.space`; or `selection.grid`.
6. `classifier`, `_choose_likelihood`: `one_hot_link` or `dirichlet`, by leave-one-out (classifier
   only). `probability` has their integrals, `class_balance` the weights.

`save` and `load` (`loading`) use `model_file`. `calibration` measures predicted probabilities.
`NNGPKernel` is the kernel alone, for scikit-learn's own Gaussian processes.
"""

from nngp.errors import ModelFileError
from nngp.predictors.classifier import NNGPClassifier
from nngp.predictors.loading import load
from nngp.predictors.regressor import NNGPRegressor
from nngp.predictors.sklearn_kernel import NNGPKernel

__all__ = ["ModelFileError", "NNGPClassifier", "NNGPKernel", "NNGPRegressor", "load"]
