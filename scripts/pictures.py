"""Draw the picture of the README: a posterior through a few points, and how it depends on depth.

    python scripts/pictures.py

The home page draws the same; this file is for readers of the repository, where nothing is run.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nngp

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
NETWORKS = ((1, "relu"), (3, "relu"), (3, "erf"))


def posterior_picture(path: Path) -> None:
    """Nine points, and the posterior of three networks of infinite width."""
    x = np.array([-2.7, -2.2, -1.8, -1.3, -0.9, 0.8, 1.2, 1.5, 2.0])
    y = np.sin(2.2 * x) + 0.3 * x
    line = np.linspace(-3.2, 3.2, 400)
    figure, panels = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
    for axes, (depth, activation) in zip(panels, NETWORKS, strict=True):
        net = nngp.Architecture(depth, activation, weight_var=3.0, bias_var=0.5)
        posterior = nngp.condition(net, with_one(x), y, noise_var=1e-4)
        mean, variance = posterior.predict(with_one(line))
        std = np.sqrt(variance)
        axes.fill_between(line, mean - 2 * std, mean + 2 * std, color="#dbe9f4", lw=0)
        draws = posterior.sample(with_one(line), 3, seed=1)
        axes.plot(line, draws.T, lw=0.8, color="#d55e00", alpha=0.7)
        axes.plot(line, mean, color="#0072b2", lw=2)
        axes.plot(x, y, "o", color="#222222", ms=4.5)
        axes.set(title=f"{activation}, {depth} hidden layer{'s' * (depth > 1)}", ylim=(-3, 3))
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)


def with_one(x: np.ndarray) -> np.ndarray:
    """Inputs as points (x, 1): the bias of the first layer as a second input."""
    return np.column_stack([x, np.ones_like(x)])


if __name__ == "__main__":
    posterior_picture(FOLDER / "posterior.png")
