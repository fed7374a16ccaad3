"""Figures 1, 2, 4, 9 and 10: what is read for them, and what is then seen in them."""

import numpy as np
import pytest
from stored_grids import SIZES, put, put_grid, put_line, put_trial

from nngp.errors import NothingMeasuredError
from nngp.paper.published import published_row
from nngp.paper.readings.best import best_settings
from nngp.paper.readings.choice import by_validation
from nngp.paper.readings.gap import gap
from nngp.paper.readings.grids import SCORES, read_grids
from nngp.paper.readings.heatmaps import depth_maps, phase_maps
from nngp.paper.readings.lines import read_theory
from nngp.paper.readings.sizes import sizes
from nngp.paper.scope import Scope

SCOPE = Scope(
    "mnist", (100, 1000, 2000), depths=(1, 20, 50, 100), activations=("relu", "tanh", "erf"), grid=3
)


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
    data = sizes(store, SCOPE)
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
    (line,) = sizes(store, SCOPE).widths
    assert line.depths == (1, 2)
    assert [(p.at, p.accuracy, p.networks) for p in line.points] == [(8, 0.92, 2), (64, 0.93, 2)]


def test_there_is_no_level_where_the_infinite_network_was_not_run(store):
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    put_grid(store, SCOPE, 2000, "relu", 1)
    (line,) = sizes(store, SCOPE).widths
    assert line.level is None


def test_widths_are_of_the_largest_set_with_something_to_compare(store):
    for train in (100, 1000, 2000):
        put_trial(store, "mnist", train, "relu", 1, 8, 0, 0.7, 0.75)
    assert sizes(store, SCOPE).train == 2000  # nothing to compare yet
    put_grid(store, SCOPE, 100, "tanh", 1)
    put_grid(store, SCOPE, 1000, "relu", 1)
    assert sizes(store, SCOPE).train == 1000


def test_sizes_without_grids_or_networks(store):
    with pytest.raises(NothingMeasuredError, match="no finished networks on mnist"):
        sizes(store, SCOPE)
    put_grid(store, SCOPE, 100, "erf", 50)
    data = sizes(store, SCOPE)
    assert (data.train, data.widths) == (None, ())
    (curve,) = data.curves
    assert (curve.activation, curve.paper_infinite, curve.finite) == ("erf", (), ())


def test_the_picture_of_sizes(store, tmp_path):
    pytest.importorskip("matplotlib")
    from nngp.paper.figures.sizes import draw_sizes

    put_grid(store, SCOPE, 1000, "relu", 1)
    alone = draw_sizes(sizes(store, SCOPE), tmp_path / "alone.svg")
    assert len(alone.axes) == 2
    assert "no finite networks yet" in alone.get_suptitle()
    put_trial(store, "mnist", 1000, "relu", 1, 8, 0, 0.7, 0.75)
    data = sizes(store, SCOPE)
    figure = draw_sizes(data, tmp_path / "sizes.png")
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


def learned(store, train, width, accuracy, **more):
    config = {
        **{"dataset": "mnist", "train": train, **SIZES, "activation": "relu", "depth": 5},
        **{"width": width, "loss": "cross_entropy", "steps": 6000, "interval": 300},
        **{"patience": 6, "monitor": "train", **more},
    }
    put(store, "gap", config, {"train_accuracy": accuracy, "test_accuracy": 0.75})


def test_the_gap_of_the_largest_set_that_was_learned(store):
    with pytest.raises(NothingMeasuredError, match="there are none; run nngp gap"):
        gap(store, SCOPE)
    learned(store, 2000, 8, 0.99)
    with pytest.raises(NothingMeasuredError, match="none of 1 networks learned"):
        gap(store, SCOPE)
    learned(store, 100, 8, 1.0)
    learned(store, 1000, 8, 1.0)
    learned(store, 1000, 16, 1.0)
    learned(store, 1000, 32, 1.0, depth=3)
    learned(store, 1000, 64, 1.0, steps=7)
    learned(store, 10_000, 8, 1.0)  # not of the scope
    data = gap(store, SCOPE)
    assert (data.train, data.depth, data.left_out) == (1000, 5, 0)
    assert [(one.width, one.gap) for one in data.learned] == [(8, 0.25), (16, 0.25)]


def test_the_finest_diagram_of_each_activation(store):
    put_line(store, "tanh", points=6)
    put_line(store, "tanh", line=(9.0, 9.0), points=5)
    put_line(store, "relu")
    put_line(store, "erf")
    found = read_theory(store, ["tanh", "relu"])
    assert sorted(found) == ["relu", "tanh"]
    theory = found["tanh"]
    assert theory.phase.shape == (6, 6)
    weights, biases = theory.line_within(np.array([1.5, 3.0]))
    assert (weights.tolist(), biases.tolist()) == ([2.0, 3.0], [1.0, 2.0])
    assert np.isinf(theory.depth_scale).all()


def test_figure_4_takes_the_fullest_set_near_fifty_layers(store):
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        phase_maps(store, SCOPE)
    put_grid(store, SCOPE, 1000, "erf", 50)
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        phase_maps(store, SCOPE)  # neither of the paper's activations
    for train in (100, 1000):
        for activation in ("relu", "tanh"):
            put_grid(store, SCOPE, train, activation, 20)
            put_grid(store, SCOPE, train, activation, 1)
    put_grid(store, SCOPE, 2000, "relu", 20, skip=SCOPE.weight_vars[:1])
    data = phase_maps(store, SCOPE)
    assert (data.train, data.depths, data.activations) == (1000, (20,), ("relu", "tanh"))
    assert (data.networks, data.wanted) == (18, 18)
    one = data.maps["tanh", 20]
    assert one.grid is not None
    assert one.best == by_validation([one.grid])[0]
    put_grid(store, SCOPE, 100, "relu", 50)
    data = phase_maps(store, SCOPE)
    assert (data.train, data.depths, data.activations) == (100, (50,), ("relu",))
    put_grid(store, SCOPE, 100, "relu", 100)
    assert phase_maps(store, SCOPE).depths == (50,)


def test_figure_9_has_the_depths_that_there_are(store):
    with pytest.raises(NothingMeasuredError, match="no finished grids"):
        depth_maps(store, SCOPE)
    put_grid(store, SCOPE, 1000, "relu", 20)
    assert depth_maps(store, SCOPE).depths == (20,)
    put_grid(store, SCOPE, 1000, "erf", 1)
    put_grid(store, SCOPE, 1000, "relu", 50, skip=SCOPE.weight_vars[1:])
    data = depth_maps(store, SCOPE)
    assert (data.depths, data.activations) == ((1, 50), ("relu", "erf"))
    assert sorted(data.maps) == [("erf", 1), ("relu", 50)]
    assert (data.networks, data.wanted) == (12, 36)


def heat(store):
    put_grid(store, SCOPE, 1000, "relu", 50)
    config = {
        **{"dataset": "mnist", "train": 1000, **SIZES, "activation": "tanh", "depth": 50},
        **{"weight_var": SCOPE.weight_vars[1], "bias_vars": list(SCOPE.bias_vars)},
    }
    result = {score: [0.5, None, 0.75] for score in SCORES}
    put(store, "grid", config, result)
    put_line(store, "relu")


def test_the_picture_of_phases(store, tmp_path):
    pytest.importorskip("matplotlib")
    from nngp.paper.figures.heatmaps import draw_phase_maps

    heat(store)
    data = phase_maps(store, SCOPE)
    figure = draw_phase_maps(data, tmp_path / "phases.png")
    relu, _, tanh, empty = figure.axes[:4]
    (cells,) = relu.collections
    errors = np.asarray(cells.get_array()).reshape(3, 3)
    np.testing.assert_allclose(errors.T, 1 - data.maps["relu", 50].grid.scores["test_accuracy"])
    star = relu.lines[-1]
    best = data.maps["relu", 50].best
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (best.weight_var, best.bias_var)
    assert relu.lines[0].get_xdata().tolist() == [1.0, 2.0, 3.0]
    grey, cells = tanh.collections
    assert np.argwhere(~grey.get_array().mask.reshape(3, 3)).tolist() == [[1, 1]]
    assert np.argwhere(~cells.get_array().mask.reshape(3, 3)).tolist() == [[0, 1], [2, 1]]
    assert [text.get_text() for text in empty.texts] == ["not computed"]
    assert (
        figure.get_suptitle()
        == "mnist, 1,000 training points (12 of 18 networks), 50 hidden layers"
    )
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["best by validation", "critical line", "no kernel"]


def test_the_picture_of_depths(store, tmp_path):
    pytest.importorskip("matplotlib")
    from nngp.paper.figures.heatmaps import draw_depth_maps

    heat(store)
    put_grid(store, SCOPE, 1000, "relu", 1)
    figure = draw_depth_maps(depth_maps(store, SCOPE), tmp_path / "depths.svg")
    assert (tmp_path / "depths.svg").stat().st_size > 1000
    panels = figure.axes[:4]
    assert [panel.get_title() for panel in panels[:2]] == ["depth 1", "depth 50"]
    assert [panel.get_ylabel() for panel in panels[::2]] == [
        "relu\nbias variance",
        "tanh\nbias variance",
    ]
    assert [text.get_text() for text in panels[2].texts] == ["not run"]
    norms = {panel.collections[-1].norm for panel in (panels[0], panels[1], panels[3])}
    assert len(norms) == 1  # one scale of colours


def test_figure_10_has_the_best_25(store, tmp_path):
    scope = Scope("mnist", (100, 200, 500, 1000, 2000), (1, 50), ("relu", "erf"), grid=6)
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        best_settings(store, scope)
    made = {
        train: [row for depth in (1, 50) for row in put_grid(store, scope, train, "relu", depth)]
        for train in (100, 200, 500, 1000)
    }
    put_grid(store, scope, 2000, "erf", 50)
    put_line(store, "relu")
    data = best_settings(store, scope)
    assert data.sizes == (100, 200, 1000, 2000)
    assert data.activations == ("relu", "erf")
    ranked = sorted(made[200], key=lambda row: (-row["val_accuracy"], row["val_mse"]))
    assert [vars(one) for one in data.chosen["relu", 200]] == ranked[:25]
    assert ("relu", 2000) not in data.chosen
    assert data.networks["relu", 200] == 72
    assert (data.networks["erf", 2000], data.wanted) == (36, 72)
    pytest.importorskip("matplotlib")
    from nngp.paper.figures.best import draw_best

    figure = draw_best(data, tmp_path / "best.svg")
    panel = figure.axes[1]
    line, deep, shallow = panel.lines
    assert line.get_xdata().tolist() == [1.0, 2.0, 3.0]
    for marks, depth in ((deep, 50), (shallow, 1)):
        own = [(row["weight_var"], row["bias_var"]) for row in ranked[:25] if row["depth"] == depth]
        assert list(zip(marks.get_xdata(), marks.get_ydata(), strict=True)) == own
    assert deep.get_markersize() > shallow.get_markersize()
    assert [text.get_text() for text in figure.axes[3].texts] == ["not run"]
    assert figure.get_suptitle().endswith("some grids are not complete")


def test_grids_that_are_given_serve_all_figures(store, monkeypatch):
    put_grid(store, SCOPE, 1000, "relu", 50)
    grids, runs, read = read_grids(store, SCOPE), store.runs, []
    monkeypatch.setattr(
        store, "runs", lambda *a, **more: read.append(more["experiment"]) or runs(*a, **more)
    )
    for reading in (sizes, phase_maps, depth_maps, best_settings):
        reading(store, SCOPE, grids)
    assert "grid" not in read


def test_named_accuracies_are_round_and_apart():
    pytest.importorskip("matplotlib")
    from nngp.plots.style import accuracy_ticks

    assert accuracy_ticks(0.012, 0.25) == [0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985]
    named = accuracy_ticks(0.001, 0.9)
    assert (named[0], named[-1]) == (0.1, 0.999)
    logs = -np.log(1 - np.array(named))
    assert np.diff(logs).min() > np.log(900) / 12


def test_figure_9_prefers_complete_grids_to_more_networks(store):
    part = SCOPE.weight_vars[:1]
    for train in (100, 1000):
        put_grid(store, SCOPE, train, "relu", 1)
    put_grid(store, SCOPE, 100, "tanh", 1, skip=part)
    assert depth_maps(store, SCOPE).train == 1000
    put_grid(store, SCOPE, 100, "erf", 1)
    assert depth_maps(store, SCOPE).train == 100


def test_figure_9_without_complete_grids_has_the_most_networks(store):
    put_grid(store, SCOPE, 1000, "relu", 1, skip=SCOPE.weight_vars[:2])
    put_grid(store, SCOPE, 100, "relu", 1, skip=SCOPE.weight_vars[:1])
    assert depth_maps(store, SCOPE).train == 100
