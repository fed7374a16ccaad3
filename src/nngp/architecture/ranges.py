"""The ranges of the paper's grids over the two variances (app. D)."""

WEIGHT_VAR_RANGE, BIAS_VAR_RANGE = (0.1, 5.0), (0.0, 2.0)
GRID_SIZE = 30  # values of each variance
