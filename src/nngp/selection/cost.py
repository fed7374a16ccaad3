"""Cost of the staged search: points of its stages, how many networks it may compute, and the
work of both, counted in multiplications, which is what a progress bar shows."""

import math
from collections.abc import Sequence

from nngp._machine import available_memory
from nngp.architecture import Architecture
from nngp.frames.whitening import whitening_work
from nngp.selection.families import Families, expected_families
from nngp.selection.problem import EFFORT, STARTS, Candidate, SearchSettings, averaged

SLOW_BUDGET = 20  # networks tried where the activation has kinks and no closed form
FOLDS = 5  # parts of the rows, each judged by what was learned from the others
# Rows up to which everything is learned again without each fold; an ascent with more takes long.
FEW_AMOUNTS, FEW_LABELS = 400, 1000
MOST_JUDGED = 1000  # points that are left out one by one to judge a choice
VARIANCE_STEPS = 5  # of L-BFGS, for the variances of a fold: they begin at those of all rows
NOISE_STEPS = 8  # evaluations of the last stage
WHITENING_STEPS = 6  # of an ascent with each strength of whitening
LOOK_UP = 100  # multiplications that take as long as a look-up
PAIR, NUMERIC_PAIR = 1000, 10_000  # of a pair with its gradient, by a closed form and without one
MOST_WORK = 3e12  # multiplications of the noise stage, unless more points are many
# Of all points, those that the noise is found with: a dozen factors of so many take a quarter of
# the time of the final one. The more points there are, the less noise explains them, so few points
# say little of the noise beside many. Where kernels are averaged, factors are little beside them,
# and the kernel of half of the points is a quarter. At most MOST_POINTS, which take 4 GB.
NOISE_SHARE, AVERAGE_SHARE, MOST_POINTS, STEP = 0.275, 0.5, 16_000, 500


def staged_work(problem: SearchSettings, n: int) -> float:
    """Work of the search on n points."""
    effort = EFFORT[problem.effort]
    small, judged, large = (f(problem, n) for f in (small_subset, judged_subset, large_subset))
    activations = {candidate.activation for candidate in problem.candidates}
    kinds = len(problem.candidates) + len(activations) * (len(STARTS) - 1)
    several = min(effort.finalists, len(problem.candidates))
    finalists = min(problem.networks, len(problem.candidates))
    ascents, total = [(kinds, effort.kind, small)], 0.0
    if problem.learn_relevance:
        ascents.append((several, effort.relevance, small))
    if problem.maps == "auto" and not problem.classes:
        ascents.append((2 + several, effort.maps, small))
    if judged > small:
        ascents.append((min(2, len(problem.candidates)), effort.more, judged))
    if len(problem.strengths) > 1:
        ascents.append((len(problem.strengths), WHITENING_STEPS, judged))
    ascents.append((finalists, effort.last, judged))
    if large > judged:
        ascents.append((finalists, effort.all, large))
    if problem.learn_relevance and is_cross_fitted(problem, n):
        ascents += _fold_ascents(problem, n, small)
    left = most_networks(problem) or math.inf
    for count, steps, points in ascents:
        networks = min(count * steps, left)
        left -= networks
        total += networks * network_work(problem.candidates, points)
    if problem.candidates[0].noise_var is None and n > large and left > 0:
        total += finalists * noise_work(problem, problem.invariance or (), n, NOISE_STEPS)
    return total


def _fold_ascents(problem: SearchSettings, n: int, small: int) -> list[tuple[int, int, int]]:
    """Ascents without each fold of the rows: how many, steps, points."""
    effort, others = EFFORT[problem.effort], n - n // FOLDS
    if problem.classes:
        few = small - small // FOLDS
        return [(FOLDS, effort.relevance, few), (FOLDS, VARIANCE_STEPS, others)]
    return [(FOLDS, effort.relevance + effort.last, others)]


def is_cross_fitted(problem: SearchSettings, n: int) -> bool:
    """Whether rows are so few that everything is learned again without each fold of them."""
    return n <= min(large_subset(problem, n), FEW_LABELS if problem.classes else FEW_AMOUNTS)


def scaling_work(problem: SearchSettings, n: int) -> float:
    """Work to learn the scaling of n rows."""
    if problem.scaling != "whiten":
        return 0.0
    return whitening_work(n, problem.columns, len(problem.strengths))


def invariance_work(problem: SearchSettings, n: int) -> float:
    """Work to choose an invariance, or to find the noise with the given one."""
    if problem.invariance == ():
        return 0.0
    large = judged_subset(problem, n)
    if problem.invariance is None:
        assert problem.image_shape is not None
        tried = expected_families(problem.image_shape)
    else:
        tried = [problem.invariance]
    kernels = [averaged_work(problem, families, large) for families in tried]
    noise = 0.0
    if problem.invariance is None and problem.candidates[0].noise_var is None:
        noise = noise_work(problem, tried[-1], n, 0)
    return sum(kernels) + noise


def averaged_work(problem: SearchSettings, families: Families, points: int) -> float:
    """Multiplications of a kernel matrix of so many points."""
    work = problem.columns + LOOK_UP
    return _products(problem, families) * work * float(points) ** 2


def _products(problem: SearchSettings, families: Families) -> int:
    """Products of the inputs that a kernel takes, with these families or those of the network that
    was given."""
    return averaged(problem.network or Architecture(1), families).products(problem.columns)


def small_subset(problem: SearchSettings, n: int) -> int:
    """Points of the first stages."""
    return min(EFFORT[problem.effort].points, problem.size, n)


def judged_subset(problem: SearchSettings, n: int) -> int:
    """Points on which a choice is judged, and continued before all of the search's are used."""
    return min(large_subset(problem, n), MOST_JUDGED)


def large_subset(problem: SearchSettings, n: int) -> int:
    """Points of the last stages."""
    effort = EFFORT[problem.effort]
    return min(n, max(min(effort.points, problem.size), int(effort.share * problem.size)))


def fitted_subset(problem: SearchSettings, families: Families, n: int) -> int:
    """Points that the noise is known for before `noise_subset`; averages are dear."""
    return judged_subset(problem, n) if families else large_subset(problem, n)


def noise_subset(problem: SearchSettings, families: Families, n: int) -> int:
    """Points of the noise stage: fewer where their kernel would take minutes, but a share of all in
    any case."""
    large = fitted_subset(problem, families, n)
    few = EFFORT[problem.effort].noise_factor * large_subset(problem, n)
    if problem.network is not None:
        large = few = problem.size
    affordable = math.sqrt(MOST_WORK / averaged_work(problem, families, 1))
    part = NOISE_SHARE if _products(problem, families) == 1 else AVERAGE_SHARE
    share = min(int(part * n), MOST_POINTS, _most_in_memory())
    share -= share % STEP
    return min(n, max(large, min(few, int(affordable)), share))


def _most_in_memory() -> int:
    """Points whose kernel and its factor fill a quarter of the free memory."""
    free = available_memory()
    return MOST_POINTS if free is None else int((free / (4 * 16)) ** 0.5)


def noise_work(problem: SearchSettings, families: Families, n: int, steps: int) -> float:
    """Work to find the noise by so many evaluations, each a factor."""
    points = noise_subset(problem, families, n)
    work = steps * (PAIR + points / 6) * float(points) ** 2
    averages = _products(problem, families) > 1
    return work + averaged_work(problem, families, points) if averages else work


def network_work(candidates: Sequence[Candidate], points: int) -> float:
    """Work of a network and its gradient."""
    numeric = any(c.activation.closed_form is None for c in candidates)
    return ((NUMERIC_PAIR if numeric else PAIR) + points) * float(points) ** 2


def most_networks(problem: SearchSettings) -> int | None:
    """The most networks that are computed; None for no limit."""
    slow = any(
        c.activation.closed_form is None and (c.activation.kinks or c.activation.params)
        for c in problem.candidates
    )
    return SLOW_BUDGET if problem.budget is None and slow else problem.budget
