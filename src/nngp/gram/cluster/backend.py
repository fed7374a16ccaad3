"""Kernel matrices for engines that compute on the workers of a cluster."""

from typing import Any, NoReturn

from nngp.architecture import Network
from nngp.gram.cluster.inputs import ClusterInputs, upload_rows
from nngp.gram.cluster.matrix import ClusterMatrix
from nngp.gram.cluster.task import Cluster
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import KernelBackend
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
        network: Network,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> ClusterMatrix:
        other = None if right is None else _on_cluster(right)
        return ClusterMatrix(network, _on_cluster(left), other, split=split)

    def gradient(self, network: Network, inputs: InputSet, **options: Any) -> NoReturn:
        raise ValueError(
            "derivatives are computed on one machine; use engine='cpu' or 'gpu', with fewer points"
        )


def _on_cluster(inputs: InputSet) -> ClusterInputs:
    if not isinstance(inputs, ClusterInputs):
        raise TypeError("inputs in this machine's memory cannot be used by the engine of a cluster")
    return inputs
