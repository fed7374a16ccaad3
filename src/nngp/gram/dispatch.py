"""Blocks, cosines and gradients where an engine wants them: on the host, on a device, or on the
workers of a cluster."""

from typing import Any, Literal

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram.host.blocks import Blocks, Cosines, StoredCosines, fits
from nngp.gram.host.gradient import CurveGradient, PairwiseGradient
from nngp.gram.inputs import Inputs
from nngp.gram.plan import make_plan
from nngp.gram.split import KernelSplit

Place = Literal["host", "device", "cluster"]


def kernel_blocks(
    place: Place,
    architecture: Architecture,
    left: Inputs,
    right: Inputs | None = None,
    *,
    split: KernelSplit | None = None,
    stored: dict[tuple[int, int], Any] | None = None,
    table: LookupTable | None = None,
) -> Any:
    """`Blocks` in that place, of the M of a split, by default of the one that suits the inputs.
    `stored` are blocks of cosines computed before, by their origin. With `table` K is read off
    the paper's table, and is not split."""
    if place == "cluster":
        from nngp.gram.cluster.blocks import RemoteBlocks

        return RemoteBlocks(architecture, left, right, split=split)
    if place == "host":
        cosines = None if stored is None else StoredCosines(stored)
        method = "auto" if table is None else "lookup"
        return Blocks(
            architecture, left, right, method=method, table=table, cosines=cosines, split=split
        )
    if table is not None:
        from nngp.gram.device.lookup import LookupBlocks

        return LookupBlocks(architecture, left, right, table, stored)
    from nngp.gram.device.blocks import DeviceBlocks, UploadedBlocks

    if device_can(architecture, left, right):
        return DeviceBlocks(architecture, left, right, stored=stored, split=split)
    return UploadedBlocks(architecture, left, right, split=split)


def device_can(architecture: Architecture, left: Inputs, right: Inputs | None = None) -> bool:
    """Whether a device can compute these blocks itself: not if the norms differ and the activation
    has no closed form."""
    plan = make_plan(architecture, left, left if right is None else right)
    return plan.method == "curve" or architecture.activation.closed_form is not None


def cosine_blocks(place: Place, left: Inputs, right: Inputs) -> Any:
    """`Cosines` in that place."""
    if place == "device":
        from nngp.gram.device.blocks import DeviceCosines

        return DeviceCosines(left, right)
    return Cosines(left, right)


def kernel_gradient(
    place: Place,
    architecture: Architecture,
    inputs: Inputs,
    *,
    split: KernelSplit,
    per_layer: bool,
    per_input: bool = False,
) -> Any:
    """Sums Σ G dK/dθ in that place; with unequal norms, or for each input, always on the host."""
    plan = make_plan(architecture, inputs, inputs)
    if per_input or plan.method != "curve" or plan.input_var is None or not fits(split, plan):
        return PairwiseGradient(architecture, inputs, per_layer, per_input, split)
    if place == "device":
        from nngp.gram.device.blocks import DeviceGradient

        return DeviceGradient(architecture, inputs, plan.input_var, per_layer, split)
    return CurveGradient(architecture, inputs, plan.input_var, per_layer, split)
