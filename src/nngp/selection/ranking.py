"""The order of ascents: best first, and which go on to the next stage."""

from collections.abc import Sequence

import numpy as np

from nngp.selection.climb import BestTrial
from nngp.selection.problem import Candidate


def ranked(climbs: Sequence[BestTrial | None]) -> list[BestTrial]:
    """Ascents that found a network which can be computed, best first."""
    computed = [one for one in climbs if one is not None and np.isfinite(one.score)]
    return sorted(computed, key=lambda one: -one.score)


def distinct(climbs: list[BestTrial]) -> list[BestTrial]:
    """The best of every activation and depth, best first."""
    best: dict[Candidate, BestTrial] = {}
    for one in climbs:
        best.setdefault(one.candidate, one)
    return list(best.values())


def leaders(climbs: list[BestTrial]) -> list[BestTrial]:
    """The best of every candidate; the best of another activation than the leader's is second."""
    leader, *rest = distinct(climbs)
    phi = leader.candidate.activation
    others = [one for one in rest if one.candidate.activation is not phi]
    same = [one for one in rest if one.candidate.activation is phi]
    return [leader, *others[:1], *same, *others[1:]]
