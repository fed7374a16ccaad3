"""Blocks of several kernel matrices of the same inputs, from one product of these."""

import threading
from collections.abc import Sequence

import numpy as np

from nngp._arrays import Array
from nngp.gram.host.cosines import in_strips, set_diagonal
from nngp.gram.host.fill import TILE
from nngp.gram.host.matrix import HostMatrix


class SharedProductBlocks:
    """A block of each of several plain matrices of the same inputs, all from one product.

    Blocks have at most TILE rows and columns, and are overwritten by the next call of the same
    thread.
    """

    def __init__(self, matrices: Sequence[HostMatrix]) -> None:
        self._matrices, self._cosines = matrices, matrices[0].plain.cosines
        self._local = threading.local()

    def __call__(self, rows: slice, columns: slice) -> list[Array]:
        blocks = self._memory(rows, columns)
        shared = self._cosines.products(rows, columns, blocks[-1])
        for part, strip in in_strips(shared, rows, columns):
            self._cosines.scale(part, strip, columns)
            local = slice(strip.start - rows.start, strip.stop - rows.start)
            for matrix, block in zip(self._matrices, blocks, strict=True):
                if block is not shared:  # which is the last, and overwritten last
                    block[local] = part
                matrix.plain.transform(block[local], strip, columns)
        for matrix, block in zip(self._matrices, blocks, strict=True):
            if matrix.symmetric:
                set_diagonal(block, rows, columns, matrix.diagonal[rows])
        return blocks

    def _memory(self, rows: slice, columns: slice) -> list[Array]:
        if not hasattr(self._local, "memory"):
            self._local.memory = [np.empty(TILE * TILE) for _ in self._matrices]
        shape = rows.stop - rows.start, columns.stop - columns.start
        return [flat[: shape[0] * shape[1]].reshape(shape) for flat in self._local.memory]
