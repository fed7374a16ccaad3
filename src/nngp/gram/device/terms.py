"""The terms of a kernel matrix as programs take them: a table for all, or the layers of a block."""

from collections.abc import Sequence
from functools import lru_cache

from nngp._arrays import EPS, TINY, DeviceArray
from nngp.architecture import Network
from nngp.curve import curve_at
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import default_device, put
from nngp.gram.device.blocks import TermRule
from nngp.gram.device.layers import DeviceLayers, LayerVariances, closed_form_of
from nngp.gram.device.orders import FunctionPair
from nngp.gram.device.profiles import DEEP, DeviceProfile, device_profile
from nngp.gram.inputs import Inputs
from nngp.gram.split import KernelSplit
from nngp.gram.steps import KernelSteps

CARELESS = 1e-13  # error, relative to the diagonal, for which near pairs are not done again


class CurveTerms:
    """Terms of inputs of one norm: look-ups in one table. Pairs with 1 - |c| < 2^-16 are computed
    again from the difference of their unit vectors where the `error` of leaving that out, relative
    to the diagonal, were too large."""

    def __init__(self, network: Network, input_var: float, split: KernelSplit) -> None:
        curve = curve_at(network, input_var)
        # As the deficit is concave, an error of eps in c moves K by D(eps) at most.
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        careless = 4 * (float(curve.deficit(one_minus=EPS)) - curve.jump) / size
        careful = careless > CARELESS
        self.rule, self.error = TermRule(None, careful), 0.0 if careful else careless
        self._table = curve_table(network, input_var, split, SHALLOW if careful else DEEP)

    def profile(self, pair: FunctionPair, rows: slice, columns: slice) -> DeviceProfile:
        """What the program of a block looks up."""
        return self._table


class LayerTerms:
    """Terms pair by pair: the variances of every layer, for each version of the inputs."""

    error = 0.0

    def __init__(self, network: Network, lefts: Sequence[Inputs], rights: Sequence[Inputs]) -> None:
        self.rule = TermRule(closed_form_of(network), careful=True)
        self._lefts = [LayerVariances(network, one) for one in lefts]
        self._rights = [LayerVariances(network, one) for one in rights]
        self._variances = put(network.weight_vars), put(network.bias_vars)

    def profile(self, pair: FunctionPair, rows: slice, columns: slice) -> DeviceLayers:
        """What the program of a block needs of its layers."""
        left, right = self._lefts[pair.left], self._rights[pair.right]
        return DeviceLayers(left.block(rows), right.block(columns), *self._variances)


def make_terms(
    steps: KernelSteps, lefts: Sequence[Inputs], rights: Sequence[Inputs]
) -> CurveTerms | LayerTerms:
    """The terms that the steps ask for, between all versions of the inputs."""
    if steps.curve is None or steps.plan.input_var is None:
        return LayerTerms(steps.base, lefts, rights)
    return CurveTerms(steps.base, steps.plan.input_var, steps.split_of_terms)


def curve_table(
    network: Network, input_var: float, split: KernelSplit, octaves: int
) -> DeviceProfile:
    """M of a split as a table on the device that is JAX's default now. One of `SHALLOW` octaves has
    what near pairs are computed from."""
    return _table_on(network, input_var, split, octaves, default_device())


@lru_cache(maxsize=4)
def _table_on(
    network: Network, input_var: float, split: KernelSplit, octaves: int, device: DeviceArray
) -> DeviceProfile:
    """The device is part of the key."""
    return device_profile(split.profile(curve_at(network, input_var)), octaves)
