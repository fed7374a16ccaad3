"""Stage 7, estimators: scikit-learn's interface to the posterior, and saved models.

One `fit`, file by file:

1. `regressor` or `classifier`, `fit`: check X and y, make the targets.
2. `estimator`, `_fit_process`: the steps below in their order, then `posterior.condition` on all
   points.
3. `parameters`, `Parameters`: check the constructor's arguments, list the candidate networks.
4. `scaling`, `InputScaling.learn`: bring inputs to one scale.
5. `selection.choose`, `choose`: pick the criterion. For the evidence it runs `selection.stages`,
   which calls `selection.climb` for each network, which evaluates `selection.objective`.
6. `probability`, `best_variance_scale` (classifier only): calibrate the variances.

`load` (`loading`) and `save` share `model_file`. `calibration` measures probabilities. `NNGPKernel`
is the kernel alone, for scikit-learn's own Gaussian processes.
"""

from nngp.errors import ModelFileError
from nngp.predictors.classifier import NNGPClassifier
from nngp.predictors.loading import load
from nngp.predictors.regressor import NNGPRegressor
from nngp.predictors.sklearn_kernel import NNGPKernel

__all__ = ["ModelFileError", "NNGPClassifier", "NNGPKernel", "NNGPRegressor", "load"]
