"""Repeated parts as a picture: a line and a row of the legend for each, within the axes."""

import pytest

from nngp import Act, Chain, Dense, Residual
from nngp.plots.block_depth import block_study, draw_blocks

LAYER = Act("relu"), Dense(1.0)
STUDY = block_study({"chain": Chain(*LAYER), "skip": Residual(*LAYER)}, 200)


def test_every_part_has_a_line_and_its_law():
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = draw_blocks(STUDY)
    left, right = figure.axes
    for axes, values in ((left, "variance"), (right, "one_minus")):
        drawn = [line.get_ydata() for line in axes.lines]
        assert [len(y) for y in drawn] == [200, 200]
        first = getattr(STUDY.found["skip"], values)
        assert drawn[1][-1] == first[-1].item()
        low, high = axes.get_ylim()
        assert 4e-7 < low < high < 3e6
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert [text.split(":")[0] for text in words] == ["chain", "skip"]
    for one, text in zip(STUDY.found.values(), words, strict=True):
        assert str(one.one_minus_laws[0]) in text
    figure.draw_without_rendering()
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    plt.close(figure)


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one part"):
        block_study({})
