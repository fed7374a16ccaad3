"""A compiled curve on a device: its table, and whether near pairs need a second look."""

from dataclasses import dataclass
from functools import lru_cache

from nngp._arrays import EPS, TINY, DeviceArray
from nngp.architecture import Network
from nngp.curve import curve_at
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import default_device
from nngp.gram.device.profiles import DEEP, DeviceProfile, device_profile
from nngp.gram.split import KernelSplit

CARELESS = 1e-13  # error, relative to the diagonal, for which near pairs are not done again


@dataclass(frozen=True)
class DeviceCurve:
    """M of a split as a table. `careful` says that pairs with 1 - |c| < 2^-16 must be computed
    again from the difference of their unit vectors; `careless` is the error, relative to the
    diagonal, of leaving that out."""

    table: DeviceProfile
    careful: bool
    careless: float


def device_curve(
    network: Network, input_var: float, split: KernelSplit, *, near: bool = False
) -> DeviceCurve:
    """The curve of a network at one norm; with `near` pairs are done again in any case."""
    curve = curve_at(network, input_var)
    # As the deficit is concave, an error of eps in c moves K by D(eps) at most.
    size = max(curve.variance, TINY) if split.is_trivial else split.scale
    careless = 4 * (float(curve.deficit(one_minus=EPS)) - curve.jump) / size
    careful = near or careless > CARELESS
    octaves = SHALLOW if careful else DEEP
    table = curve_table(network, input_var, split, octaves, default_device())
    return DeviceCurve(table, careful, 0.0 if careful else careless)


@lru_cache(maxsize=4)
def curve_table(
    network: Network, input_var: float, split: KernelSplit, octaves: int, device: DeviceArray
) -> DeviceProfile:
    """On the device that is JAX's default now; it is part of the key."""
    return device_profile(split.profile(curve_at(network, input_var)), octaves)
