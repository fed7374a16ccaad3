"""Accuracy against the distance from the critical line (figures 4 and 9).

The paper says that accuracy follows signal propagation. What is measured is the rank correlation,
over the networks of a grid, of test accuracy and distance from the critical line in weight
variance; it is negative if networks near the line do better. Beside it stands the share of
networks that are not above chance.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import spearmanr

from nngp_paper.arrays import Array
from nngp_paper.grids.arrays import Grid
from nngp_paper.shared.critical import Theory, critical_weight_var
from nngp_paper.verdict import ClaimVerdict, Word

CLASSES = 10  # of every set of images
SOURCES = ("the table accounts for", "the noise for", "the network itself for")
LOST = 2.0 / CLASSES  # an accuracy below twice that of chance
STRONG = -0.5  # a rank correlation at least as negative says that accuracy follows the line
WEAK = 0.1  # a smaller one says nothing, however many the networks are


@dataclass(frozen=True)
class Following:
    """How the accuracy of one grid follows the line: a rank correlation, None where accuracies or
    distances are all equal, and the number of networks near chance, of how many."""

    correlation: float | None
    lost: int
    networks: int


def distances(grid: Grid, theory: Theory) -> Array:
    """Distance of each network from the critical line, in weight variance; NaN without a line."""
    line = [critical_weight_var(theory, float(value)) for value in grid.bias_vars]
    known = np.array([np.nan if value is None else value for value in line])
    return np.abs(grid.weight_vars[:, None] - known[None, :])


def following(grid: Grid, theory: Theory | None) -> Following:
    """The correlation over the networks that have a score."""
    accuracy = grid.scores["test_accuracy"]
    there = np.isfinite(accuracy)
    lost = int((accuracy[there] < LOST).sum())
    found = None
    if theory is not None:
        apart = distances(grid, theory)
        used = there & np.isfinite(apart)
        if used.any() and np.ptp(accuracy[used]) > 0 and np.ptp(apart[used]) > 0:
            found = float(spearmanr(accuracy[used], apart[used]).statistic)
    return Following(found, lost, int(there.sum()))


def strength(found: Following) -> Word:
    """Whether accuracy follows the line, by a correlation beyond that of chance."""
    if found.correlation is None:
        return "not measured"
    if found.correlation >= -max(WEAK, chance(found.networks)):
        return "not supported"
    return "supported" if found.correlation <= STRONG else "partly"


def combined(words: list[Word]) -> Word:
    """Supported if all are, not supported if none is even partly, and partly otherwise."""
    known = [word for word in words if word != "not measured"]
    if not known:
        return "not measured"
    return known[0] if len(set(known)) == 1 else "partly"


def lost_share(found: Sequence[Following]) -> float:
    """The share of networks near chance."""
    return sum(one.lost for one in found) / max(sum(one.networks for one in found), 1)


def sources_sentence(lost: Mapping[str, Sequence[Following]]) -> str:
    """Contributions of the table, the noise and the network itself: the networks that are lost
    with each kernel and noise, in the order of `HeatMaps.kinds`."""
    parts = []
    for name, found in lost.items():
        share, networks = lost_share(found), sum(one.networks for one in found)
        parts.append(f"{100 * share:.0f}% of {networks:,} networks with the {name}")
    words = f"Below {LOST:.0%} accuracy, twice chance, are {', '.join(parts)}"
    shares = [lost_share(found) for found in lost.values()]
    if len(shares) < len(SOURCES):
        return words
    own = [a - b for a, b in pairwise([*shares, 0.0])]
    points = [f"{100 * part:.0f}".replace("-", "−") for part in own]
    blame = [f"{name} {part}" for name, part in zip(SOURCES, points, strict=True)]
    return f"{words}: {', '.join(blame)} of these {100 * shares[0]:.0f} points"


def correlations(found: list[Following]) -> str:
    """The correlations of some grids, in their order."""
    known = [one.correlation for one in found]
    return ", ".join("–" if c is None else f"{c:.2f}".replace("-", "−") for c in known)


def chance(networks: int) -> float:
    """The size that 95 of 100 rank correlations of unrelated numbers stay below."""
    return 1.96 / float(np.sqrt(max(networks - 1, 1)))


def chances(kinds: Iterable[Sequence[Following]]) -> str:
    """The chance of each kind of grids, in their order; once where all are the same."""
    sizes = [found[0].networks for found in kinds if found]
    return " and ".join(dict.fromkeys(f"±{chance(size):.2f}" for size in sizes))


def no_line() -> ClaimVerdict:
    """The verdict where the critical line is not known."""
    return ClaimVerdict("not measured", "The critical line has not been computed.")
