"""Figures of trained networks of finite width, in one line each.

Each function takes a store of runs, or a training, and gives a matplotlib figure, which is also
written to `path` if there is one. matplotlib is imported when something is drawn.
"""

from nngp_paper.plots.finite_networks import (
    accuracy_by_width as accuracy_by_width,
    generalisation_gap as generalisation_gap,
    learning_curve as learning_curve,
)
