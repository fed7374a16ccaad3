"""Figures 4 and 9: which heat maps are read, and what is then seen in them."""

import numpy as np
import pytest
from stored_grids import SIZES, put, put_grid, put_line

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.grids.arrays import SCORES
from nngp_paper.grids.choice import by_validation
from nngp_paper.part import Results
from nngp_paper.parts import fig01_performance, fig04_phase_maps, fig09_depth_maps, fig10_best
from nngp_paper.scope import Scope

SCOPE = Scope(
    "mnist", (100, 1000, 2000), depths=(1, 20, 50, 100), activations=("relu", "tanh", "erf"), grid=3
)


def phase_maps(store):
    return fig04_phase_maps.read(Results(store, SCOPE))


def depth_maps(store):
    return fig09_depth_maps.read(Results(store, SCOPE))


def test_figure_4_takes_the_fullest_set_near_fifty_layers(store):
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        phase_maps(store)
    put_grid(store, SCOPE, 1000, "erf", 50)
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        phase_maps(store)  # neither of the paper's activations
    for train in (100, 1000):
        for activation in ("relu", "tanh"):
            put_grid(store, SCOPE, train, activation, 20)
            put_grid(store, SCOPE, train, activation, 1)
    put_grid(store, SCOPE, 2000, "relu", 20, skip=SCOPE.weight_vars[:1])
    data = phase_maps(store)
    assert (data.train, data.depths, data.activations) == (1000, (20,), ("relu", "tanh"))
    assert (data.networks, data.wanted) == (18, 18)
    one = data.maps["tanh", 20]
    assert one.grid is not None
    assert one.best == by_validation([one.grid])[0]
    put_grid(store, SCOPE, 100, "relu", 50)
    data = phase_maps(store)
    assert (data.train, data.depths, data.activations) == (100, (50,), ("relu",))
    put_grid(store, SCOPE, 100, "relu", 100)
    assert phase_maps(store).depths == (50,)


def test_figure_9_has_the_depths_that_there_are(store):
    with pytest.raises(NothingMeasuredError, match="no finished grids"):
        depth_maps(store)
    put_grid(store, SCOPE, 1000, "relu", 20)
    assert depth_maps(store).depths == (20,)
    put_grid(store, SCOPE, 1000, "erf", 3)  # not the paper's
    put_grid(store, SCOPE, 1000, "tanh", 1)
    put_grid(store, SCOPE, 1000, "relu", 50, skip=SCOPE.weight_vars[1:])
    data = depth_maps(store)
    assert (data.depths, data.activations) == ((1, 50), ("relu", "tanh"))
    assert sorted(data.maps) == [("relu", 50), ("tanh", 1)]
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
    heat(store)
    data = phase_maps(store)
    figure = fig04_phase_maps.draw(data, tmp_path / "phases.png")
    relu, _, tanh, empty = figure.axes[:4]
    (cells,) = relu.collections
    errors = np.asarray(cells.get_array()).reshape(3, 3)
    np.testing.assert_allclose(errors.T, 1 - data.maps["relu", 50].grid.scores["test_accuracy"])
    star = relu.lines[-1]
    best = data.maps["relu", 50].best
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (best.weight_var, best.bias_var)
    assert relu.lines[0].get_xdata().tolist() == [1.0, 2.0, 3.0]
    grey, cells = (c for c in tanh.collections if not c.get_hatch())
    assert np.argwhere(~grey.get_array().mask.reshape(3, 3)).tolist() == [[1, 1]]
    assert np.argwhere(~cells.get_array().mask.reshape(3, 3)).tolist() == [[0, 1], [2, 1]]
    assert [text.get_text() for text in empty.texts] == ["not computed"]
    assert (
        figure.get_suptitle()
        == "test accuracy: mnist, 1,000 training points (12 of 18 networks), 50 hidden layers"
    )
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["best by validation", "critical line", "no kernel", "not run"]


def test_the_picture_of_depths(store, tmp_path):
    pytest.importorskip("matplotlib")
    heat(store)
    put_grid(store, SCOPE, 1000, "relu", 1)
    figure = fig09_depth_maps.draw(depth_maps(store), tmp_path / "depths.svg")
    assert (tmp_path / "depths.svg").stat().st_size > 1000
    panels = figure.axes[:4]
    assert [panel.get_title() for panel in panels[:2]] == ["depth 1", "depth 50"]
    assert [panel.get_ylabel().split("\n")[0] for panel in panels[::2]] == ["relu", "tanh"]
    assert [text.get_text() for text in panels[2].texts] == ["not run"]
    norms = {panel.collections[-1].norm for panel in (panels[0], panels[1], panels[3])}
    assert len(norms) == 1  # one scale of colours


def test_grids_are_read_once_for_all_figures(store, monkeypatch):
    put_grid(store, SCOPE, 1000, "relu", 50)
    results, runs, read = Results(store, SCOPE), store.runs, []
    monkeypatch.setattr(
        store, "runs", lambda *a, **more: read.append(more["experiment"]) or runs(*a, **more)
    )
    for figure in (fig01_performance, fig04_phase_maps, fig09_depth_maps, fig10_best):
        figure.read(results)
    assert read.count("grid") == 1


def test_figure_9_prefers_complete_grids_to_more_networks(store):
    part = SCOPE.weight_vars[:1]
    for train in (100, 1000):
        put_grid(store, SCOPE, train, "relu", 1)
    put_grid(store, SCOPE, 100, "tanh", 1, skip=part)
    assert depth_maps(store).train == 1000
    put_grid(store, SCOPE, 100, "tanh", 50)
    put_grid(store, SCOPE, 100, "relu", 50)
    assert depth_maps(store).train == 100


def test_figure_9_without_complete_grids_has_the_most_networks(store):
    put_grid(store, SCOPE, 1000, "relu", 1, skip=SCOPE.weight_vars[:2])
    put_grid(store, SCOPE, 100, "relu", 1, skip=SCOPE.weight_vars[:1])
    assert depth_maps(store).train == 100
