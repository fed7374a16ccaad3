"""How much a search does: points and steps of its stages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchEffort:
    """Points of the first stages, L-BFGS steps of each stage, and networks kept after the first."""

    points: int
    kind: int
    targets: int
    relevance: int
    maps: int
    more: int
    last: int
    finalists: int
    share: float  # of `size`, the points of the last stages
    noise_factor: int  # points of the noise alone, over those


EFFORT = {
    "fast": SearchEffort(200, 6, 6, 10, 8, 0, 10, 1, 0.5, 2),
    "normal": SearchEffort(300, 10, 10, 20, 14, 6, 20, 2, 1.0, 4),
    "thorough": SearchEffort(500, 16, 16, 40, 25, 12, 60, 4, 2.0, 4),
}
