"""Diagnosis of a network of any shape, and of its data.

Takes a network and optionally inputs; gives a frozen `NetworkDiagnosis`. What a chain of equal
layers tends to with depth is unknown here, so everything is measured at the output.
"""

from dataclasses import dataclass

import numpy as np

from nngp.architecture import Network
from nngp.curve import AngularCurve
from nngp.regimes.output_geometry import OutputGeometry

ROUNDING = 2.0**-52
NEAR = (1e-24, 1e-30)  # 1 - c at which the slope at c = 1 is read
SMALL, LARGE = 1e-6, 1e6  # variances outside are mentioned


@dataclass(frozen=True)
class NetworkDiagnosis:
    """Diagnosis of the output of a network, and a recommendation; `print` it for a summary.

    Attributes
    ----------
    network : Network
    variance : float or None
        K(x,x) at the output; None where the recursion leaves float64, as all that follows.
    correlation : float or None
        At the output, of inputs at a right angle.
    chi : float or None
        Slope of the output's correlation in the input's at correlation 1: how far near inputs are
        moved apart (above 1) or together (below 1) by the whole network. Infinite with an
        activation that jumps, for the tangent kernel of one with a kink, and behind dropout.
    spread : float or None
        Largest (K(x,x) - K(x,x')) / K(x,x).
    contrast : float or None
        Largest difference of (K(x,x) - K(x,x')) / K(x,x) between two pairs a degree or more apart;
        the same as `spread` if there is one pair only.
    noise : float
        Variance of the noise relative to K(x,x).
    recommendation : str
        Whether to keep the network, and otherwise which change helps.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(1.0), nngp.Repeat(block, 50), nngp.Dense(1.0))
    >>> found = nngp.regimes.diagnose(net)
    >>> round(found.chi, 6), found.recommendation[:7]
    (1.0, 'keep it')
    """

    network: Network
    variance: float | None
    correlation: float | None
    chi: float | None
    spread: float | None
    contrast: float | None
    noise: float
    recommendation: str

    def __str__(self) -> str:
        name = f"network of depth {self.network.depth}"
        if self.network.is_tangent:
            name = f"tangent kernel of a {name}"
        advice = f"advice: {self.recommendation}"
        if self.variance is None:
            return f"{name}: the variance leaves float64\n{advice}"
        return "\n".join(
            [
                f"{name}: variance {self.variance:.4g} at the output, correlation "
                f"{self.correlation:.4g} of inputs at a right angle",
                f"near inputs: 1 - correlation is multiplied by {self.chi:.4g}",
                f"geometry left at the output: {self.contrast:.2g} of the variance (rounding "
                f"{ROUNDING:.1e}, noise {self.noise:.1e})",
                advice,
            ]
        )


def network_diagnosis(
    network: Network, geometry: OutputGeometry, curve: AngularCurve | None, noise: float
) -> NetworkDiagnosis:
    """Diagnose from the geometry at the output and the curve, if there is one."""
    advice = _recommend(network, geometry, noise)
    if curve is None or geometry.variance is None:
        return NetworkDiagnosis(network, None, None, None, None, None, noise, advice)
    shared = max(curve.variance - curve.scale, 0.0)
    correlation = shared / curve.variance if curve.variance > 0 else 0.0
    return NetworkDiagnosis(
        network,
        geometry.variance,
        correlation,
        chi_of(curve),
        geometry.spread,
        geometry.contrast,
        noise,
        advice,
    )


def chi_of(curve: AngularCurve) -> float:
    """Slope of the output's correlation at correlation 1, infinite where it has none."""
    if curve.variance == 0:
        return 0.0
    slopes = [float(curve.deficit(one_minus=near)) / near / curve.variance for near in NEAR]
    return slopes[0] if slopes[1] < 2 * slopes[0] else np.inf


def _recommend(network: Network, found: OutputGeometry, noise: float) -> str:
    if found.one_direction:
        return (
            "all points of X lie in one direction: it is the data, not the depth, that leave "
            "nothing to tell apart"
        )
    if found.variance is None or found.contrast is None:
        return (
            "use fewer layers, a smaller weight_var at the end of each block (divided by the "
            "number of blocks it has a limit), or nngp.LayerNorm"
        )
    if found.contrast <= max(ROUNDING, noise):
        floor = "rounding" if found.contrast <= ROUNDING else "the noise"
        remedy = "use fewer layers" if network.depth > 1 else "use another activation"
        return (
            f"the data's geometry is below {floor}; {remedy}, or skip connections "
            "(nngp.Residual), which lose it by a power of the depth only"
        )
    if not SMALL < found.variance < LARGE:
        return (
            f"keep it, but mind the scale: the variance at the output is {found.variance:.2g}; "
            "nngp.LayerNorm before the last nngp.Dense brings it to one"
        )
    return "keep it: what distinguishes inputs is above the noise"
