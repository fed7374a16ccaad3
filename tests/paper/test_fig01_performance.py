"""Figure 1: points of the best networks by validation, and the picture of them."""

import pytest
from stored_grids import SIZES, put, put_grid, put_trial

from nngp.errors import NothingMeasuredError
from nngp.paper import fig01_performance
from nngp.paper.part import Results
from nngp.paper.published import published_row
from nngp.paper.scope import Scope

SCOPE = Scope(
    "mnist", (100, 1000, 2000), depths=(1, 20, 50, 100), activations=("relu", "tanh", "erf"), grid=3
)


def read(store, scope):
    return fig01_performance.read(Results(store, scope))


def best_row(rows):
    return max(rows, key=lambda row: (row["val_accuracy"], -row["val_mse"]))


def small_grid(store, depth, val, accuracy, **more):
    config = {
        **{"dataset": "mnist", "train": 1000, **SIZES, "activation": "tanh", "depth": depth},
        **{"weight_vars": [1.0, 2.0], "bias_vars": [0.0, 0.5, 1.0], **more},
    }
    result = {"val_accuracy": val, "val_mse": 0.1, "test_accuracy": accuracy, "test_mse": 0.07}
    put(store, "infinite", config, result)


def test_sizes_and_widths(store):
    made = [row for depth in (1, 20) for row in put_grid(store, SCOPE, 1000, "relu", depth)]
    put_grid(store, SCOPE, 2000, "relu", 1)
    small_grid(store, 1, 0.9, 0.85)
    small_grid(store, 2, 0.8, 0.95)
    small_grid(store, 2, 1.0, 1.0, test=10)  # judged on too few points to be compared
    for trial in (
        (100, "relu", 1, 8, 0, 0.5, 0.55),
        (1000, "relu", 1, 8, 0, 0.7, 0.75),
        (1000, "relu", 2, 8, 0, 0.8, 0.65),
        (1000, "relu", 2, 64, 0, 0.75, 0.85),
    ):
        put_trial(store, "mnist", *trial)
    data = read(store, SCOPE)
    relu, tanh = data.curves
    best = best_row(made)
    point = relu.infinite[0]
    assert (point.at, point.accuracy, point.mse, point.networks) == (
        *(1000, best["test_accuracy"], best["test_mse"]),
        18,
    )
    assert [point.at for point in relu.infinite] == [1000, 2000]
    assert [(p.at, p.accuracy, p.networks) for p in relu.finite] == [
        (100, 0.55, 1),
        (1000, 0.65, 3),
    ]
    assert [(p.at, p.accuracy, p.networks) for p in tanh.infinite] == [(1000, 0.85, 12)]
    papers = [published_row("mnist", train, "tanh").test_accuracy for train in SCOPE.sizes]
    assert [point.accuracy for point in tanh.paper_infinite] == papers
    finite = [published_row("mnist", n, "relu", finite=True).test_accuracy for n in SCOPE.sizes]
    assert [point.accuracy for point in relu.paper_finite] == finite
    assert data.train == 1000
    (line,) = data.widths
    assert line.activation == "relu"
    assert line.depths == (2,)  # the one that both widths have
    assert [(p.at, p.accuracy, p.networks) for p in line.points] == [(8, 0.65, 1), (64, 0.85, 1)]
    assert line.level == point


def test_widths_are_compared_at_the_same_depths(store):
    """Two widths of three have been tried at two depths, so the third is left out; at a third
    depth one of them is alone."""
    few, more = ((1, 8, 0.91), (2, 8, 0.92)), ((1, 64, 0.93), (2, 64, 0.92), (3, 64, 0.99))
    for depth, width, accuracy in (*few, *more, (1, 256, 0.9)):
        put_trial(store, "mnist", 1000, "relu", depth, width, 0, accuracy, accuracy)
    (line,) = read(store, SCOPE).widths
    assert line.depths == (1, 2)
    assert [(p.at, p.accuracy, p.networks) for p in line.points] == [(8, 0.92, 2), (64, 0.93, 2)]


def test_there_is_no_level_where_the_infinite_network_was_not_run(store):
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    put_grid(store, SCOPE, 2000, "relu", 1)
    (line,) = read(store, SCOPE).widths
    assert line.level is None


def test_widths_are_of_the_largest_set_with_something_to_compare(store):
    for train in (100, 1000, 2000):
        put_trial(store, "mnist", train, "relu", 1, 8, 0, 0.7, 0.75)
    assert read(store, SCOPE).train == 2000  # nothing to compare yet
    put_grid(store, SCOPE, 100, "tanh", 1)
    put_grid(store, SCOPE, 1000, "relu", 1)
    assert read(store, SCOPE).train == 1000


def test_sizes_without_grids_or_networks(store):
    with pytest.raises(NothingMeasuredError, match="no finished networks on mnist"):
        read(store, SCOPE)
    put_grid(store, SCOPE, 100, "erf", 50)
    data = read(store, SCOPE)
    assert (data.train, data.widths) == (None, ())
    (curve,) = data.curves
    assert (curve.activation, curve.paper_infinite, curve.finite) == ("erf", (), ())


def test_the_picture_of_sizes(store, tmp_path):
    pytest.importorskip("matplotlib")
    put_grid(store, SCOPE, 1000, "relu", 1)
    alone = fig01_performance.draw(read(store, SCOPE), tmp_path / "alone.svg")
    assert len(alone.axes) == 2
    assert "no finite networks yet" in alone.get_suptitle()
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    data = read(store, SCOPE)
    figure = fig01_performance.draw(data, tmp_path / "sizes.png")
    above, errors, below, _ = figure.axes
    lines = [tuple(line.get_ydata()) for line in above.lines]
    relu = data.curves[0]
    for points in (relu.infinite, relu.finite, relu.paper_infinite, relu.paper_finite):
        assert tuple(point.accuracy for point in points) in lines
    assert [line.get_ydata()[0] for line in errors.lines] == [
        relu.infinite[0].mse,
        relu.finite[0].mse,
    ]
    hollow = [line for line in above.lines if line.get_markerfacecolor() == "none"]
    assert len(hollow) == 2
    level = below.lines[1]
    assert set(level.get_ydata()) == {relu.infinite[0].accuracy}
    assert level.get_linestyle() == "--"
    assert "best of 9; finite: best of 1 networks" in figure.get_suptitle()
    low, high = above.get_ylim()
    assert all(low < value < high for line in lines for value in line)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["relu", "infinite", "finite", "paper"]
