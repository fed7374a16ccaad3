"""Losses against time as a picture: the lines are the numbers of `TrainedEnsemble.losses`."""

import numpy as np
import pytest

import nngp

pytest.importorskip("matplotlib")

RNG = np.random.default_rng(0)
X = nngp.normalize(RNG.normal(size=(30, 3)))


def test_the_lines_are_the_losses(tmp_path):
    networks = nngp.training.train_ensemble(
        nngp.Architecture(2, "relu", 2.0, 0.1), X[:20], X[:20, 0]
    )
    times = [0.0, 1.0, 10.0, 1e3, np.inf]
    found = networks.losses(times, X[20:], X[20:, 0])
    figure = nngp.plots.training(networks, times, X[20:], X[20:, 0], tmp_path / "training.png")
    assert (tmp_path / "training.png").stat().st_size > 10_000
    lines = figure.axes[0].lines
    wanted = (found.train, found.train_expected, found.test, found.test_expected)
    for line, losses in zip(lines, wanted, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), times[1:-1])
        np.testing.assert_array_equal(line.get_ydata(), losses[1:-1])
    bottom, top = figure.axes[0].get_ylim()
    assert bottom < found.test[1:-1].min()
    assert top > found.train_expected[1:-1].max()


def test_without_test_points_there_are_two_lines():
    networks = nngp.training.train_ensemble(
        nngp.Architecture(2, "relu", 2.0, 0.1), X[:20], X[:20, 0]
    )
    figure = nngp.plots.training(networks, [1.0, 2.0])
    assert len(figure.axes[0].lines) == 2
