"""Training and test loss of networks against the time of their training."""

from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array
from nngp.gram import Inputs
from nngp.posterior.descent import Descent


@dataclass(frozen=True)
class Losses:
    """Losses |f - Y|² / (2 N), N = rows times outputs, at each time.

    `train` and `test` are those of the mean of all networks. `train_expected` and `test_expected`
    are the means of the losses of single networks: the former plus half the mean variance. Those
    of test points are None where there were none.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(20, 3)))
    >>> net = nngp.Architecture(2, "erf", 2.0, 0.1)
    >>> losses = nngp.trained(net, X, X[:, 0]).losses([0.0, 10.0, 1000.0])
    >>> bool((np.diff(losses.train) < 0).all() and (losses.train <= losses.train_expected).all())
    True
    """

    times: Array
    train: Array
    train_expected: Array
    test: Array | None = None
    test_expected: Array | None = None


def losses(
    descent: Descent, times: Array, test: Inputs | None = None, targets: Array | None = None
) -> Losses:
    """Losses on the training data, and on test points where they are given.

    On the training data the mean has left U ρ UᵀY, where ρ is what is left in each direction, and
    the networks' errors have the covariance U ρ UᵀK U ρ Uᵀ, so no matrix is multiplied.
    """
    n, outputs = descent.targets.shape
    left = np.stack([descent.filter(time).left for time in times]) ** 2
    squares = (descent.rotated_targets**2).sum(axis=1)
    split, ones = descent.prior_split, descent.spectrum.ones
    variances = split.scale * (np.diagonal(descent.rotated_prior) + split.offset * ones**2)
    train = left @ squares / (2.0 * n * outputs)
    expected = train + left @ np.maximum(variances, 0.0) / (2.0 * n)
    if test is None or targets is None:
        return Losses(times, train, expected)
    moments = descent.moments(test, list(times), variance=True)
    own = np.array([float(np.mean((found.mean - targets) ** 2)) / 2 for found in moments])
    spread = np.array([float(np.mean(np.asarray(found.variance))) / 2 for found in moments])
    return Losses(times, train, expected, own, own + spread)
