"""The picture of signal propagation: its numbers are those of `regimes` and of whole networks, its
panels show them, and its words can be read in one column."""

import numpy as np
import pytest

import nngp
from nngp import plots, regimes
from nngp.architecture import as_activation
from nngp.plots import phases as module
from nngp.plots.phases import phases


@pytest.fixture(autouse=True, scope="module")
def coarse():
    """A grid that is quick to compute."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "GRID", (12, 9))
        yield


@pytest.fixture
def drawn():
    """Draw with matplotlib, and close what was drawn."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield plots.phase_diagram
    pyplot.close("all")


def test_the_map_is_that_of_the_regimes():
    data = phases("erf")
    w, b = np.meshgrid(data.diagram.weight_vars, data.diagram.bias_vars)
    assert data.depth_scale.shape == w.shape == (9, 12)
    rests = regimes.variance_fixed_point("erf", w, b) > 0
    xi_c = regimes.depth_scale("erf", w, b)[1]
    np.testing.assert_allclose(data.depth_scale[rests], xi_c[rests], rtol=1e-9)


def test_the_line_drawn_is_that_of_the_formula(drawn, monkeypatch):
    """The line of erf, q -> (weight_var, bias_var), bends most near bias_var = 0."""
    monkeypatch.setattr(module, "GRID", (5, 41))
    figure = drawn("erf")
    q = np.geomspace(1e-6, 10, 4000)
    weights = np.pi / 4 * np.sqrt(1 + 4 * q)
    biases = q - weights * 2 / np.pi * np.arcsin(2 * q / (1 + 2 * q))
    shown = weights < 3.3
    for axes in figure.axes[:2]:
        line = next(line for line in axes.lines if line.get_linestyle() == ":")
        found = np.interp(weights[shown], *line.get_data())
        np.testing.assert_allclose(found, biases[shown], atol=0.002)  # of an axis that ends at 2


def test_three_networks_across_the_line():
    data = phases("erf", bias_var=0.2)
    critical = regimes.critical_line("erf", 0.2)
    assert [net.phase for net in data.networks] == ["ordered", "critical", "chaotic"]
    assert data.networks[1].phase == "critical"
    np.testing.assert_allclose(
        [net.weight_var for net in data.networks], [critical / 2, critical, 2 * critical]
    )
    for net in data.networks:
        at = ("erf", net.weight_var, 0.2)
        assert net.variance == regimes.variance_fixed_point(*at)
        assert net.correlation == regimes.correlation_fixed_point(*at)
        assert net.chi == regimes.chi(*at)
        assert net.depth_scales == regimes.depth_scale(*at)


@pytest.mark.parametrize("activation", ["tanh", "relu", "gelu"])
def test_flows_are_those_of_whole_networks(activation):
    """Against the compiled curves of a network behind an affine map that changes nothing."""
    (net,) = phases(activation, weight_var=1.2, bias_var=0.3).networks
    curves = nngp.curves.compile_curves(
        nngp.Architecture(20, activation, (1.0, *[1.2] * 20), (0.0, *[0.3] * 20)), net.variance
    )
    expected = [curve([0.0, 0.5, 0.9]) / curve.variance for curve in curves]
    np.testing.assert_allclose(np.transpose(net.correlations), expected, atol=1e-7)
    np.testing.assert_allclose(net.mapped, curves[1](net.cosines) / curves[1].variance, rtol=1e-6)
    for start, flow in zip((0.02, 5.0), net.variances, strict=True):
        assert flow[0] == start
        assert flow[-1] == pytest.approx(net.variance, rel=0.02)


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
    for flow in data.networks[2].variances:
        assert flow[-1] / flow[-2] == pytest.approx(2, rel=1e-3)


def test_flows_stop_at_numbers_that_cannot_be_drawn():
    """relu2 at this weight: small variances rest, larger ones explode."""
    (net,) = phases("relu2", weight_var=0.5).networks
    small, large = net.variances
    assert small[-1] == pytest.approx(net.variance)
    assert (len(small), large.max() < 1e8) == (21, True)
    assert 2 < len(large) < 8


def test_an_activation_without_a_line():
    data = phases("sign")
    assert [net.weight_var for net in data.networks] == [1.6]
    assert data.critical_weight_var == 0


def test_networks_are_inside_the_picture():
    data = phases("erf", weight_var=9.0, bias_var=4.0)
    assert data.diagram.weight_vars[-1] > 9
    assert data.diagram.bias_vars[-1] > 4


def test_the_picture_shows_the_numbers(drawn):
    figure = drawn("erf")
    _, scales, bar, maps, variances, correlations = figure.axes
    data = phases("erf")
    shown = scales.collections[0].get_array()
    np.testing.assert_allclose(shown, np.clip(data.depth_scale, 1, 100))
    assert bar.get_ylabel() == "depth scale (layers)"
    ends = [line.get_ydata()[-1] for line in variances.lines if len(line.get_xdata()) == 21]
    flows = [flow[-1] for net in data.networks for flow in net.variances]
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


@pytest.mark.parametrize("activation", ["erf", "gelu", "sin"])
def test_words_do_not_touch_and_can_be_read(drawn, activation):
    """Nothing below 6 points in a column of 3.4 inches, no word over another or over the edge."""
    figure = drawn(activation)
    figure.canvas.draw()
    words = _words(figure)
    assert {"critical line", "depth scale (layers)", "layer $l$"} < set(words)
    assert {"erf": "chaotic", "gelu": "unbounded", "sin": "chaotic"}[activation] in words
    boxes = []
    for text in (text for texts in words.values() for text in texts):
        assert text.get_fontsize() * 3.4 / figure.get_figwidth() >= 6
        boxes.append(text.get_window_extent())
    width, height = figure.canvas.get_width_height()
    for place, box in enumerate(boxes):
        assert -1 < box.x0 < box.x1 < width + 1
        assert -1 < box.y0 < box.y1 < height + 1
        assert not any(box.overlaps(other) for other in boxes[:place])


def _words(figure):
    """All texts that are seen, by what they say."""
    unseen = set()  # labels of ticks that are out of the picture
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        out = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
        unseen |= {tick.label1 for tick in out}
    words = {}
    for text in figure.findobj(lambda part: hasattr(part, "get_fontsize") and part.get_visible()):
        if text.get_text().strip() and text not in unseen:
            words.setdefault(text.get_text().strip(), []).append(text)
    return words


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_files(drawn, tmp_path, kind):
    path = tmp_path / f"phase.{kind}"
    drawn("relu", path, weight_var=1.0, bias_var=0.0)
    assert 10_000 < path.stat().st_size < 300_000


@pytest.mark.slow
def test_large_variances_take_no_layer_of_their_own(monkeypatch):
    """Seconds each, at such variances; one-dimensional moments and single pairs are enough."""
    expected = nngp.curves.layer_covariance("tanh", 60.0, 60.0, [0.0, 0.5, 0.97, 1.0])
    monkeypatch.setattr("nngp.covariance.numeric.covariance", pytest.fail)
    monkeypatch.setattr("nngp.covariance.layer.FittedLayer", pytest.fail)
    phi = as_activation("tanh")
    at = module._next_layer(phi, 30.0, 50.0, 60.0, np.array([0.0, 0.5, 0.97, 1.0]))
    np.testing.assert_allclose(at[1] * at[0], 50.0 + 30.0 * expected, rtol=1e-9)
    (net,) = phases("tanh", weight_var=30.0, bias_var=50.0).networks
    assert net.correlations[0][-1] == pytest.approx(net.correlation, abs=1e-3)


def test_the_name_stays_where_titles_are_set_on_the_left():
    plt = pytest.importorskip("matplotlib.pyplot")
    with plt.rc_context({"axes.titlelocation": "left"}):
        figure = plots.phase_diagram("relu")
    first = figure.axes[0]
    assert (first.get_title(loc="center"), first.get_title(loc="left")) == ("relu", "a")
    plt.close(figure)
