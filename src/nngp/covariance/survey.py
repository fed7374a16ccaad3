"""First look at an activation: how far it matters, how large it is, its values at all scales.

Takes an activation and a standard deviation of its input; gives a `Survey`. Points are dense over
the whole range, and geometric around zero and around declared kinks and features, so that a steep
function or a narrow bump there is seen whatever its width. A bump elsewhere is seen if it is not
much narrower than the dense points.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Activation
from nngp.errors import ActivationError

DENSE = 65_536  # points over the whole range
OCTAVES, IN_OCTAVE = 60, 12  # of the geometric points: down to 2^-60 of the range
FARTHEST = 38.0  # standard deviations: exp(-38²/2) is the smallest float64
NEGLIGIBLE = 43.0  # nats: 2e-19 of the largest contribution
LEAST_REACH = 9.0  # standard deviations
MAX_LOG_MOMENT = 680.0  # log of the largest E[phi²], within float64 with room for sums


@dataclass(frozen=True)
class Survey:
    """Size and reach of phi at one deviation, and its values at points of all scales."""

    deviation: float
    reach: float  # standard deviations beyond which phi(u)² is negligible
    rms: float  # root mean square of phi, roughly
    peak: float  # largest |phi|, weighted by the root of the Gaussian density
    checks: Array  # ascending points within the bound
    values: Array  # phi there
    smaller: tuple[tuple[float, float], ...]  # deviations down to half of it, and rms at each

    @property
    def bound(self) -> float:
        """Largest |x| that matters: Hermite functions reach further than phi² does."""
        return _bound(self.reach, self.deviation)


@lru_cache(maxsize=4)  # a survey holds a megabyte; the next question is often the same
def survey(activation: Activation, deviation: float) -> Survey:
    """Look at phi for inputs of this standard deviation, and down to half of it."""
    reach, rms = _reach(activation, deviation)
    ladder = deviation * 2.0 ** -np.linspace(0.25, 1, 4)
    found = [_reach(activation, float(s)) for s in ladder]
    reach = max(reach, *(r for r, _ in found))
    smaller = tuple(zip(ladder.tolist(), (size for _, size in found), strict=True))
    x = _points(activation, _bound(reach, deviation), DENSE)
    values = activation(x)
    peak = float(np.max(np.abs(values) * np.exp(-0.25 * (x / deviation) ** 2)))
    return Survey(deviation, reach, rms, peak, x, values, smaller)


def _bound(reach: float, deviation: float) -> float:
    return float(np.sqrt(2) * reach * deviation)


def _points(activation: Activation, bound: float, dense: int) -> Array:
    """Points in (-bound, bound): equally spaced, and geometric around the special ones."""
    steps = 1.9 * bound * 2.0 ** -np.linspace(0, OCTAVES, OCTAVES * IN_OCTAVE + 1)
    special = [0.0, *activation.kinks, *activation.features]
    around = [x for s in special for x in (s - steps, s + steps)]
    # Not quite symmetric, so that no regular structure hides between the points
    regular = bound * np.linspace(-1, 0.99999, dense)
    x = np.unique(np.concatenate([regular, *around]))
    return x[np.abs(x) < bound]


def _reach(activation: Activation, deviation: float) -> tuple[float, float]:
    """Standard deviations beyond which phi² is negligible, and the root mean square of phi."""
    z = _points(activation, FARTHEST * deviation, DENSE // 4) / deviation
    size = np.abs(activation(deviation * z))
    with np.errstate(divide="ignore"):
        log_term = 2 * np.log(size) - 0.5 * z**2
    finite = np.isfinite(size)
    inner = np.abs(z) < (np.abs(z[~finite]).min() if not finite.all() else np.inf)
    peak = log_term[inner].max(initial=-np.inf)
    if not inner.any():
        raise ActivationError(f"activation '{activation.name}' is infinite at 0")
    if peak == -np.inf:  # phi vanishes everywhere
        return LEAST_REACH, 1.0
    matters = np.abs(z[inner & (log_term > peak - NEGLIGIBLE)]).max() + 0.25
    if matters >= np.abs(z[inner]).max():
        raise ActivationError(
            f"activation '{activation.name}' grows too fast: E[phi(u)²] at a variance "
            f"near {deviation**2:.3g} is infinite or past float64; use a smaller variance or an "
            "activation that grows at most exponentially"
        )
    total = np.trapezoid(np.exp(log_term[inner] - peak), z[inner]) / np.sqrt(2 * np.pi)
    if np.log(total) + peak > MAX_LOG_MOMENT:
        raise ActivationError(
            f"activation '{activation.name}' is too large: E[phi(u)²] at a variance near "
            f"{deviation**2:.3g} is past float64; divide the activation by a constant"
        )
    rms = np.exp(0.5 * (np.log(total) + peak))
    return max(float(matters), LEAST_REACH), float(rms)
