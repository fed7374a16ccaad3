"""The last stage of a search: the noise variance alone, with more points.

Few points can be fitted more closely than many, so they understate the noise of measurements.
Classes of few points are hardly told apart, so they overstate the noise of classes.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from nngp.selection.climb import BestTrial
from nngp.selection.noise_evidence import NoiseEvidence
from nngp.selection.objective import Objective
from nngp.selection.space import Space

NOISE_DOWN, CLASSES_DOWN, NOISE_UP = 1.0, 5.0, 3.0  # range of the logarithm


def refitted(
    found: BestTrial,
    objective: Objective,
    space: Space,
    make_evidence: Callable[[], NoiseEvidence],
    down: float,
    steps: int,
) -> BestTrial:
    """The setting with its best noise on the points of an objective; itself if none has a value."""
    clock, evidence = time.perf_counter(), make_evidence()
    scores: dict[float, tuple[float, float]] = {}

    def loss(theta: float) -> float:
        at = replace(found.setting, noise_var=float(np.exp(theta)))
        scores[theta] = objective.score_by(evidence, space, at)
        return -scores[theta][0]

    now = float(np.log(found.setting.noise_var))
    low, high = space.bounds[0]
    ends = max(low, now - down), min(high, now + NOISE_UP)
    minimize_scalar(loss, bounds=ends, method="bounded", options={"maxiter": steps})
    theta = max(scores, key=lambda one: scores[one][0])
    if not np.isfinite(scores[theta][0]):
        return found
    setting = replace(found.setting, noise_var=float(np.exp(theta)))
    cost = len(scores), time.perf_counter() - clock
    return BestTrial(*scores[theta], setting, found.candidate, *cost, "")
