"""Predictive distributions in the units of the data, and probabilities of classes.

Regression: `targets` scales and transforms the targets (`transforms`), `predictive` turns Gaussians
of scaled targets into distributions of the data (`resolution`, `joint`), and `blend` mixes several
by stacking. Classes: `one_hot_link`, `dirichlet` and `softmax` are the likelihoods; the first two
turn Gaussians of class scores into probabilities (`probability`, `expected_softmax`).
`class_balance` has the weights of classes, and `calibration` measures predicted probabilities.
"""
