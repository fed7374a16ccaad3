"""The benchmark of tables: scores against scikit-learn and numerical integration, what is compared
with what, files there and back, and the page of the site."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm


def record(method, name, split, collection="uci_more", **scores):
    return {"collection": collection, "set": name, "split": split, "method": method, **scores}


def rmse_records(values, splits=(0, 1)):
    """values: method -> set -> rmse, the same in all splits."""
    return [
        record(method, name, split, rmse=value)
        for method, sets in values.items()
        for name, value in sets.items()
        for split in splits
    ]


def test_ranks_with_ties_and_a_failure():
    from tabular_panel import panel

    records = rmse_records({"nngp": {"a": 1.0, "b": 2.0}, "x": {"a": 1.0, "b": 3.0}})
    records += [record("y", "a", s, rmse=0.5) for s in (0, 1)]
    records += [record("y", "b", 0, rmse=0.1), record("y", "b", 1, error="too large")]
    found = panel(records, "rmse")
    assert found.methods == ["nngp", "x", "y"]
    assert found.ranks() == {"nngp": 1.75, "x": 2.25, "y": 2.0}  # ties share; failures are last
    assert found.means() == {"nngp": 1.0, "x": 1.0, "y": 0.5}  # of the set where none failed


def test_larger_is_better_for_log_likelihoods_with_and_without_twins():
    from tabular_panel import panel

    for measure in ("log_likelihood", "without_twins.log_likelihood"):
        records = [record(m, "a", 0, **{measure: v}) for m, v in (("nngp", -1.0), ("x", -2.0))]
        assert panel(records, measure).ranks() == {"nngp": 1.0, "x": 2.0}


def test_only_splits_that_all_have_are_averaged():
    from tabular_panel import panel

    records = [record("nngp", "a", s, rmse=float(s)) for s in range(4)]
    records += [record("x", "a", s, rmse=1.0) for s in (2, 3)]
    records += [record("y", "a", 0, rmse=1.0)]  # less than half of the splits
    found = panel(records, "rmse")
    assert found.left_out == []
    assert found.only() == {"nngp": 2.5, "x": 1.0}


def test_a_method_with_few_sets_is_left_out_and_named():
    from tabular_panel import panel

    sets = {f"s{i}": 1.0 for i in range(10)}
    found = panel(rmse_records({"nngp": sets, "x": {"s0": 2.0}}), "rmse")
    assert found.left_out == ["x"]
    assert len(found.sets) == 10


def test_paired_comparison():
    from tabular_panel import panel

    ours = dict(zip("abcdef", [1.0, 1.0, 1.0, 1.0, 1.0, 2.0], strict=True))
    theirs = dict(zip("abcdef", [1.1, 1.2, 1.3, 1.4, 1.5, 2.0], strict=True))
    found = panel(rmse_records({"nngp": ours, "x": theirs}), "rmse").paired("nngp", "x")
    assert found[:3] == (5, 1, 0)
    assert_allclose(found[3], 2 / 2**5)  # of 2^5 signs two are as extreme; the draw is dropped


def test_crps_is_the_integral_of_its_definition():
    from tabular_scores import crps

    for error, std in ((0.3, 0.5), (-2.0, 1.5)):
        below = quad(lambda x, s=std: norm.cdf(x, 0, s) ** 2, -30, error)[0]
        above = quad(lambda x, s=std: (norm.cdf(x, 0, s) - 1) ** 2, error, 30)[0]
        assert_allclose(crps(np.array(error), np.array(std)), below + above, rtol=1e-7)


def test_scores_of_a_gaussian_forecast():
    from tabular_peers import gaussian
    from tabular_scores import regression_scores

    y, mean, std = np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.5, 3.0]), np.array([1.0, 0.5, 2.0])
    scores = regression_scores(gaussian(mean, std, 0.0), y, 2.0, np.ones(3, bool))
    assert_allclose(scores["rmse"], np.sqrt((0.25 + 36) / 3))
    assert_allclose(scores["log_likelihood"], norm.logpdf(y, mean, std).mean())
    assert_allclose(scores["coverage"], 2 / 3)
    assert_allclose(scores["width"], 2 * 1.959964 * std.mean() / 2.0, rtol=1e-6)
    kept = regression_scores(gaussian(mean, std, 0.0), y, 2.0, np.array([True, True, False]))
    assert_allclose(kept["rmse"], np.sqrt(0.25 / 2))


def test_scores_of_probabilities():
    from sklearn.metrics import log_loss
    from tabular_peers import Votes
    from tabular_scores import FLOOR, classification_scores

    probability = np.array([[0.7, 0.3], [0.2, 0.8], [1.0, 0.0]])
    votes, y = Votes(probability.argmax(axis=1), probability, 0.0), np.array([0, 1, 1])
    scores = classification_scores(votes, y, 2)
    assert_allclose(scores["accuracy"], 2 / 3)
    assert_allclose(scores["log_loss"], -np.log([0.7, 0.8, FLOOR]).mean())
    mixed = 0.99 * probability + 0.005
    assert_allclose(scores["log_loss_mixed"], log_loss(y, mixed))
    assert_allclose(scores["calibration"], (0.3 + 0.2 + 1.0) / 3)  # each in a bin of its own
    unseen = classification_scores(votes, np.array([0, 1, 2]), 3)  # no training row had class 2
    assert_allclose(unseen["log_loss"], scores["log_loss"])


def test_twins_are_equal_in_inputs_and_target():
    from tabular_sets import twins

    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([5.0, 6.0])
    Xs, ys = np.array([[1.0, 2.0], [1.0, 2.0], [3.0, 4.5]]), np.array([5.0, 6.0, 6.0])
    assert twins(X, y, Xs, ys).tolist() == [True, False, False]


def test_a_bound_on_rows_is_kept_at_random_and_repeatably():
    from tabular_sets import subset

    rows = np.arange(100, 200)
    kept = subset(rows, 30, 7)
    assert len(set(kept)) == 30
    assert set(kept) <= set(rows)
    assert (kept == subset(rows, 30, 7)).all()
    assert (kept != subset(rows, 30, 8)).any()
    assert subset(rows, None, 7) is rows


def test_parameters_by_the_name_of_a_method(monkeypatch):
    from tabular_nngp import parameters

    monkeypatch.setenv("NNGP_ENGINE", "cpu")
    assert parameters("nngp") == {"engine": "cpu"}
    wanted = {"engine": "cpu", "effort": "fast", "n_networks": 5, "target_transform": "log"}
    assert parameters("nngp fast n_networks=5 target_transform=log") == wanted
    with pytest.raises(ValueError, match="neither name=value nor one of"):
        parameters("nngp quick")


def test_runs_through_store_and_file(tmp_path, capsys):
    from tabular_export import export, merge, read, write

    from nngp_paper.runs import RunStore

    config = {"collection": "uci", "set": "yacht", "split": 0, "rows": None, "method": "nngp"}
    with RunStore(tmp_path / "part.db") as store:
        keys = store.declare("tabular", [config, {**config, "split": 1}])
        result = {"rmse": 0.123456789, "without_twins": {"rmse": 0.5}}
        store.finish(keys[0], result, seconds=1.0, device="a machine")
        store.fail(keys[1], "no, because")
    merge(tmp_path / "all.db", [tmp_path / "part.db"])
    export(tmp_path / "all.db", tmp_path)
    write(tmp_path / "tabular_classification.csv", [record("nngp", "ecoli", 0, accuracy=0.5)])
    first, second = read(tmp_path)["regression"]
    assert first == {
        **{"collection": "uci", "set": "yacht", "split": 0.0, "method": "nngp"},
        **{"rmse": 0.12346, "without_twins.rmse": 0.5, "machine": "a machine"},
    }
    assert (second["split"], second["error"]) == (1.0, "no, because")
    assert "rmse" not in second


def test_the_section_replaces_what_is_between_the_marks(tmp_path):
    from tabular_page import BEGIN, END, rewrite

    regression = [
        record(m, "wine_red", s, "uci", **{f"{prefix}{name}": v for prefix in ("", "without_twins.")
               for name, v in (("rmse", r), ("log_likelihood", -r), ("coverage", 0.95))})
        for m, r in (("nngp", 0.5), ("catboost", 0.625), ("ridge", 0.75))
        for s in (0, 1)
    ]  # fmt: skip
    more = {"without_twins.rmse": 0.8, "without_twins.log_likelihood": -0.8}
    regression.append(record("nngp", "wine_red", 2, "uci", **more))  # the others have not done it
    classes = [
        record(m, "ecoli", 0, "uci_class", accuracy=a) for m, a in (("nngp", 0.9), ("x", 0.8))
    ]
    path = tmp_path / "tables.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    rewrite(path, {"regression": regression, "classification": classes})
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    row = "| wine_red without twins | 3 | 0.556 | 0.6 | 0.5 | 0.625 (catboost) | "
    assert row + "-0.8 | -0.6 | -0.5 | -0.625 (catboost) | 0.95 |" in text
    assert "| nngp | 1 | 0.9 |" in text
    path.write_text("no marks")
    with pytest.raises(SystemExit, match="must have the line"):
        rewrite(path, {"regression": regression, "classification": classes})


def test_every_table_of_the_summary_is_made():
    from tabular_summary import summary

    scores = {"rmse": 1.0, "log_likelihood": -1.0, "coverage": 0.9, "width": 2.0, "crps": 0.5}
    regression = [
        record(m, name, 0, "uci", **scores, fit_seconds=0.1, machine="a machine")
        for m in ("nngp", "ridge")
        for name in ("boston", "yacht")
    ]
    text = summary({"regression": regression, "classification": []})
    for line in (
        "| boston | 1 | 2.57 | 1 | 1 | 1 (ridge) |",
        "| rmse | ridge | 0–2–0 | 1 |",
        "a machine",
    ):
        assert line in text
