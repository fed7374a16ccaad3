"""The picture of signal propagation: its numbers are those of `regimes` and of whole networks, its
panels show them, and its words can be read in one column."""

import numpy as np
import pytest

import nngp
from nngp import plots, regimes
from nngp.reproduce import phases as module
from nngp.reproduce.phases import phases


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """A grid that is quick to compute."""
    monkeypatch.setattr(module, "GRID", (12, 9))


@pytest.fixture
def drawn():
    """Draw with matplotlib, and close what was drawn."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield plots.phase_diagram
    pyplot.close("all")


def test_the_map_is_that_of_the_regimes():
    data = phases("tanh")
    w, b = np.meshgrid(data.diagram.weight_vars, data.diagram.bias_vars)
    assert data.depth_scale.shape == w.shape == (9, 12)
    rests = regimes.variance_fixed_point("tanh", w, b) > 0
    xi_c = regimes.depth_scale("tanh", w, b)[1]
    np.testing.assert_allclose(data.depth_scale[rests], xi_c[rests], rtol=1e-9)


def test_three_networks_across_the_line():
    data = phases("tanh", bias_var=0.2)
    critical = regimes.critical_line("tanh", 0.2)
    assert [net.phase for net in data.networks] == ["ordered", "critical", "chaotic"]
    assert [net.on_line for net in data.networks] == [False, True, False]
    np.testing.assert_allclose(
        [net.weight_var for net in data.networks], [critical / 2, critical, 2 * critical]
    )
    for net in data.networks:
        at = ("tanh", net.weight_var, 0.2)
        assert net.variance == regimes.variance_fixed_point(*at)
        assert net.correlation == regimes.correlation_fixed_point(*at)
        assert net.chi == regimes.chi(*at)
        assert net.depth_scales == regimes.depth_scale(*at)


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_flows_are_those_of_whole_networks(activation):
    """Against the compiled curves of a network behind an affine map that changes nothing."""
    (net,) = phases(activation, weight_var=1.2, bias_var=0.3).networks
    curves = nngp.compile_curves(
        nngp.Architecture(20, activation, (1.0, *[1.2] * 20), (0.0, *[0.3] * 20)), net.variance
    )
    expected = [curve([0.0, 0.5, 0.9]) / curve.variance for curve in curves]
    np.testing.assert_allclose(net.correlations, expected, rtol=1e-6)
    np.testing.assert_allclose(net.mapped, curves[1](net.cosines) / curves[1].variance, rtol=1e-6)
    np.testing.assert_allclose(net.variances[-1], net.variance, rtol=0.02)  # both starts arrive
    assert net.variances[0].tolist() == [0.02, 20.0]


def test_maps_pass_through_their_fixed_points():
    for net in phases("sin").networks:
        found = np.interp(net.correlation, net.cosines, net.mapped)
        assert found == pytest.approx(net.correlation, abs=1e-3)
        assert net.mapped[-1] == pytest.approx(1)


def test_without_a_bound_the_variance_limits():
    """relu beyond 2: correlations have no scale of their own, the variance doubles and doubles."""
    data = phases("relu")
    far = data.diagram.weight_vars > 2.5
    scale = 1 / np.log(data.diagram.weight_vars[far] / 2)
    np.testing.assert_allclose(data.depth_scale[4][far], scale, rtol=1e-4)
    assert np.isinf(data.networks[2].variance)
    rate = data.networks[2].variances[-1] / data.networks[2].variances[-2]
    np.testing.assert_allclose(rate, 2, rtol=1e-3)


def test_flows_stop_at_numbers_that_cannot_be_drawn():
    (net,) = phases("cube", weight_var=3.0).networks
    assert net.variances.max() < 1e8
    assert 2 <= len(net.variances) < 21


def test_an_activation_without_a_line():
    data = phases("sign")
    assert [net.weight_var for net in data.networks] == [1.6]
    assert data.critical_weight_var == 0


def test_networks_are_inside_the_picture():
    data = phases("tanh", weight_var=9.0, bias_var=4.0)
    assert data.diagram.weight_vars[-1] > 9
    assert data.diagram.bias_vars[-1] > 4


def test_the_picture_shows_the_numbers(drawn):
    figure = drawn("tanh")
    _, scales, maps, variances, correlations, bar = figure.axes
    data = phases("tanh")
    shown = scales.collections[0].get_array()
    np.testing.assert_allclose(shown, np.clip(data.depth_scale, 1, 100))
    assert bar.get_ylabel() == "depth scale (layers)"
    ends = [line.get_ydata()[-1] for line in variances.lines if len(line.get_xdata()) == 21]
    flows = [end for net in data.networks for end in net.variances[-1]]
    np.testing.assert_allclose(sorted(ends), sorted(flows))
    dashed = {line.get_ydata()[0] for line in correlations.lines if line.get_linestyle() == "--"}
    assert dashed == {net.correlation for net in data.networks}
    open_, filled = (
        [line for line in maps.lines if line.get_marker() == "o" and _is_open(line) == wanted]
        for wanted in (True, False)
    )
    unstable = [line.get_xydata().tolist() for line in open_ if len(line.get_xdata())]
    assert unstable == [[[1.0, 1.0]]]  # of the chaotic network alone
    stable = sorted(line.get_xdata()[0] for line in filled if len(line.get_xdata()))
    assert stable == sorted(net.correlation for net in data.networks)


def _is_open(line):
    return line.get_markerfacecolor() == "white"


@pytest.mark.parametrize("activation", ["tanh", "gelu", lambda x: np.exp(-(x**2)) * x])
def test_words_do_not_touch_and_can_be_read(drawn, activation):
    """Nothing below 6 points in a column of 3.4 inches, no word over another or over the edge."""
    figure = drawn(activation)
    figure.canvas.draw()
    boxes = []
    for words in figure.findobj(match=lambda part: hasattr(part, "get_fontsize")):
        if words.get_text().strip() and words.get_visible():
            assert words.get_fontsize() * 3.4 / figure.get_figwidth() >= 6
            boxes.append(words.get_window_extent())
    names = [axes.texts for axes in figure.axes]
    assert sum(map(len, names)) >= 2  # phases are named in the picture
    width, height = figure.canvas.get_width_height()
    for place, box in enumerate(boxes):
        assert -1 < box.x0 < box.x1 < width + 1
        assert -1 < box.y0 < box.y1 < height + 1
        assert not any(box.overlaps(other) for other in boxes[:place])


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_files(drawn, tmp_path, kind):
    path = tmp_path / f"phase.{kind}"
    drawn("relu", path, weight_var=1.0, bias_var=0.0)
    assert 10_000 < path.stat().st_size < 300_000
