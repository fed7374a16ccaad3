"""Model selection: the network, its noise and the scaling that explain the training data best.

`choose` takes a `SelectionProblem` (raw data, candidate networks, limits) and returns a `Choice`:
complete `Hyperparameters`, other finalists, and a table of everything tried. The evidence and the
leave-one-out density are maximised in stages (`stages`), each a set of L-BFGS ascents (`climb`) of
an `objective` over a `space` of hyper-parameters, which say how `inputs` are mapped and scaled;
`tree_start` has relevances to begin with, `map_search` tries maps column by column, and `judge` has
points left out confirm transforms and maps. `invariance_stage` averages over transformations of
images, of which `invariance_search` adds one of the `families` after the other, and `noise_stage`
finds the noise with more points. The noise of a network that was given is in `fixed`.
"""

import numpy as np

from nngp.selection.choice import Choice
from nngp.selection.cost import (
    invariance_work,
    scaling_work,
    staged_work,
)
from nngp.selection.fixed import fixed_network, fixed_work
from nngp.selection.inputs import SearchInputs
from nngp.selection.problem import (
    EFFORTS,
    MAPS,
    MIN_POINTS,
    STARTS,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
    averaged,
    row_noise,
    scaled_known_noise,
)
from nngp.selection.stages import staged_search
from nngp.selection.table import SelectionTable

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
    """What `choose` takes for n points, in multiplications."""
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
