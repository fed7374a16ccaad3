"""Figure 1: points of the best networks by validation, and the picture of them."""

import pytest
from stored_grids import SIZES, put, put_grid, put_trial

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results
from nngp_paper.parts import fig01_performance
from nngp_paper.published import published_row
from nngp_paper.scope import Scope

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
    lowest = min(made, key=lambda row: row["val_mse"])
    assert lowest["test_mse"] != best["test_mse"]
    assert (point.at, point.accuracy, point.mse, point.careless_mse, point.networks) == (
        *(1000, best["test_accuracy"], lowest["test_mse"], best["test_mse"]),
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
    (line,) = data.widths  # on the one training set that both were tried on
    assert (line.activation, line.train, line.level) == ("relu", 1000, point)
    assert [(p.at, p.accuracy, p.networks) for p in line.points] == [(8, 0.65, 2), (64, 0.85, 1)]
    wrong = 1 - best["test_accuracy"]
    assert line.ratios(fig01_performance.WRONG) == pytest.approx([0.35 / wrong, 0.15 / wrong])


def test_errors_are_of_networks_chosen_by_error(store):
    """The most accurate network does not have the lowest error; nor do its own weights."""
    put_grid(store, SCOPE, 1000, "relu", 1)
    found = {"least_loss_val_accuracy": 0.8, "least_loss_test_accuracy": 0.8}
    errors = {"least_loss_val_mse": 0.04, "least_loss_test_mse": 0.05}
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.9, 0.91, {**found, **errors})
    errors = {"least_loss_val_mse": 0.03, "least_loss_test_mse": 0.02}
    put_trial(store, "mnist", 1000, "relu", 1, 8, 1, 0.8, 0.81, {**found, **errors})
    put_trial(store, "mnist", 1000, "relu", 1, 8, 2, 0.7, 0.99, steps=100)  # only screened
    (point,) = read(store, SCOPE).curves[0].finite
    assert (point.accuracy, point.mse) == (0.91, 0.02)
    assert point.careless_mse == pytest.approx(0.09)
    assert point.networks == 3


def test_which_end_is_nearer_to_the_infinite_network():
    level = fig01_performance.Point(100, 0.9, 0.1, 0.1, 1)

    def line(*errors):
        points = [fig01_performance.Point(i, 0.5, e, e, 1) for i, e in enumerate(errors)]
        return fig01_performance.WidthLine("relu", 100, tuple(points), level)

    lines = line(0.4, 0.9, 0.2), line(0.025, 0.05), line(0.1, 0.2), line(0.3)
    data = fig01_performance.Performance("mnist", (), lines)
    near, (first, last), count = fig01_performance.nearer(data, fig01_performance.ERROR)
    assert (near, count) == (2, 3)  # one line has no ends
    assert (first, last) == pytest.approx((1.0, 2 ** (1 / 3)))


def test_widths_that_were_only_screened_are_not_shown(store):
    put_grid(store, SCOPE, 1000, "relu", 1)
    for width, steps in ((8, 3000), (16, 3000), (64, 300)):
        put_trial(store, "mnist", 1000, "relu", 1, width, 0, 0.7, 0.75, steps=steps)
    (line,) = read(store, SCOPE).widths
    assert [point.at for point in line.points] == [8, 16]


def test_the_finding_tells_ratios_by_width_and_late_peaks():
    level = fig01_performance.Point(100, 0.9, 0.1, 0.1, 1)
    early = fig01_performance.Point(8, 0.8, 0.2, 0.4, 3, best_step=940, steps=1000)
    late = fig01_performance.Point(64, 0.85, 0.1, 0.1, 1, best_step=950, steps=1000)
    line = fig01_performance.WidthLine("relu", 100, (early, late), level)
    data = fig01_performance.Performance("mnist", (), (line,))
    assert fig01_performance.mean_ratios(data, fig01_performance.WRONG) == pytest.approx(
        {8: 2.0, 64: 1.5}
    )
    words = fig01_performance.finding(data)
    assert "Error rate: in the mean 2.00 (width 8), 1.50 (width 64) times" in words
    assert "the best of so many trained networks: 3 (width 8), 1 (width 64)" in words
    assert (
        "1 of 2 had the highest accuracy or the lowest error within the last 5% of the 1,0" in words
    )


def test_there_is_no_line_where_the_infinite_network_was_not_run(store):
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    put_grid(store, SCOPE, 2000, "relu", 1)
    assert read(store, SCOPE).widths == ()


def test_sizes_without_grids_or_networks(store):
    with pytest.raises(NothingMeasuredError, match="no finished networks on mnist"):
        read(store, SCOPE)
    put_grid(store, SCOPE, 100, "erf", 50)
    data = read(store, SCOPE)
    assert data.widths == ()
    (curve,) = data.curves
    assert (curve.activation, curve.paper_infinite, curve.finite) == ("erf", (), ())


def test_the_picture_of_sizes(store, tmp_path):
    pytest.importorskip("matplotlib")
    put_grid(store, SCOPE, 1000, "relu", 1)
    alone = fig01_performance.draw(read(store, SCOPE), tmp_path / "alone.svg")
    assert len(alone.axes) == 2
    assert "no finite networks yet" in alone.subfigs[0].get_suptitle()
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    data = read(store, SCOPE)
    figure = fig01_performance.draw(data, tmp_path / "sizes.png")
    sizes, widths = figure.subfigs
    above, errors = sizes.axes
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
    ratio = 0.25 / (1 - relu.infinite[0].accuracy)
    own, level = widths.axes[0].lines
    assert own.get_ydata() == pytest.approx([ratio])
    assert (set(level.get_ydata()), level.get_linestyle()) == ({1}, "--")
    assert "best of 9; finite: best of 1 networks" in sizes.get_suptitle()
    low, high = above.get_ylim()
    assert all(low < value < high for line in lines for value in line)
    names = [text.get_text() for text in sizes.legends[0].get_texts()]
    assert names == ["relu", "infinite", "finite", "paper"]
    narrow = fig01_performance.draw(data, tmp_path / "narrow.png", narrow=True)
    assert len({round(axes.get_position().x0, 2) for axes in narrow.subfigs[1].axes}) == 1
    assert narrow.get_figwidth() < 4
