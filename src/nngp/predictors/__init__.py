"""Stage 7, estimators: scikit-learn's interface to the posterior, and models in files.

`NNGPRegressor` and `NNGPClassifier` scale the data (`scaling`), choose a network by themselves
(`search` over a `space`), condition it on everything, and predict with their doubt. Probabilities
of classes are exact integrals (`probability`), checked by `calibration`. `NNGPKernel` is the kernel
alone, for scikit-learn's own Gaussian processes. `saved` writes and reads models.
"""

from nngp.predictors.classifier import NNGPClassifier
from nngp.predictors.regressor import NNGPRegressor
from nngp.predictors.saved import load
from nngp.predictors.sklearn_kernel import NNGPKernel

__all__ = ["ModelFileError", "NNGPClassifier", "NNGPKernel", "NNGPRegressor", "load"]
