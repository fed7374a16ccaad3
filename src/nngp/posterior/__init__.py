"""Stage 6, inference: the Gaussian process conditioned on data (eq. 7 to 9 of the paper).

One factorisation of K + noise serves everything: mean and variance, covariance and draws, the
evidence and its gradient, leave-one-out, and new rows appended later (`Posterior`). Where no
factor fits, conjugate gradients give means, variances, covariance and draws (`by_cg`). `Sweep`
runs many networks over one data set and computes its inner products once. How depth is kept from
spoiling it is derived in `constant`.
"""

from nngp.posterior.condition import condition, forecast
from nngp.posterior.draws import sample_prior
from nngp.posterior.posterior import LeaveOneOut, Posterior
from nngp.posterior.report import Report
from nngp.posterior.sweep import Sweep, sweep_bytes
from nngp.posterior.sweep_scores import SweepResult

__all__ = [
    "LeaveOneOut",
    "Posterior",
    "Report",
    "Sweep",
    "SweepResult",
    "condition",
    "forecast",
    "sample_prior",
    "sweep_bytes",
]
