"""The demo runs, prints its table and leaves its picture; the figure's two ways agree."""

import numpy as np

import nngp
from nngp.reproduce import demo
from nngp.reproduce.angular import angular_structure


def test_demo(tmp_path, capsys):
    demo.main(str(tmp_path))
    printed = capsys.readouterr().out
    assert "relu, w 1.6, b 0.1" in printed
    assert "tanh, w 1.6, b 0.1" in printed
    accuracies = [float(line.split()[7]) for line in printed.splitlines() if "depth 10 " in line]
    assert len(accuracies) == 2
    assert min(accuracies) > 0.9
    assert (tmp_path / "angular-structure.png").stat().st_size > 10_000


def test_the_table_lies_on_the_exact_curve():
    data = angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1))
    assert data.exact.shape == (10, 400)
    for depth in range(10):
        at = np.interp(data.sparse_theta, data.theta, data.exact[depth])
        np.testing.assert_allclose(data.lookup[depth], at, atol=5e-3)
    # flattening with depth, as the paper describes
    spread = np.ptp(data.exact, axis=1)
    assert np.all(np.diff(spread) < 0)
