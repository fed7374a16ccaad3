"""The paper's grids over depth, weight variance and bias variance (app. D): computed and read."""
