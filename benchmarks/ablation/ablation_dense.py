"""The authors' pipeline as one dense matrix in any precision, with NumPy and LAPACK.

What `nngp.curves.LookupTable.kernel` does not offer, because it computes in float64 and closes the
table at 1: float32 throughout, and a table that ends at its last correlation. The authors'
interpolation does the latter, so their diagonal is the value at correlation 0.99999.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

import nngp
from nngp.covariance.lookup import along_row

AT_ONCE = 2000  # test rows
LAST_NOISE = 0.2  # where the authors give up


@dataclass(frozen=True)
class DenseKernel:
    """The kernel of a network through a table; inputs have x·x/d = 1."""

    network: nngp.Architecture
    table: nngp.curves.LookupTable
    dtype: str
    clamped: bool

    def block(self, X: NDArray[np.floating], Z: NDArray[np.floating]) -> NDArray[np.floating]:
        """K of every row of X with every row of Z."""
        number, max_corr = np.dtype(self.dtype).type, self.table.grid.max_corr
        (weight, bias), *layers = zip(self.network.weight_vars, self.network.bias_vars, strict=True)
        cov = number(bias) + number(weight) * (X @ Z.T / number(X.shape[1]))
        variance = bias + weight
        for weight, bias in layers:
            row = self.table.row(variance).astype(self.dtype)
            if self.clamped:
                row[-1], row[0] = row[-2], row[1]
            corr = np.clip(cov / number(variance), -1.0, 1.0)
            cov = number(bias) + number(weight) * along_row(row, max_corr, corr)
            variance = bias + weight * self.table.variance(variance)
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
