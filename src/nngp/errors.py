"""All errors and warnings of the package, in the order of the pipeline.

Every message is one sentence: what was wrong, and what to do. The names are also available as
`nngp.NAME`.
"""

import numpy as np


class ActivationError(ValueError):
    """The activation cannot be used: wrong shape, NaN, or it grows too fast."""


class VarianceError(ValueError):
    """The variance of a layer left the range of float64."""


class NoLimitError(VarianceError):
    """The infinitely deep network has no kernel that tells inputs apart."""


class ToleranceWarning(UserWarning):
    """A curve could not reach the tolerance that was asked for; `error` says what it reached."""


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """The matrix has no Cholesky factor in float64.

    `noise_var` is the largest noise that was tried, `failed_attempts` how often it failed.
    """

    noise_var = float("nan")
    failed_attempts = 0


class NotConvergedError(RuntimeError):
    """Conjugate gradients did not reach the tolerance.

    `iterations` is how many were done, `residual` the relative residual they ended with.
    """

    iterations = 0
    residual = float("nan")


class CheckpointWarning(UserWarning):
    """A checkpoint could not be used, so the solve begins anew; or none can be written."""


class ClusterError(RuntimeError):
    """The cluster cannot be reached, has no workers left, or lost too many of them."""


class TileStoreError(RuntimeError):
    """A tile that was in the store is gone or damaged."""


class NoFactorError(RuntimeError):
    """Something was asked for that needs a Cholesky factor, and there is none."""


class NoiseWarning(UserWarning):
    """More noise was used than asked for, because the Cholesky factorisation failed."""


class ConstantKernelWarning(UserWarning):
    """Noise covers the little that still tells inputs apart, so predictions are constant."""


class ModelFileError(ValueError):
    """A file that is no model of ours, is damaged, or comes from a later version."""


class RunStoreError(ValueError):
    """A file that is no store of ours, is damaged, or comes from a later version."""


class NothingMeasuredError(LookupError):
    """The store has no finished runs of what is to be shown."""
