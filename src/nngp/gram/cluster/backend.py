"""Kernel matrices for engines that compute on the workers of a cluster."""

from typing import Any, NoReturn

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram.cluster.inputs import ClusterInputs, upload_rows
from nngp.gram.cluster.matrix import ClusterMatrix
from nngp.gram.cluster.task import Cluster
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import KernelBackend, StoredBlocks
from nngp.gram.split import KernelSplit


class ClusterBackend(KernelBackend):
    """`KernelBackend` on a cluster."""

    is_local = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def inputs(self, X: Any) -> ClusterInputs:
        """Training inputs from an array, a dask array, or the path of a .npy file or zarr array."""
        return ClusterInputs.of(self._cluster, X)

    def test_inputs(self, inputs: Inputs) -> ClusterInputs:
        return upload_rows(self._cluster, inputs)

    def matrix(
        self,
        architecture: Architecture,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
        stored: StoredBlocks | None = None,
        table: LookupTable | None = None,
    ) -> ClusterMatrix:
        if stored is not None or table is not None:
            self._refuse()
        other = None if right is None else _on_cluster(right)
        return ClusterMatrix(architecture, _on_cluster(left), other, split=split)

    def cosines(self, left: InputSet, right: InputSet) -> NoReturn:
        self._refuse()

    def gradient(
        self,
        architecture: Architecture,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> NoReturn:
        raise ValueError(
            "derivatives are computed on one machine; use engine='cpu' or 'gpu', with fewer points"
        )

    def _refuse(self) -> NoReturn:
        raise TypeError(
            "a sweep computes on one machine; use engine='auto', and on a cluster one sweep "
            "for each of several parts of the networks"
        )


def _on_cluster(inputs: InputSet) -> ClusterInputs:
    if not isinstance(inputs, ClusterInputs):
        raise TypeError("inputs in this machine's memory cannot be used by the engine of a cluster")
    return inputs
