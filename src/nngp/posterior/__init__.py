"""Stage 6, inference: the Gaussian process conditioned on data (eq. 7 to 9 of the paper).

One factorisation of K + noise serves everything: mean and variance, covariance and draws, the
evidence and its gradient, leave-one-out, and new rows appended later (`Posterior`). Where no
factor fits, conjugate gradients give means, variances, covariance and draws (`by_cg`). How depth is
kept from spoiling it is derived in `constant`. `trained` is the ensemble of networks that gradient
descent trains instead: `converged` for ever, `descent` for a time.
"""

from nngp.posterior.condition import condition, forecast
from nngp.posterior.draws import sample_prior
from nngp.posterior.given import MatrixPosterior, condition_matrix
from nngp.posterior.posterior import LeaveOneOut, Posterior
from nngp.posterior.report import Report
from nngp.posterior.training.descent import Losses
from nngp.posterior.training.function_space import FunctionSpaceDescent, descend_in_function_space
from nngp.posterior.training.learning_rate import max_learning_rate
from nngp.posterior.training.trained import TrainedEnsemble, train_ensemble
from nngp.posterior.training.trained_matrices import TrainedMatrixEnsemble, train_matrix_ensemble

__all__ = [
    "FunctionSpaceDescent",
    "LeaveOneOut",
    "Losses",
    "MatrixPosterior",
    "Posterior",
    "Report",
    "TrainedEnsemble",
    "TrainedMatrixEnsemble",
    "condition",
    "condition_matrix",
    "descend_in_function_space",
    "forecast",
    "max_learning_rate",
    "sample_prior",
    "train_ensemble",
    "train_matrix_ensemble",
]
