"""Infinitely wide networks trained by gradient descent: the distribution of an ensemble of them."""

from nngp.posterior import (
    FunctionSpaceDescent,
    TrainedEnsemble,
    TrainedMatrixEnsemble,
    descend_in_function_space,
    max_learning_rate,
    train_ensemble,
    train_matrix_ensemble,
)

__all__ = [
    "FunctionSpaceDescent",
    "TrainedEnsemble",
    "TrainedMatrixEnsemble",
    "descend_in_function_space",
    "max_learning_rate",
    "train_ensemble",
    "train_matrix_ensemble",
]
