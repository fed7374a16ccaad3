"""Section 3.2, the other half: what depth costs in arithmetic, and what it need not cost.

Takes labelled images; gives test accuracies by depth three ways. `plain` forms K in float64 and
factors it, as the paper did: once K(x, x') - K(x, x) is below rounding, nothing is left. `kept` is
the library's own inference, with noise relative to the kernel's scale. `limit` is the infinitely
deep network.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from nngp.architecture import Architecture
from nngp.datasets.load import load_images
from nngp.gram import kernel, normalize
from nngp.linsolve.cholesky.ladder import LIMIT, next_noise
from nngp.posterior import condition

Array = NDArray[np.float64]
Labels = NDArray[np.integer]
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500)
NOISE = 1e-10  # the paper's


@dataclass(frozen=True)
class DepthStudy:
    """Test accuracies by depth, and the scale of the kernel, K(x, x) - K(x, x') at a right angle,
    relative to its variance."""

    architecture: Architecture  # the infinitely deep one
    data: str
    train: int
    test: int
    depths: tuple[int, ...]
    plain: Array
    kept: Array
    limit: float
    scale: Array


def depth_study(
    data: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    name: str = "digits",
    activation: str = "relu",
    weight_var: float = 1.0,
    bias_var: float = 0.1,
    depths: Sequence[int] = DEPTHS,
) -> DepthStudy:
    """Inputs and labels to train on, inputs and labels to test on; rows are centred and put on one
    norm, as the authors did."""
    X, X_test = (normalize(np.asarray(part), center=True) for part in data[::2])
    labels, answers = (np.asarray(part) for part in data[1::2])
    Y = np.eye(labels.max() + 1)[labels] - 1 / (labels.max() + 1)
    limit = Architecture(math.inf, activation, weight_var, bias_var)
    rows = [_at_depth(limit.truncated(depth), X, Y, X_test, answers) for depth in depths]
    plain, kept, scale = (np.array(column) for column in zip(*rows, strict=True))
    end = condition(limit, X, Y, noise_var=NOISE).mean(X_test)
    return DepthStudy(
        limit,
        name,
        len(X),
        len(X_test),
        tuple(depths),
        plain,
        kept,
        _accuracy(end, answers),
        scale,
    )


def digits(train: int = 1000) -> tuple[Array, Labels, Array, Labels]:
    """The 8 x 8 digits that come with scikit-learn; all that are not trained on are tested on."""
    stored = load_images("digits")
    images = np.concatenate([stored.train_images, stored.test_images])
    labels = np.concatenate([stored.train_labels, stored.test_labels])
    X = images.reshape(len(images), -1).astype(np.float64)
    return X[:train], labels[:train], X[train:], labels[train:]


def _at_depth(
    net: Architecture, X: Array, Y: Array, X_test: Array, answers: Labels
) -> tuple[float, float, float]:
    posterior = condition(net, X, Y, noise_var=NOISE, relative_noise=True)
    plain = _accuracy(_plain_mean(net, X, Y, X_test), answers)
    share = posterior.report.spread / posterior.report.variance
    return plain, _accuracy(posterior.mean(X_test), answers), share


def _plain_mean(net: Architecture, X: Array, Y: Array, X_test: Array) -> Array:
    """Eq. 8 with K as a float64 matrix, and the paper's noise ladder."""
    K, cross, noise = kernel(net, X), kernel(net, X_test, X), NOISE
    while True:
        try:
            factor = cho_factor(K + noise * np.eye(len(K)), lower=True)
            return np.asarray(cross @ cho_solve(factor, Y))
        except LinAlgError:
            if next_noise(noise) > LIMIT:
                return np.zeros((len(X_test), Y.shape[1]))
            noise = next_noise(noise)


def _accuracy(mean: Array, answers: Labels) -> float:
    return float(np.mean(mean.argmax(axis=1) == answers))
