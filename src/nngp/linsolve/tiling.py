"""Index arithmetic of tiles: where they begin, how many numbers they hold, what they cost.

`Edges` are the indices where tiles begin, with n at the end; tiles need not be of equal size.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

Edges = tuple[int, ...]
Item = TypeVar("Item")


def lower_size(edges: Edges) -> int:
    """Numbers in the lower tiles."""
    return sum((b - a) * b for a, b in pairwise(edges))


def cut(n: int, size: int, start: int = 0) -> Edges:
    """Edges from start to n, `size` apart."""
    return (*range(start, n, size), n)


def even_size(n: int, most: int, multiple: int = 1) -> int:
    """The size of n cut into equal pieces of about `most` at most, a multiple of something."""
    size = -(-n // -(-n // most))
    return size if size < multiple else -(-size // multiple) * multiple


def spans(edges: Edges) -> list[slice]:
    """The index ranges between edges."""
    return [slice(a, b) for a, b in pairwise(edges)]


def in_groups(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in their order, `size` at a time."""
    for start in range(0, len(items), max(1, size)):
        yield items[start : start + max(1, size)]


def flops(edges: Edges, begin: int = 0) -> float:
    """Operations of `factorise` for the tile rows from `begin` on."""
    total = 0.0
    for j, (start, stop) in enumerate(pairwise(edges)):
        below = edges[-1] - max(stop, edges[begin])
        total += below * (stop - start) * (start + stop)
        if j >= begin:
            total += chain_flops(edges, j, j)
    return total


def chain_flops(edges: Edges, i: int, j: int) -> float:
    """Operations of one chain of the factor, without its kernel tile."""
    height, width = edges[i + 1] - edges[i], edges[j + 1] - edges[j]
    full = height * width * (2.0 * edges[j] + width)
    return full / 2 if i == j else full
