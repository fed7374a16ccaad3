"""Variances of predictions, estimated: for means of transformed targets with many training rows.

The mean of a transformed target depends on the variance in second order, and an exact variance
takes n² operations a point. So with more than `MANY` rows it is estimated: the posterior given some
of the rows has a variance v̂ at little cost, and the variance given all rows is taken as exp(a)
v̂^b. The two numbers are fitted to some of the other rows, whose exact variances without themselves
are known, and the rest of these say how large the error is. An estimate depends on its point alone.
"""

from dataclasses import dataclass

import numpy as np

from nngp._arrays import TINY, Array
from nngp.linsolve import Engine
from nngp.posterior import Posterior, condition

MANY = 5000  # training rows from which variances are estimated
SUBSET, PROBES = 2000, 96  # rows of the small posterior; rows whose exact variances are computed


@dataclass(frozen=True)
class VarianceEstimate:
    """Variance of the function behind the observations, at any scaled inputs.

    Attributes
    ----------
    subset : Posterior
        Of the same network, given some of the rows.
    shift, slope : float
        a and b of exp(a) v̂^b.
    error : float
        Root mean square of the error of the logarithm, on rows that a and b were not fitted to.
    """

    subset: Posterior
    shift: float
    slope: float
    error: float

    def __call__(self, Xs: Array) -> Array:
        small = np.maximum(self.subset.variance(Xs), TINY)
        # More rows never make a variance larger.
        return np.minimum(np.exp(self.shift + self.slope * np.log(small)), small)

    @classmethod
    def learn(cls, posterior: Posterior, engine: str | Engine) -> "VarianceEstimate":
        """Learn from a posterior of many rows; always from the same ones."""
        n, noise = posterior.n, posterior.noise_var
        order = np.random.default_rng(0).permutation(n)
        rows, probes = np.sort(order[:SUBSET]), order[SUBSET : SUBSET + PROBES]
        of_rows = noise[rows] if isinstance(noise, np.ndarray) else noise
        subset = condition(
            posterior.network,
            posterior.inputs.take(rows).X,
            posterior.targets[rows],
            noise_var=of_rows,
            solver="cholesky",
            engine=engine,
            progress=False,
        )
        X = posterior.inputs.take(probes).X
        of_probes = np.broadcast_to(noise, n)[probes]
        known = np.maximum(posterior.variance(X), TINY)
        # Without the row itself: precisions of independent observations add up.
        share = np.minimum(known / np.maximum(of_probes, TINY), 1.0 - 1e-6)
        exact, small = np.log(known / (1.0 - share)), np.log(np.maximum(subset.variance(X), TINY))
        fitted, judged = slice(0, None, 2), slice(1, None, 2)
        slope = 1.0
        if small[fitted].std() > 0:
            slope = float(np.clip(np.polyfit(small[fitted], exact[fitted], 1)[0], 0.0, 2.0))
        shift = float((exact - slope * small)[fitted].mean())
        missed = np.minimum(shift + slope * small, small) - exact
        return cls(subset, shift, slope, float(np.sqrt(np.square(missed[judged]).mean())))
