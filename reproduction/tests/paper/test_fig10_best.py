"""Figure 10: the best networks by validation, and where they are drawn."""

import pytest
from stored_grids import put_grid, put_line

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results
from nngp_paper.parts import fig10_best
from nngp_paper.scope import Scope


def test_figure_10_has_the_best_25(store, tmp_path):
    scope = Scope("mnist", (100, 200, 500, 1000, 2000), (1, 50), ("relu", "erf"), grid=6)
    with pytest.raises(NothingMeasuredError, match="no finished grids on mnist"):
        fig10_best.read(Results(store, scope))
    made = {
        train: [row for depth in (1, 50) for row in put_grid(store, scope, train, "relu", depth)]
        for train in (100, 200, 500, 1000)
    }
    put_grid(store, scope, 2000, "erf", 50)
    put_line(store, "relu")
    data = fig10_best.read(Results(store, scope))
    assert data.sizes == (100, 200, 1000, 2000)
    assert data.activations == ("relu", "erf")
    ranked = sorted(made[200], key=lambda row: (-row["val_accuracy"], row["val_mse"]))
    assert [vars(one) for one in data.chosen["relu", 200]] == ranked[:25]
    assert ("relu", 2000) not in data.chosen
    assert data.networks["relu", 200] == 72
    assert (data.networks["erf", 2000], data.wanted["erf", 2000]) == (36, 45)
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
