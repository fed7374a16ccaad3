"""Model selection: the network, its noise and the scaling that explain the training data best.

`choose` takes a `SelectionProblem` (`problem`: raw data, candidate networks, limits) and returns a
`Choice`: complete `Hyperparameters`, other finalists, and a table of everything tried. The evidence
or the leave-one-out density is maximised in `stages`, functions from one state of the `search` to
the next. Each runs L-BFGS ascents (`maximise`) of an `objective` over a `space` of
hyper-parameters, which say how `inputs` are mapped and scaled. `map_search` tries maps column by
column, and `judge` has held-out points confirm transforms and maps. `invariance` averages over
transformations of images, of which it adds one of the `families` after the other. `noise` has the
noise with more points, and that of a network that was given. `cost` has the points of each stage
and its work.
"""

import numpy as np

from nngp.selection.cost import (
    invariance_work,
    scaling_work,
    staged_work,
)
from nngp.selection.inputs import SearchInputs
from nngp.selection.noise import fixed_network, fixed_work
from nngp.selection.problem import (
    EFFORTS,
    MAPS,
    MIN_POINTS,
    STARTS,
    Choice,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
    SelectionTable,
    averaged,
    row_noise,
    scaled_known_noise,
)
from nngp.selection.stages import staged_search

__all__ = [
    "EFFORTS",
    "MAPS",
    "MIN_POINTS",
    "Choice",
    "Hyperparameters",
    "SearchSettings",
    "SelectionProblem",
    "SelectionTable",
    "choice_work",
    "choose",
    "row_noise",
    "scaled_known_noise",
]


def choice_work(problem: SearchSettings, n: int) -> float:
    """Work of `choose` for n points, in multiplications."""
    scaling = scaling_work(problem, n)
    if problem.criterion is None or n < MIN_POINTS:
        return scaling
    if problem.network is not None:
        return scaling + fixed_work(problem, n)
    return scaling + staged_work(problem, n) + invariance_work(problem, n)


def choose(problem: SelectionProblem) -> Choice:
    """Return the chosen hyper-parameters, the finalists, and the table of all that were tried."""
    if problem.network is not None:
        return fixed_network(problem)
    if problem.criterion is None or len(problem.X) < MIN_POINTS:
        base, noise_var = problem.candidates[0].starting_at(STARTS[0])
        inputs, targets = SearchInputs(problem, np.arange(len(problem.X))).base, problem.targets[0]
        if problem.candidates[0].noise_var is None:  # what the user gave is used as it is
            noise_var = max(noise_var, targets.noise_floor)
        network = averaged(base, problem.invariance or ())
        default = Hyperparameters(network, noise_var, inputs, targets)
        return Choice(default, [default], SelectionTable())
    return staged_search(problem)
