"""The authors' pipeline as one dense matrix in any precision, with NumPy and LAPACK.

What `nngp.Sweep` does not offer, because it computes in float64 and closes the table at 1: float32
throughout, and a table that ends at its last correlation. The authors' interpolation does the
latter, so their diagonal is the value at correlation 0.99999.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

import nngp
from nngp.gram.host.lookup import LookupTransform

AT_ONCE = 2000  # test rows
LAST_NOISE = 0.2  # where the authors give up


@dataclass(frozen=True)
class DenseKernel:
    """The kernel of a network through a table; inputs have x·x/d = 1."""

    network: nngp.Architecture
    table: nngp.LookupTable
    dtype: str
    clamped: bool

    def block(self, X: NDArray[np.floating], Z: NDArray[np.floating]) -> NDArray[np.floating]:
        """K of every row of X with every row of Z."""
        layers = LookupTransform(self.network, 1.0, self.table)
        rows = layers.rows.astype(self.dtype)
        if self.clamped:
            rows[:, -1], rows[:, 0] = rows[:, -2], rows[:, 1]
        weights, biases = (a.astype(self.dtype) for a in (layers.weights, layers.biases))
        variances = np.array(layers.variances, self.dtype)
        cov = biases[0] + weights[0] * (X @ Z.T / np.dtype(self.dtype).type(X.shape[1]))
        for k, row in enumerate(rows, start=1):
            cov = layers.layer(np, cov, variances[k - 1], row, weights[k], biases[k])
        return np.asarray(cov, self.dtype)

    def predict(
        self,
        X: NDArray[np.float64],
        Y: NDArray[np.float64],
        X_test: NDArray[np.float64],
        noise_var: float,
    ) -> tuple[NDArray[np.floating], float]:
        """The posterior mean, and the noise that the factorisation needed."""
        X, Y, X_test = (a.astype(self.dtype) for a in (X, Y, X_test))
        factor, noise_var = _factor(self.block(X, X), noise_var)
        weights = scipy.linalg.cho_solve((factor, True), Y, check_finite=False)
        starts = range(0, len(X_test), AT_ONCE)
        parts = [self.block(X_test[s : s + AT_ONCE], X) @ weights for s in starts]
        return np.concatenate(parts), noise_var


def _factor(K: NDArray[np.floating], noise_var: float) -> tuple[NDArray[np.floating], float]:
    """The Cholesky factor with the least noise of the ladder that it succeeds with."""
    while noise_var <= LAST_NOISE:
        noisy = K + K.dtype.type(noise_var) * np.eye(len(K), dtype=K.dtype)
        try:
            factor = scipy.linalg.cholesky(noisy, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            noise_var *= 10
        else:
            return factor, noise_var
    raise ArithmeticError(f"no Cholesky factor with noise up to {LAST_NOISE}")
