"""Kernel matrices for engines that compute in host memory."""

import os
from typing import cast

from numpy.typing import ArrayLike

from nngp import _npy
from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram.host.gradient import CurveGradient, PairwiseGradient
from nngp.gram.host.matrix import Cosines, HostMatrix, StoredCosines
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import GradientSums, KernelBackend, StoredBlocks
from nngp.gram.plan import KernelPlan, make_plan, split_fits
from nngp.gram.sensitivities import CurveSensitivities
from nngp.gram.split import KernelSplit


class HostBackend(KernelBackend):
    """`KernelBackend` in host memory."""

    def inputs(self, X: ArrayLike) -> Inputs:
        """Training inputs from an array, or from the path of a .npy file, read as needed."""
        return Inputs.kept(_open_npy(X) if isinstance(X, str | os.PathLike) else X)

    def matrix(
        self,
        architecture: Architecture,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
        stored: StoredBlocks | None = None,
        table: LookupTable | None = None,
    ) -> HostMatrix:
        first, second = in_memory(left), None if right is None else in_memory(right)
        method = "auto" if table is None else "lookup"
        return HostMatrix(
            architecture,
            first,
            second,
            plan=make_plan(architecture, first, first if second is None else second, method),
            table=table,
            cosines=None if stored is None else StoredCosines(stored),
            split=split,
        )

    def cosines(self, left: InputSet, right: InputSet) -> Cosines:
        return Cosines(in_memory(left), in_memory(right))

    def gradient(
        self,
        architecture: Architecture,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> GradientSums:
        rows = in_memory(inputs)
        plan = make_plan(architecture, rows, rows)
        if per_input or not reads_curve(plan, split):
            return PairwiseGradient(architecture, rows, per_layer, per_input, split)
        var = cast(float, plan.input_var)
        return CurveGradient(CurveSensitivities.of(architecture, var, per_layer, split), rows)


def reads_curve(plan: KernelPlan, split: KernelSplit) -> bool:
    """Whether derivatives can be read from the curve of the split."""
    return plan.method == "curve" and plan.input_var is not None and split_fits(split, plan)


def in_memory(inputs: InputSet) -> Inputs:
    """Check that inputs are rows in this machine's memory."""
    if not isinstance(inputs, Inputs):
        raise TypeError("inputs on a cluster cannot be used by an engine of this machine")
    return inputs


def _open_npy(path: str | os.PathLike[str]) -> ArrayLike:
    if os.path.splitext(path)[1] != ".npy":
        raise ValueError(
            f"X must be an array or the path of a .npy file, got {path}; zarr needs a DaskEngine"
        )
    try:
        return _npy.open_memmap(path)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"X cannot be read: {path}: {error}") from None
