"""All errors and warnings of the package, in the order of the pipeline.

Every message is one sentence: what was wrong, and what to do.
"""

import numpy as np


class ActivationError(ValueError):
    """The activation cannot be used: wrong shape, NaN, or it grows too fast."""


class VarianceError(ValueError):
    """The variance of a layer left the range of float64."""


class NoLimitError(VarianceError):
    """The infinitely deep network has no kernel that tells inputs apart."""


class ToleranceWarning(UserWarning):
    """A curve did not reach the requested tolerance; its `error` is the tolerance reached."""


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """The matrix has no Cholesky factor in float64.

    `noise_var` is the largest noise tried, `failed_attempts` the number of failures.
    """

    noise_var = float("nan")
    failed_attempts = 0


class NotConvergedError(RuntimeError):
    """Conjugate gradients did not reach the tolerance.

    `iterations` is their number, `residual` the last relative residual.
    """

    iterations = 0
    residual = float("nan")


class CheckpointWarning(UserWarning):
    """A checkpoint cannot be read, so the solve starts again; or it cannot be written."""


class ClusterError(RuntimeError):
    """The cluster cannot be reached, has no workers left, or lost too many of them."""


class TileStoreError(RuntimeError):
    """A tile of the store was removed or damaged while it was in use."""


class NoFactorError(RuntimeError):
    """The quantity needs a Cholesky factor, and the system was solved without one."""


class NoiseWarning(UserWarning):
    """More noise than requested was used, because the Cholesky factorisation failed."""


class ConstantKernelWarning(UserWarning):
    """The kernel is constant up to the noise, so predictions are constant, too."""


class ColumnWarning(UserWarning):
    """A column of a table was left out, lacks values, or holds some that training did not."""


class FewDataWarning(UserWarning):
    """The data say nothing about noise and scale, so intervals come from assumed ones."""


class DuplicateRowsWarning(UserWarning):
    """Rows repeat each other, inputs and targets."""


class NeverPredictedWarning(UserWarning):
    """A class was predicted for none of the rows that were left out."""


class ExtrapolationWarning(UserWarning):
    """Rows to predict lie far outside the range of the training data."""


class LongJobWarning(UserWarning):
    """The kernel matrix of a network of images would take days on this machine."""


class TreesWarning(UserWarning):
    """Trees predict rows of the training data that are left out better than the model does."""


class LeakageWarning(UserWarning):
    """One column explains the target almost perfectly, as a copy of the target would."""


class NoSignalWarning(UserWarning):
    """Held-out rows are predicted no better than without any inputs."""


class ModelFileError(ValueError):
    """A file is no saved nngp model, is damaged, or was written by a later version."""
