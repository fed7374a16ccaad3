"""Three moments of the activation, as functions of the variance q.

Takes an activation; gives, for u Gaussian of variance q,

    second   E[phi(u)²]              the variance map is V(q) = bias_var + weight_var · second
    radial   E[u phi'(u) phi(u)]     = q d second / dq
    slope    E[phi'(u)²]             the correlation map's slope at 1 is weight_var · slope

All regimes follow from these. They come from the closed form where that is exact at every variance,
and from a table otherwise.
"""

import warnings
from functools import cached_property, lru_cache

import numpy as np

from nngp._arrays import TINY, Array
from nngp.architecture import Activation
from nngp.covariance import ClosedForm, closed_form
from nngp.errors import ToleranceWarning
from nngp.regimes.extrapolation import Growth, MomentValues, growth_of
from nngp.regimes.moment_table import MOST_UNRESOLVED, MomentTable

LOWEST, HIGHEST = 1e-60, 1e60  # represent a variance of zero and of infinity


class Moments:
    """The moments of one activation at any variance; 0 and infinity mean the limits."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.form = _exact_form(activation)
        self._table = None if self.form else MomentTable(activation)

    def __call__(self, q: Array) -> MomentValues:
        """The moments at the variances q."""
        q = np.clip(q, LOWEST, HIGHEST)
        if self._table is not None:
            return self._table(q)
        form, one = self.form, np.ones(())
        assert form is not None
        values = [f(np, q, q, one, 0.0) for f in (form.value, form.radial, form.slope)]
        second, radial, slope = (np.broadcast_to(v, q.shape) for v in values)
        return MomentValues(second, radial, np.full_like(q, np.inf) if self.is_steep else slope)

    @cached_property
    def is_steep(self) -> bool:
        """Whether E[phi'²] is infinite, as it is where phi jumps."""
        if self._table is not None:
            return self._table.is_steep
        assert self.form is not None
        return self.form.is_steep

    @property
    def valid_up_to(self) -> float:
        """The variance up to which the moments are integrals or validated extrapolations."""
        return np.inf if self._table is None else self._table.valid_up_to

    @property
    def unresolved(self) -> float:
        """Unresolved fraction of the moments, an estimate of their relative error."""
        return 0.0 if self._table is None else self._table.unresolved

    @cached_property
    def growth(self) -> Growth:
        """Growth of E[phi²] as q -> infinity, which decides which phases there are."""
        if self._table is not None:
            return self._table.growth
        end = self(np.array([HIGHEST]))
        return growth_of(float(end.radial[0] / max(end.second[0], TINY)))

    @property
    def highest_layer(self) -> float:
        """The largest variance at which a layer of this activation can be integrated."""
        return HIGHEST**0.25 if self._table is None else 4.0 ** min(self._table.finest, 4)


@lru_cache(maxsize=64)
def moments_of(activation: Activation) -> Moments:
    """The moments of an activation, tabulated once; warns if they are inaccurate."""
    out = Moments(activation)
    if out.unresolved > MOST_UNRESOLVED:
        warnings.warn(
            f"the moments of activation '{activation.name}' are known to {out.unresolved:.0e} "
            "only, as it is too rough to be integrated better, and so is all that follows from "
            "them",
            ToleranceWarning,
            stacklevel=4,
        )
    return out


def _exact_form(activation: Activation) -> ClosedForm | None:
    """The closed form of an activation, unless its rounding error grows with q."""
    if activation.closed_form is None:
        return None
    form = closed_form(activation.closed_form)
    return form if form.loss(HIGHEST) == 1.0 else None
