"""The demo runs, prints its scores and leaves its pictures; the figures' numbers are right."""

import re

import numpy as np
import pytest

import nngp
from nngp.plots.angular import angular_structure
from nngp.plots.uncertainty import intervals
from nngp.terminal import demo


@pytest.mark.slow
def test_demo(tmp_path, capfd):
    pytest.importorskip("typer")
    demo.main(str(tmp_path))
    printed = capfd.readouterr().out
    assert "$ nngp fit" in printed
    (accuracy,) = re.findall(r"accuracy on 899 others: (0\.\d+)", printed)
    assert float(accuracy) > 0.97
    ours, softmax = map(float, re.findall(r"calibration error, .*: (0\.\d+)", printed))
    assert ours < 0.03 < softmax
    for name in ("angular-structure", "intervals", "reliability"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
    assert len((tmp_path / "predictions.csv").read_text().splitlines()) == 112


def test_intervals_are_in_the_order_of_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    data = intervals(nngp.NNGPRegressor(selection=None).fit(X, y), X, y, 0.5)
    assert np.all(np.diff(data.mean) >= 0)
    assert np.all((data.lower < data.mean) & (data.mean < data.upper))
    inside = (data.lower < data.observed) & (data.observed < data.upper)
    assert data.inside == inside.mean()
    # observed values moved along with their predictions
    assert np.abs(data.observed - data.mean).max() < 1


def test_the_table_lies_on_the_exact_curve():
    table = nngp.LookupTable("relu", 201, 501, 201, s_max=10.0)  # smaller than by default
    data = angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), table)
    assert data.exact.shape == (10, 400)
    for depth in range(10):
        at = np.interp(data.sparse_theta, data.theta, data.exact[depth])
        np.testing.assert_allclose(data.lookup[depth], at, atol=5e-3)
    # flattening with depth, as the paper describes
    spread = np.ptp(data.exact, axis=1)
    assert np.all(np.diff(spread) < 0)
