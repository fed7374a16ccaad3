"""The picture of a network: nothing overlaps, every arrow ends at a box, all text has room."""

from itertools import combinations, pairwise

import pytest

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum
from nngp.plots.network_picture import draw_network, network_layout

BLOCK = Residual(LayerNorm(), Act("relu"), Dense(1.0), Dropout(0.9), Dense(0.5, 0.05))
WIDE = Sum(Chain(Act("relu"), Dense(1.0)), Chain(Act("erf"), Dense(2.0, 0.125)), Dense(0.5))
NETS = {
    "chain": nngp.Architecture(3, "relu", 1.6, 0.1),
    "residual": Chain(Dense(2.0, 0.1), Repeat(BLOCK, 50), Act("relu"), Dense(1.0)),
    "sum": Chain(Dense(1.6, 0.1), WIDE, Act("gelu"), Dense(1.0)),
    "gate": Chain(Dense(1.0), Product(Dense(1.0), Chain(Act("sigmoid"), Dense(2.0))), Dense(1.0)),
    "nested": nngp.NTK(
        Chain(
            Dense(1.6, 0.1),
            Repeat(Residual(Act("relu"), Dense(1.0), Concat(Act("erf"), BLOCK), Dense(1.0)), 12),
            Repeat(Chain(Act("tanh"), Repeat(Dense(1.5, 0.1), 3)), 4),
        )
    ),
}


@pytest.fixture(params=NETS)
def layout(request):
    return network_layout(NETS[request.param])


def sides(item):
    if hasattr(item, "words"):
        return item.left, item.right, item.top, item.bottom
    return item.x - item.width / 2, item.x + item.width / 2, item.top, item.bottom


def test_boxes_lie_apart_and_inside(layout):
    for one, other in combinations(map(sides, layout.boxes), 2):
        apart = (one[0] - other[1], other[0] - one[1], one[2] - other[3], other[2] - one[3])
        assert max(apart) > 0.05
    for left, right, top, bottom in map(sides, (*layout.boxes, *layout.frames)):
        assert 0 < left < right < layout.width
        assert 0 < top < bottom < layout.height


def test_frames_hold_boxes_whole_or_not_at_all(layout):
    for frame in map(sides, layout.frames):
        for box in map(sides, layout.boxes):
            within = (
                box[0] - frame[0] > 0.05,
                frame[1] - box[1] > 0.05,
                box[2] > frame[2],
                frame[3] > box[3],
            )
            outside = frame[3] <= box[2] or box[3] <= frame[2] or frame[1] < box[0] - 0.05
            assert all(within) or outside or box[1] < frame[0]


def test_arrows_lead_from_box_to_box(layout):
    for corners in layout.arrows:
        (x, y), (end_x, end_y) = corners[0], corners[-1]
        assert any(abs(box.x - x) < 1e-9 and abs(box.bottom - y) < 1e-9 for box in layout.boxes)
        left = [sides(box) for box in layout.boxes]
        assert any(
            s[0] - 1e-9 <= end_x <= s[1] + 1e-9 and s[2] - 1e-9 <= end_y <= s[3] for s in left
        )
        for (ax, ay), (bx, by) in pairwise(corners):
            assert by >= ay
            assert ax == bx or abs(ay - by) < 1e-9  # at right angles


def test_every_step_is_drawn_once():
    layout = network_layout(NETS["residual"])
    assert [frame.words for frame in layout.frames] == ["50 times"]
    names = sorted(box.lines[0] for box in layout.boxes)
    inside = ["LayerNorm", "relu", "Dense", "Dropout", "Dense", "+"]
    assert names == sorted(["input", "Dense", *inside, "relu", "Dense", "output"])


def test_text_fits_into_its_box(layout):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure = draw_network(layout)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = {box.lines: box for box in layout.boxes}
    for text in axes.texts:
        box = boxes.get(tuple(text.get_text().split("\n")))
        if box is not None and box.lines[0] not in "+×":
            extent = text.get_window_extent()
            assert extent.width / figure.dpi < box.width
            assert extent.height / figure.dpi < box.height
    assert figure.get_figwidth() == pytest.approx(layout.width)
    plt.close(figure)


def test_what_is_no_network_is_refused():
    with pytest.raises(TypeError, match=r"nngp.plots.network takes"):
        network_layout("relu")
