"""The inputs of all measurements, made once from scikit-learn's digits with a fixed seed.

Images: digits of 8 x 8 pixels enlarged to 28 x 28 (d = 784), moved by up to two pixels, with a
little noise, so that all rows differ. `X` has x·x/d = 1 for every row, as the paper has it;
`norms` undoes that. Targets are one-hot less 0.1. `circle` has points of d = 2 at angles from 1e-6
to pi to its first row, for which mpmath has the exact kernel.
"""

from pathlib import Path
from typing import Any

import numpy as np

ROWS, SIDE = 6000, 28
SEED = 0


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {**images(), **circle(), **few()}
    np.savez(path, **arrays)


def images() -> dict[str, np.ndarray]:
    from scipy.ndimage import zoom
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(SEED)
    digits, labels = load_digits(return_X_y=True)
    chosen = np.concatenate([rng.permutation(len(digits)) for _ in range(4)])[:ROWS]
    X = np.empty((ROWS, SIDE * SIDE))
    for row, index in enumerate(chosen):
        large = zoom(digits[index].reshape(8, 8) / 16, SIDE / 8, order=1)
        moved = np.roll(large, tuple(rng.integers(-2, 3, size=2)), axis=(0, 1))
        X[row] = moved.ravel() + 0.05 * rng.standard_normal(SIDE * SIDE)
    norms = np.sqrt((X * X).mean(axis=1))
    chosen_labels = labels[chosen]
    Y = np.eye(10)[chosen_labels] - 0.1
    return {"X": X / norms[:, None], "norms": norms, "Y": Y, "labels": chosen_labels}


def angles() -> np.ndarray:
    return np.concatenate([[0.0], np.logspace(-6, -1, 11), np.linspace(0.2, np.pi, 25)])


def circle() -> dict[str, np.ndarray]:
    a = angles()
    return {"circle": np.sqrt(2) * np.stack([np.cos(a), np.sin(a)], axis=1)}


def few() -> dict[str, np.ndarray]:
    """A hundred rows of five inputs, for a linear model."""
    rng = np.random.default_rng(SEED)
    names = {"few": (100, 5), "few_test": (20, 5), "slopes": (5,)}
    return {name: rng.standard_normal(shape) for name, shape in names.items()}
