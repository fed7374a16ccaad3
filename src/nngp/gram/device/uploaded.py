"""What only the host can compute, for an engine whose arrays live on a device."""

import numpy as np

from nngp._arrays import Array, DeviceArray
from nngp.gram.device.arrays import count_of, put
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.kernel_matrix import Gradient, GradientSums, Shift


class UploadedMatrix:
    """`KernelMatrix` of the host, with blocks sent to the device."""

    supports_padding = True

    def __init__(self, host: HostMatrix) -> None:
        self._host = host
        self.network, self.left, self.plan = host.network, host.left, host.plan
        self.split, self.is_exact = host.split, host.is_exact

    @property
    def diagonal(self) -> Array:
        return self._host.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        sides = zip((rows, columns), self._host.shape, strict=True)
        here = [slice(side.start, min(side.stop, n)) for side, n in sides]
        there, size = self._host.block(*here, shift=shift), (count_of(rows), count_of(columns))
        if there.shape == size:
            return put(there)
        block = np.eye(*size, k=rows.start - columns.start)
        block[: len(there)], block[:, : there.shape[1]] = 0.0, 0.0
        block[: len(there), : there.shape[1]] = there
        return put(block)

    def error(self) -> float:
        return self._host.error()


class DownloadedGradient:
    """`GradientSums` of the host, from blocks of the device that may reach beyond the inputs."""

    def __init__(self, host: GradientSums, n: int) -> None:
        self._host, self._n = host, n

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        rows, columns = (slice(s.start, min(s.stop, self._n)) for s in (rows, columns))
        there = np.asarray(G)[: rows.stop - rows.start, : columns.stop - columns.start]
        self._host.contract(np.ascontiguousarray(there), rows, columns)

    def result(self, sum_of_all: float) -> Gradient:
        return self._host.result(sum_of_all)
