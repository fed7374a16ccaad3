"""Tables 1 and 2 from stores with known answers, and the paper's own numbers."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
from stored_grids import SIZES, put, put_grid, put_setting, put_trial

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.grids.arrays import SCORES
from nngp_paper.part import Results
from nngp_paper.parts import table1 as first, table2 as second
from nngp_paper.published import published, published_row
from nngp_paper.report.sections import _earlier
from nngp_paper.scope import Scope
from nngp_paper.shared.tables import as_columns, write_csv

SCOPE = Scope("mnist", (1000, 2000), depths=(1, 3), activations=("relu", "gelu"), grid=5)
PAPER = published_row("mnist", 1000, "relu")


def table1(store, scope):
    return first.read(Results(store, scope))


def table2(store, scope):
    return second.read(Results(store, scope))


def rows_of(table):
    return {(row.train, row.activation): row for row in table.rows}


def test_the_paper_is_whole():
    rows = published()
    assert (
        len(rows) == len({(r.dataset, r.train, r.activation, r.width is None) for r in rows}) == 72
    )
    assert PAPER.setting == "20-1.45-0.28"
    assert PAPER.test_accuracy == 0.9279
    finite = published_row("cifar10", 45_000, "relu", finite=True)
    assert (finite.setting, finite.width, finite.test_accuracy) == (
        "3-5000-0.53-0.01",
        5000,
        0.5313,
    )
    last = published_row("mnist", 50_000, "tanh")
    assert (last.depth, last.weight_var, last.bias_var) == (1, 1.28, 0.0)
    assert published_row("mnist", 1000, "gelu") is None


def test_the_network_is_chosen_on_validation_and_judged_on_test(store):
    made = [row for depth in (1, 3) for row in put_grid(store, SCOPE, 1000, "relu", depth)]
    row = rows_of(table2(store, SCOPE))[1000, "relu"]
    ranked = sorted(made, key=lambda row: (-row["val_accuracy"], row["val_mse"]))
    assert vars(row.chosen) == ranked[0]
    top = [one["test_accuracy"] for one in ranked[:25]]
    assert row.top == (min(top), max(top))
    assert row.top != (
        min(one["test_accuracy"] for one in made),
        max(one["test_accuracy"] for one in made),
    )
    evident = max(made, key=lambda row: row["log_evidence"])
    assert vars(row.evidence) == evident
    gain = 100 * (evident["test_accuracy"] - ranked[0]["test_accuracy"])
    assert row.evidence_gain == pytest.approx(gain)
    assert row.difference == pytest.approx(100 * (ranked[0]["test_accuracy"] - 0.9279))
    p = ranked[0]["test_accuracy"]
    assert row.standard_error == pytest.approx(100 * math.sqrt(p * (1 - p) / 2000))
    assert (row.networks, row.wanted, row.seconds, row.devices) == (50, 50, 20.0, ("abacus",))


def test_partial_grids_say_so(store):
    put_grid(store, SCOPE, 1000, "gelu", 3, skip=SCOPE.weight_vars[:2])
    row = rows_of(table2(store, SCOPE))[1000, "gelu"]
    assert (row.networks, row.wanted) == (15, 50)
    assert row.paper is None
    assert row.difference is None
    assert row.chosen is not None


def test_settings_of_the_paper_by_kernel(store):
    put_setting(store, PAPER, "table", 0.7, test=1999)  # judged on fewer points
    put_setting(store, PAPER, "table", 0.9274)
    put_setting(store, PAPER, "exact", 0.9250)
    put_setting(store, PAPER, "table", 0.1, depth=19)
    put_setting(store, PAPER, "table", 0.2, weight_var=1.4601)
    put_setting(store, PAPER, "table", 0.3, bias_var=0.2741)
    put_setting(store, PAPER, "table", 0.4, activation="tanh")
    put_setting(store, PAPER, "table", 0.5, train=2000)
    put_setting(store, PAPER, "table", 0.6, weight_var=1.4517)  # rounds to it, but is not nearest
    row = rows_of(table2(store, SCOPE))[1000, "relu"]
    assert row.lookup.result["test_accuracy"] == 0.9274
    assert row.exact.result["test_accuracy"] == 0.9250
    assert row.lookup_difference == pytest.approx(-0.05)
    assert row.chosen is None
    assert row.standard_error is None


def test_the_clamped_table_comes_before_that_of_earlier_runs(store):
    put_setting(store, PAPER, "table", 0.9274)
    rows = table2(store, SCOPE).rows
    assert _earlier(rows).startswith("1 rows of the authors' table, from 1,000 points, are runs")
    put_setting(store, PAPER, "authors", 0.9279)
    rows = table2(store, SCOPE).rows
    assert [row.lookup_difference for row in rows if row.lookup] == [0.0]
    assert _earlier(rows) == ""


def test_another_setting_is_not_the_papers(store):
    put_grid(store, SCOPE, 1000, "relu", 1)
    put_setting(store, PAPER, "exact", 0.9, weight_var=1.4601)
    put_setting(store, PAPER, "table", 0.9, bias_var=0.2741)
    row = rows_of(table2(store, SCOPE))[1000, "relu"]
    assert (row.exact, row.lookup, row.lookup_difference) == (None, None, None)


def test_the_spread_is_that_of_the_best_25(store):
    ranks = np.arange(25)
    for depth, shift in ((1, 0), (3, 25)):  # the networks from best to worst on validation
        for weight_var, some in zip(SCOPE.weight_vars, ranks.reshape(5, 5) + shift, strict=True):
            falling = (0.9 - some / 100).tolist()
            result = dict.fromkeys(SCORES, falling)
            config = {
                **{"dataset": "mnist", "train": 1000, **SIZES, "activation": "relu"},
                **{"depth": depth, "weight_var": weight_var, "bias_vars": SCOPE.bias_vars},
            }
            put(store, "grid", config, result)
    row = rows_of(table2(store, SCOPE))[1000, "relu"]
    assert row.top == (pytest.approx(0.66), pytest.approx(0.9))


def test_a_setting_on_the_grid_is_the_one_that_was_printed(store):
    put_setting(store, PAPER, "exact", 0.9, weight_var=1.4517, bias_var=0.2759)
    assert rows_of(table2(store, SCOPE))[1000, "relu"].exact.result["test_accuracy"] == 0.9


def test_finite_networks_beside_the_published_ones(store):
    put_trial(store, "mnist", 1000, "relu", 2, 8, 0, 0.90, 0.91)
    put_trial(store, "mnist", 1000, "relu", 2, 8, 1, 0.80, 0.99)
    put_trial(store, "mnist", 1000, "relu", 3, 64, 0, 0.95, 0.92)
    put_trial(store, "mnist", 1000, "relu", 3, 64, 1, 0.90, 0.98, steps=700)  # screened
    put_trial(store, "mnist", 2000, "relu", 3, 64, 1, 0.99, 0.97, steps=700)
    rows = rows_of(table2(store, SCOPE))
    found = rows[1000, "relu"].finite
    assert (found.cell.depth, found.cell.width, found.trials) == (3, 64, 4)
    assert found.result["test_accuracy"] == 0.92
    assert rows[2000, "relu"].finite.result["test_accuracy"] == 0.97  # its plan is all there is
    columns = as_columns(rows[1000, "relu"])
    assert (columns["nn"], columns["nn_setting"], columns["nn_trials"]) == (
        0.92,
        "3-64-1.23-0.50",
        4,
    )
    assert columns["nn_mse"] == pytest.approx(0.08)
    assert (columns["paper_nn"], columns["paper_nn_setting"]) == (0.9252, "2-5000-3.19-0.00")


def test_table_1_has_the_rows_of_the_main_table(store):
    scope = Scope("cifar10", (45_000, 100, 1000, 10_000, 20_000), (1,), ("relu", "tanh", "erf"), 2)
    put_grid(store, scope, 1000, "erf", 1)
    names = [(row.train, row.activation) for row in table1(store, scope).rows]
    assert names == [
        *((1000, "relu"), (1000, "tanh"), (1000, "erf")),
        *((10_000, "relu"), (10_000, "tanh")),
        *((45_000, "relu"), (45_000, "tanh")),
    ]
    assert {row.train for row in table2(store, scope).rows} == set(scope.sizes)


def test_nothing_measured_is_an_error_that_says_so(store):
    with pytest.raises(NothingMeasuredError, match=r"on mnist with 1000, 2000 training"):
        table2(store, SCOPE)
    put_grid(store, SCOPE, 2000, "relu", 1)
    table2(store, SCOPE)
    with pytest.raises(NothingMeasuredError, match=r"on mnist with 1000 training points"):
        table1(store, SCOPE)
    other = replace(SCOPE, sizes=(2000, 100))  # none of the main table
    assert {row.train for row in table1(store, other).rows} == {100, 2000}


def test_grids_are_read_once(store, monkeypatch):
    put_grid(store, SCOPE, 1000, "relu", 1)
    results, read, runs = Results(store, SCOPE), [], store.runs
    monkeypatch.setattr(
        store, "runs", lambda *a, **more: read.append(more["experiment"]) or runs(*a, **more)
    )
    assert second.read(results) == second.read(results) == table2(store, SCOPE)
    assert read.count("grid") == 2


def test_a_csv_file_has_all_rows_and_short_numbers(store, tmp_path):
    put_grid(store, SCOPE, 1000, "relu", 1)
    put_setting(store, PAPER, "table", 0.9274)
    other = Scope("cifar10", (1000,), (1,), ("relu",), 2)
    put_grid(store, other, 1000, "relu", 1)
    tables = [table2(store, SCOPE), table2(store, other)]
    assert write_csv(tables, tmp_path / "table.csv") == 3
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["dataset"] for row in rows] == ["mnist", "mnist", "cifar10"]
    first, chosen = rows[0], tables[0].rows[0].chosen
    assert float(first["nngp"]) == chosen.test_accuracy
    assert float(first["nngp_mse"]) == pytest.approx(chosen.test_mse, rel=1e-5)
    assert first["nngp_setting"] == chosen.setting
    assert first["evidence_setting"] == tables[0].rows[0].evidence.setting
    assert first["table_at_paper_setting"] == "0.9274"
    empty = {"exact_at_paper_setting", "nn", "nn_mse", "nn_setting", "nn_trials"}
    assert not empty & first.keys()
    assert (first["networks"], first["networks_wanted"], first["device"]) == ("25", "50", "abacus")
    assert (first["paper_nngp"], first["paper_nngp_setting"]) == ("0.9279", "20-1.45-0.28")
    assert float(first["best_25_lowest"]) < float(first["best_25_highest"])
    assert all(len(value) < 20 for value in first.values())
    with pytest.raises(ValueError, match="no rows to write"):
        write_csv([], tmp_path / "none.csv")
    assert not (tmp_path / "none.csv").exists()
