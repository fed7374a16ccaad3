"""Angular structure of the kernel: the look-up table agrees with the exact curve."""

import numpy as np
import pytest

import nngp
from nngp.plots.angular import AngularStructure, compute_angular_structure, draw_angular_structure


def test_the_table_lies_on_the_exact_curve():
    table = nngp.curves.LookupTable("relu", 201, 501, 201, s_max=10.0)  # smaller than by default
    data = compute_angular_structure(nngp.Architecture(9, "relu", 1.6, 0.1), table)
    assert data.exact.shape == (10, 400)
    for depth in range(10):
        at = np.interp(data.sparse_theta, data.theta, data.exact[depth])
        np.testing.assert_allclose(data.lookup[depth], at, atol=5e-3)
    # flattening with depth, as the paper describes
    spread = np.ptp(data.exact, axis=1)
    assert np.all(np.diff(spread) < 0)


@pytest.mark.parametrize("narrow", [False, True])
def test_every_curve_has_its_number(narrow):
    plt = pytest.importorskip("matplotlib.pyplot")
    net = nngp.Architecture(9, "relu", 1.6, 0.1)
    theta = np.linspace(0, np.pi, 50)
    exact = np.array([curve(np.cos(theta)) for curve in nngp.curves.compile_curves(net)])
    figure = draw_angular_structure(
        AngularStructure(net, theta, exact, theta[::5], exact[:, ::5]), None, narrow=narrow
    )
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert [text.get_text().split()[-1] for text in axes.texts] == [str(i) for i in range(10)]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(axes.get_window_extent().x0 <= box.x0 for box in boxes)
    leaders = [line.get_xydata() for line in axes.lines if line.get_color() == "0.6"]
    assert [ends[0].tolist() for ends in leaders] == [[0.0, row[0]] for row in exact]
    assert [ends[1, 1] for ends in leaders] == [text.get_position()[1] for text in axes.texts]
    words = [*axes.texts, *axes.get_xticklabels(), axes.xaxis.label, axes.title]
    assert min(text.get_fontsize() for text in words) >= 9
    assert not narrow or figure.get_figwidth() == 3.8
    plt.close(figure)
