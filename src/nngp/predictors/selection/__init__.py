"""Model selection: the network and noise that explain the training data best.

`choose` takes a `SelectionProblem` (scaled data, candidate networks, limits) and returns the chosen
`Hyperparameters` with a table of everything tried. The evidence and the leave-one-out density are
maximised in stages (`stages`), each a set of L-BFGS ascents (`climb`) of an `objective` over a
`space` of logarithms; the paper's validation grid is in `grid`.
"""

from nngp.predictors.selection.choose import choose
from nngp.predictors.selection.problem import Candidate, Hyperparameters, SelectionProblem

__all__ = ["Candidate", "Hyperparameters", "SelectionProblem", "choose"]
