"""Figure 10: the best networks by validation, and where they are drawn."""

import pytest
from stored_grids import SIZES, put, put_grid, put_line

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.grids.arrays import SCORES
from nngp_paper.grids.choice import Chosen
from nngp_paper.part import Results
from nngp_paper.parts import fig10_best
from nngp_paper.scope import Scope


def test_figure_10_has_the_best_25(store, tmp_path):
    scope = Scope("mnist", (100, 200, 500, 1000, 2000), (1, 50), ("relu", "tanh"), grid=6)
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        fig10_best.read(Results(store, scope))
    made = {
        train: [row for depth in (1, 50) for row in put_grid(store, scope, train, "relu", depth)]
        for train in (100, 200, 500, 1000)
    }
    put_grid(store, scope, 2000, "tanh", 50)
    put_line(store, "relu")
    data = fig10_best.read(Results(store, scope))
    assert [panel.train for panel in data.panels] == [100, 200, 1000, 2000]
    assert data.activations == ("relu", "tanh")
    ranked = sorted(made[200], key=lambda row: (-row["val_accuracy"], row["val_mse"]))
    at = {panel.train: panel for panel in data.panels}
    assert [vars(one) for one in data.chosen["relu", at[200]]] == ranked[:25]
    assert ("relu", at[2000]) not in data.chosen
    assert data.networks["relu", at[200]] == 72
    assert (data.networks["tanh", at[2000]], data.wanted["tanh", at[2000]]) == (36, 72)
    pytest.importorskip("matplotlib")
    figure = fig10_best.draw(data, tmp_path / "best.svg")
    panel = figure.axes[1]
    line, deep, shallow = panel.lines
    assert line.get_xdata().tolist() == [1.0, 2.0, 3.0]
    for marks, depth in ((deep, 50), (shallow, 1)):
        own = [(row["weight_var"], row["bias_var"]) for row in ranked[:25] if row["depth"] == depth]
        assert list(zip(marks.get_xdata(), marks.get_ydata(), strict=True)) == own
    assert deep.get_markersize() > shallow.get_markersize()
    assert [text.get_text() for text in figure.axes[3].texts] == ["not run"]
    assert figure.get_suptitle().endswith("some grids are not complete")


def chosen(depth, weight_var, bias_var, accuracy, error):
    return Chosen(depth, weight_var, bias_var, accuracy, error, 0.9, 0.01, 0.0, 1e-10)


RANKED = [
    chosen(3, 1.0, 0.0, 0.95, 0.012345),
    chosen(3, 2.0, 0.0, 0.95, 0.012346),  # the same but for its scale
    chosen(5, 2.0, 0.0, 0.95, 0.012346),  # deeper
    chosen(3, 1.0, 0.1, 0.94, 0.012345),  # a bias
    chosen(3, 0.1, 0.0, 0.93, 0.0140),  # so small that noise matters
    chosen(3, 3.0, 0.0, 0.95, 0.012344),
]


def test_settings_that_only_scale_a_relu_network_are_one():
    assert fig10_best.distinct(RANKED, "relu") == [RANKED[i] for i in (0, 2, 3, 4)]
    assert fig10_best.distinct(RANKED, "tanh") == RANKED


def test_the_three_kernels_stand_side_by_side_on_their_training_set(store):
    """Settings of the authors' table are not merged: its integral is cut, so a scale matters."""
    scope = Scope("mnist", (100, 1000, 2000), (3,), ("relu",), grid=2)
    for kind in ("grid", "relative_grid", "authors_grid"):
        for train in (100, 1000, 2000) if kind == "grid" else (1000,):
            for weight_var in scope.weight_vars:
                config = {
                    **{"dataset": "mnist", "train": train, **SIZES, "activation": "relu"},
                    **{"depth": 3, "weight_var": weight_var, "bias_vars": list(scope.bias_vars)},
                }
                values = (0.9, 0.01, 0.9, 0.02, 0.0, 1e-10)
                result = {name: [value] * 2 for name, value in zip(SCORES, values, strict=True)}
                put(store, kind, config, result)
    data = fig10_best.read(Results(store, scope))
    assert [(panel.kind.split(", ")[-1], panel.train) for panel in data.panels] == [
        *(("authors' table", 1000), ("noise 1e-10", 1000), ("relative noise", 1000)),
        *(("noise 1e-10", 100), ("noise 1e-10", 2000)),
    ]
    counts = [len(data.chosen["relu", panel]) for panel in data.panels]
    assert counts == [4, 3, 3, 3, 3]
    assert [data.merged["relu", panel] for panel in data.panels] == [0, 1, 1, 1, 1]
    assert "4 settings are the same predictor" not in fig10_best.finding(data)  # there is no line
    put_line(store, "relu")
    data = fig10_best.read(Results(store, scope))
    assert "4 settings are the same predictor" in fig10_best.finding(data)
