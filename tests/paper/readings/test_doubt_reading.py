"""Figures 3 and 8 from a store filled by hand: which runs they show, and where marks are."""

import numpy as np
import pytest

from nngp.errors import NothingMeasuredError
from nngp.paper.readings.doubt import doubt, doubt_by_size
from nngp.paper.scope import Scope
from nngp.paper.studies.doubt import doubt_study
from nngp.runs import RunStore

SCOPE = Scope("digits", (500, 100, 200, 1000))


def measured(store, scope, *sizes, activations=("relu", "tanh"), **changed):
    for config in doubt_study(scope).configs:
        if config["train"] in sizes and config["activation"] in activations:
            (key,) = store.declare("doubt", [{**config, **changed}])
            store.claim([key])
            store.finish(key, result_for(**config), seconds=1.0)


def result_for(train, activation, **_):
    bins = np.arange(1, 26) / train
    low = 0.5 if activation == "relu" else 0.75
    return {
        "predicted": bins.tolist(),
        "realised": (low * bins).tolist(),
        "correlation": low + train / 10_000,
        "points": 500,
    }


@pytest.fixture
def store(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        yield store


def test_figure_3_is_the_largest_and_figure_8_the_others(store):
    measured(store, SCOPE, 100, 200, 500, 1000)
    largest, others = doubt(store, SCOPE), doubt_by_size(store, SCOPE)
    assert (largest.dataset, largest.done, largest.wanted) == ("digits", 8, 8)
    assert largest.sizes == (1000,)
    assert [curve.activation for curve in largest.curves] == ["relu", "tanh"]
    assert others.sizes == (100, 200, 500)
    curve = others.curves[3]
    assert (curve.train, curve.activation, curve.points, curve.bin) == (200, "tanh", 500, 20)
    assert curve.correlation == pytest.approx(0.77)
    np.testing.assert_allclose(curve.predicted, np.arange(1, 26) / 200)
    np.testing.assert_allclose(curve.realised, 0.75 * np.arange(1, 26) / 200)


def test_what_is_finished_is_shown(store):
    measured(store, SCOPE, 100, 200)
    measured(store, SCOPE, 500, activations=("tanh",))
    measured(store, Scope("mnist", (1000,)), 1000)  # another data set
    measured(store, SCOPE, 1000, bin=100)  # other runs
    store.declare("doubt", doubt_study(SCOPE).configs)
    assert doubt(store, SCOPE).sizes == (500,)
    assert [curve.activation for curve in doubt(store, SCOPE).curves] == ["tanh"]
    assert doubt_by_size(store, SCOPE).sizes == (100, 200)
    assert (doubt(store, SCOPE).done, doubt(store, SCOPE).wanted) == (5, 8)
    small = Scope("digits", (100, 1000))
    assert (doubt(store, small).sizes, doubt(store, small).wanted) == ((100,), 4)


def test_where_nothing_is_finished_a_sentence_says_so(store):
    store.declare("doubt", doubt_study(SCOPE).configs)
    sentence = r"runs\.db has no finished run of 'doubt' with these options; run nngp reproduce"
    for read in (doubt, doubt_by_size):
        with pytest.raises(NothingMeasuredError, match=sentence):
            read(store, SCOPE)
    measured(store, SCOPE, 100)
    with pytest.raises(NothingMeasuredError, match="one training size on digits only"):
        doubt_by_size(store, SCOPE)


@pytest.fixture
def draw():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pytest.importorskip("nngp.paper.figures.uncertainty").draw_doubt
    pyplot.close("all")


def test_a_panel_has_the_bins_the_diagonal_and_the_correlations(store, draw):
    measured(store, SCOPE, 100, 200, 500, 1000)
    (axes,) = draw(doubt(store, SCOPE)).axes
    assert axes.get_title() == "n = 1,000\nrelu r = 0.600, tanh r = 0.850"
    relu, tanh, diagonal = axes.lines
    np.testing.assert_allclose(relu.get_xdata(), np.arange(1, 26) / 1000)
    np.testing.assert_allclose(relu.get_ydata(), np.arange(1, 26) / 2000)
    np.testing.assert_allclose(tanh.get_ydata(), 0.75 * np.arange(1, 26) / 1000)
    assert relu.get_color() != tanh.get_color()
    assert relu.get_marker() != tanh.get_marker()
    assert (diagonal.get_slope(), diagonal.get_xy1()) == (1, (0, 0))
    assert axes.get_xlim()[1] > 25 / 1000
    assert axes.get_ylim()[1] > 0.75 * 25 / 1000


def test_small_multiples_share_their_scales_and_their_legend(store, draw, tmp_path):
    scope = Scope("digits", (100, 200, 300, 400, 500, 1000))
    measured(store, scope, 100, 200, 300, 500, 1000)
    measured(store, scope, 400, activations=("tanh",))
    data = doubt_by_size(store, scope)
    figure = draw(data)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title().split("\n")[0] for axes in panels] == [
        f"n = {size}" for size in (100, 200, 300, 400, 500)
    ]
    assert panels[3].get_title() == "n = 400\ntanh r = 0.790"
    assert (
        len({axes.get_xlim() for axes in panels}) == len({axes.get_ylim() for axes in panels}) == 1
    )
    assert panels[0].get_xlim()[1] > 0.25
    assert [bool(axes.get_xlabel()) for axes in panels] == [False, False, True, True, True]
    assert panels[3].lines[0].get_color() == panels[0].lines[1].get_color()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["relu", "tanh", "as large as expected"]
    assert "mean of 20 test points" in figure.get_suptitle()
    assert "(11 of 12 runs are finished)" in figure.get_suptitle()
    for name in ("a.png", "a.svg"):
        draw(data, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_no_word_is_cut_off_or_too_small(store, draw):
    from matplotlib.text import Text

    measured(store, SCOPE, 100, 200, 500, 1000)
    for data in (doubt(store, SCOPE), doubt_by_size(store, SCOPE)):
        figure = draw(data)
        figure.canvas.draw()
        box = figure.get_tightbbox()
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= figure.get_figwidth() <= 7.2
        assert box.y1 <= figure.get_figheight()
        assert "finished" not in figure.get_suptitle()
        assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text()) >= 8


def test_the_legend_names_what_is_there(store, draw):
    measured(store, SCOPE, 100, activations=("tanh",))
    (legend,) = draw(doubt(store, SCOPE)).legends
    assert [text.get_text() for text in legend.get_texts()] == ["tanh", "as large as expected"]
