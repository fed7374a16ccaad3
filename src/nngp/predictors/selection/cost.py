"""What the staged search costs: seconds, before it starts, and how many networks it may compute."""

import math
from collections.abc import Sequence

from nngp._machine import available_memory
from nngp.architecture import Architecture
from nngp.linsolve import goes_to_gpu
from nngp.predictors.selection.effort import EFFORT
from nngp.predictors.selection.families import Families, expected_families
from nngp.predictors.selection.problem import STARTS, Candidate, SearchSettings, averaged
from nngp.predictors.whitening import whitening_seconds

SLOW_BUDGET = 20  # networks tried where the activation has kinks and no closed form
FOLDS = 5  # parts of the rows, each judged by what was learned from the others
FEW_AMOUNTS = 400  # rows up to which a regression is cross-fitted; a climb with more takes long
VARIANCE_STEPS = 5  # of L-BFGS, for the variances of a fold: they begin at those of all rows
NOISE_STEPS = 8  # evaluations of the last stage
WHITENING_STEPS = 6  # of an ascent with each strength of whitening
PRODUCT_SECONDS = 3e-11  # of a multiplication, where kernels are averaged
LOOK_UP = 100  # multiplications that take as long as a look-up
MOST_WORK = 3e12  # multiplications of the noise stage, unless more points are many
# Of all points, those that the noise is found with: a dozen factors of so many take a quarter of
# the time of the final one. The more points there are, the less noise explains them, so few points
# say little of the noise beside many. Where kernels are averaged, factors are little beside them,
# and the kernel of half of the points is a quarter. At most MOST_POINTS, which take 4 GB.
NOISE_SHARE, AVERAGE_SHARE, MOST_POINTS, STEP = 0.275, 0.5, 16_000, 500
FIXED_FACTOR = 2  # points of the noise of a network that was given, over `size`
FACTOR_SECONDS = 7e-12  # of a factor, for each triple of points
GPU_SPEED = 300.0  # of one GPU over two cores, whose seconds stand here
# Seconds of a network and its gradient on two cores: for any, for each pair of points, for each
# triple; for a pair where the activation has no closed form, and to compile such an activation,
# without kinks and with them.
SECONDS, PAIR_SECONDS, TRIPLE_SECONDS = 0.001, 3e-8, 4e-11
GENERAL_PAIR_SECONDS, NUMERIC_SECONDS, KINKED_SECONDS = 3e-7, 0.2, 1.0


def staged_seconds(problem: SearchSettings, n: int) -> float:
    """About how long the search on n points takes."""
    effort = EFFORT[problem.effort]
    small, large = min(effort.points, problem.size, n), large_subset(problem, n)
    activations = {candidate.activation for candidate in problem.candidates}
    kinds = len(problem.candidates) + len(activations) * (len(STARTS) - 1)
    several = min(effort.finalists, len(problem.candidates))
    ascents, total = [(kinds, effort.kind, small)], 0.0
    if problem.learn_relevance:
        ascents.append((several, effort.relevance, small))
    if problem.maps == "auto" and not problem.classes:
        ascents.append((2 + several, effort.maps, small))
    if large > small:
        ascents.append((min(2, len(problem.candidates)), effort.more, large))
    if len(problem.strengths) > 1:
        ascents.append((len(problem.strengths), WHITENING_STEPS, large))
    ascents.append((min(problem.networks, len(problem.candidates)), effort.last, large))
    if problem.learn_relevance and n <= large:
        ascents += _fold_ascents(problem, n, small)
    left = most_networks(problem) or math.inf
    for count, steps, points in ascents:
        networks = min(count * steps, left)
        left -= networks
        total += networks * network_seconds(problem.candidates, points)
    if problem.candidates[0].noise_var is None and n > large and left > 0:
        found = min(problem.networks, len(problem.candidates))
        total += found * noise_seconds(problem, problem.invariance or (), n, NOISE_STEPS)
    return total


def _fold_ascents(problem: SearchSettings, n: int, small: int) -> list[tuple[int, int, int]]:
    """Ascents without each fold of the rows: how many, steps, points."""
    effort, others = EFFORT[problem.effort], n - n // FOLDS
    if problem.classes:
        few = small - small // FOLDS
        return [(FOLDS, effort.relevance, few), (FOLDS, VARIANCE_STEPS, others)]
    return [(FOLDS, effort.relevance + effort.last, others)] if n <= FEW_AMOUNTS else []


def scaling_seconds(problem: SearchSettings, n: int) -> float:
    """About how long it takes to learn the scaling of n rows."""
    if problem.scaling != "whiten":
        return 0.0
    return whitening_seconds(n, problem.columns, len(problem.strengths))


def invariance_seconds(problem: SearchSettings, n: int) -> float:
    """About how long it takes to choose an invariance, or to find the noise with the given one."""
    if problem.invariance == ():
        return 0.0
    large = large_subset(problem, n)
    if problem.invariance is None:
        assert problem.image_shape is not None
        tried = expected_families(problem.image_shape)
    else:
        tried = [problem.invariance]
    kernels = [averaged_work(problem, families, large) for families in tried]
    noise = 0.0
    if problem.invariance is None and problem.candidates[0].noise_var is None:
        noise = noise_seconds(problem, tried[-1], n, 0)
    return PRODUCT_SECONDS * sum(kernels) + noise


def averaged_work(problem: SearchSettings, families: Families, points: int) -> float:
    """Multiplications of a kernel matrix of so many points."""
    work = problem.columns + LOOK_UP
    return _products(problem, families) * work * float(points) ** 2


def _products(problem: SearchSettings, families: Families) -> int:
    """Products of the inputs that a kernel takes, with these families or those of the network that
    was given."""
    return averaged(problem.network or Architecture(1), families).products(problem.columns)


def large_subset(problem: SearchSettings, n: int) -> int:
    """Points of the last stages."""
    effort = EFFORT[problem.effort]
    return min(n, max(min(effort.points, problem.size), int(effort.share * problem.size)))


def noise_subset(problem: SearchSettings, families: Families, n: int) -> int:
    """Points of the noise stage: fewer where their kernel would take minutes, but a share of all in
    any case."""
    large = large_subset(problem, n)
    few = EFFORT[problem.effort].noise_factor * large
    if problem.network is not None:
        large, few = problem.size, FIXED_FACTOR * problem.size
    affordable = math.sqrt(MOST_WORK / averaged_work(problem, families, 1))
    part = NOISE_SHARE if _products(problem, families) == 1 else AVERAGE_SHARE
    share = min(int(part * n), MOST_POINTS, _most_in_memory())
    share -= share % STEP
    return min(n, max(large, min(few, int(affordable)), share))


def _most_in_memory() -> int:
    """Points whose kernel and its factor fill a quarter of the free memory."""
    free = available_memory()
    return MOST_POINTS if free is None else int((free / (4 * 16)) ** 0.5)


def noise_seconds(problem: SearchSettings, families: Families, n: int, steps: int) -> float:
    """About how long it takes to find the noise by so many evaluations."""
    points = float(noise_subset(problem, families, n))
    seconds = steps * (PAIR_SECONDS * points**2 + FACTOR_SECONDS * points**3)
    products = _products(problem, families)
    if products > 1:
        seconds += PRODUCT_SECONDS * averaged_work(problem, families, int(points))
    if goes_to_gpu(problem.engine, int(points), problem.columns * products):
        seconds /= GPU_SPEED
    return seconds


def network_seconds(candidates: Sequence[Candidate], points: int) -> float:
    """About how long a network and its gradient take."""
    numeric = [c.activation for c in candidates if c.activation.closed_form is None]
    if any(phi.kinks for phi in numeric):
        return KINKED_SECONDS + GENERAL_PAIR_SECONDS * points**2
    if numeric:
        return NUMERIC_SECONDS + GENERAL_PAIR_SECONDS * points**2
    return SECONDS + PAIR_SECONDS * points**2 + TRIPLE_SECONDS * points**3


def most_networks(problem: SearchSettings) -> int | None:
    """The most networks that are computed; None for no limit."""
    slow = any(c.activation.closed_form is None and c.activation.kinks for c in problem.candidates)
    return SLOW_BUDGET if problem.budget is None and slow else problem.budget
