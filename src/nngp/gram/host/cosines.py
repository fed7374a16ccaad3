"""Cosines of any block of pairs, from the data, and the pieces in which a block is worked on."""

from collections.abc import Iterator

import numpy as np

from nngp._arrays import EPS, Array
from nngp.gram.host.fill import strips
from nngp.gram.inputs import Inputs


class Cosines:
    """Cosines between two sets of inputs, any block of them."""

    def __init__(self, left: Inputs, right: Inputs) -> None:
        self.left, self.right = left, right
        both = np.concatenate([left.inverse_norm, right.inverse_norm])
        # One factor for all, where norms agree to rounding: half the work of scaling.
        agree = np.ptp(both) <= 8 * EPS * both[0] and 1e-150 < both[0] < 1e150
        self._scale = both[0] ** 2 if agree else None

    def block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The cosines of these rows with these columns."""
        block = self.products(rows, columns, out)
        for part, strip in in_strips(block, rows, columns):
            self.scale(part, strip, columns)
        return block

    def products(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """Inner products, not yet divided by the norms."""
        return np.matmul(self.left.X[rows], self.right.X[columns].T, out=out)

    def scale(self, part: Array, rows: slice, columns: slice) -> None:
        """Products to cosines, in place."""
        if self._scale is not None:
            part *= self._scale
        else:
            part *= self.left.inverse_norm[rows][:, None]
            part *= self.right.inverse_norm[columns]


def in_strips(block: Array, rows: slice, columns: slice) -> Iterator[tuple[Array, slice]]:
    """The block in pieces that fit the cache, with their rows."""
    for strip in strips(rows, columns):
        yield block[strip.start - rows.start : strip.stop - rows.start], strip


def set_diagonal(block: Array, rows: slice, columns: slice, values: Array) -> None:
    """Overwrite the entries whose row and column are the same point; `values` has one for each row
    of the block."""
    both = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
    block[both - rows.start, both - columns.start] = values[both - rows.start]
