"""Options of `nngp fit`: parameters of the estimator, and columns that tell of each row."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

pl = pytest.importorskip("polars")
pytest.importorskip("typer")

import nngp  # noqa: E402
from nngp.terminal import estimator_options as handover  # noqa: E402
from nngp.terminal.options import FitOptions, TargetKind, estimator_options  # noqa: E402
from nngp.terminal.output import in_command_words  # noqa: E402

KINDS = {"regression": nngp.NNGPRegressor, "classification": nngp.NNGPClassifier}


def table(n=30):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=n), rng.uniform(0.5, 2, n)
    weight, noise = np.round(w, 3), np.round(0.01 * w, 4)
    y = 2 * x + 0.1 * rng.normal(size=n)
    return pl.DataFrame({"x": x, "weight": weight, "noise": noise, "y": y, "dear": y > 0})


@pytest.fixture
def told(monkeypatch):
    """What `fit` of either estimator was told of the rows."""
    out = {}
    for kind in KINDS.values():

        def fit(self, X, y, own=kind.fit, **told):
            out.update(told, X=X, y=y)
            return own(self, X, y)

        monkeypatch.setattr(kind, "fit", fit)
    return out


def test_weights_and_noise_are_columns_and_no_inputs(run, told):
    frame = table().with_columns(weight=pl.when(pl.col("x") > 1).then(0).otherwise("weight"))
    frame.write_csv("train.csv")
    left = frame.filter(pl.col("weight") > 0)
    words = "fit train.csv -t y --drop dear --weights weight --noise-column noise --selection none"
    code, _, said = run(words)
    assert code == 0
    assert f"{len(frame) - len(left)} row(s) of weight 0 are dropped" in said
    assert told["X"].names == ["x"]
    np.testing.assert_array_equal(told["y"], left["y"])
    np.testing.assert_array_equal(told["sample_weight"], left["weight"])
    np.testing.assert_array_equal(told["noise_var"], left["noise"])
    for words in ("predict model.nngp train.csv", "evaluate model.nngp train.csv"):
        code, _, said = run(words)
        assert (code, said) == (0, "")  # nothing about columns that were no inputs
    frame.select("x").write_csv("new.csv")
    assert run("predict model.nngp new.csv")[0] == 0


@pytest.mark.parametrize("target", ["y", "dear"])
def test_whole_weights_are_copies(run, target):
    table().with_columns(weight=pl.Series([1, 2, 3] * 10)).write_csv("train.csv")
    drop = "dear" if target == "y" else "y"
    words = f"fit train.csv -t {target} --drop {drop} --drop noise --weights weight"
    code, shown, _ = run(f"{words} --selection none --json")
    assert code == 0
    assert json.loads(shown)["rows"] == 60
    assert json.loads(shown)["estimated_by"].startswith("leave-one-out: each of 60 rows")


def test_words_that_no_parameter_has_are_wrong_usage(run):
    for words in ("--noise some", "--target-transform sqrt"):
        code, _, said = run(f"fit missing.csv -t y --task regression {words}")
        assert code == 2  # before the table is read
        assert f"{words.split()[0]} must be one of" in said


def test_weights_of_classes(run, told):
    table().drop("y").write_csv("train.csv")
    assert run("fit train.csv -t dear --weights weight --selection none")[0] == 0
    np.testing.assert_array_equal(told["sample_weight"], table()["weight"])
    assert "noise_var" not in told


BAD = {  # values of the column, options, exit code, message
    "words": (["a", "b", "c"], "--weights w", 3, "holds no numbers, and weights must be"),
    "gap": ([1, None, 2], "--weights w", 3, "lacks 1 value(s), and weights are needed"),
    "negative": ([1, -2, 2], "--weights w", 3, "holds -2, and weights must not be negative"),
    "nothing": ([0, 0, 0], "--weights w", 3, "all weights in column 'w' are 0"),
    "all missing": (["", "", ""], "--weights w", 3, "holds no numbers"),
    "infinite": ([1, float("inf"), 2], "--weights w", 3, "infinite values"),
    "no such column": ([1, 2, 3], "--weights v", 2, "there is no column 'v'"),
    "the target": ([1, 2, 3], "--weights y", 2, "'y' is the target"),
    "dropped": ([1, 2, 3], "--weights w --drop w", 2, "named for two purposes"),
    "noise and weights": ([1, 2, 3], "--weights w --noise-column w", 2, "for two purposes"),
    "negative noise": ([1, -1, 3], "--noise-column w", 3, "holds -1, and variances of the noise"),
    "noise of classes": (
        [1, 2, 3],
        "--noise-column w --task classification",
        2,
        "--noise-column is for regression",
    ),
    "no input left": ([1, 2, 3], "--weights w --drop x", 3, "no column is left"),
}


def test_what_cannot_be_weights_or_noise(run, told):
    for case in BAD:
        values, options, code, sentence = BAD[case]
        rows = zip([1.5, 2.5, 4.0], values, [1, 4, 9], strict=True)
        lines = [f"{x},{'' if w is None else w},{y}" for x, w, y in rows]
        Path("train.csv").write_text("\n".join(["x,w,y", *lines]) + "\n")
        found, _, said = run(f"fit train.csv -t y {options}")
        assert (found, sentence in said) == (code, True), said
        assert not Path("model.nngp").exists()
        assert not told


def test_every_parameter_has_the_default_of_the_estimator():
    """Where the command has an option and an estimator the parameter, both mean the same."""
    options = FitOptions(train=Path("x.csv"), target="y")
    for kind in KINDS:
        expected = KINDS[kind]().get_params(deep=False)
        given = handover.parameters_for(TargetKind(kind), options, "auto")
        assert given == {name: expected[name] for name in given}
        assert {"depth", "noise_var", "selection", "random_state", "solver"} <= set(given)


def test_an_option_of_another_task_is_refused(monkeypatch):
    """An estimator gets what it has a parameter for, whatever it is called."""

    class Weighted(nngp.NNGPClassifier):
        def __init__(self, *, depth="auto", class_weight=None):
            super().__init__(depth=depth)
            self.class_weight = class_weight

    monkeypatch.setitem(handover.TASKS, TargetKind.classification, Weighted)
    options = FitOptions(train=Path("x.csv"), target="y", class_weight="balanced", depth="3")
    given = handover.parameters_for(TargetKind.classification, options, "auto")
    assert {name: given[name] for name in ("class_weight", "depth")} == {
        "class_weight": "balanced",
        "depth": 3,
    }
    plain = dataclasses.replace(options, class_weight="none", depth="auto")
    assert handover.parameters_for(TargetKind.classification, plain, "auto")["class_weight"] is None
    with pytest.raises(handover.UsageError, match="--class-weight is not for regression"):
        handover.parameters_for(TargetKind.regression, options, "auto")
    seeded = dataclasses.replace(plain, seed=7)
    assert handover.parameters_for(TargetKind.regression, seeded, "auto")["random_state"] == 7


def test_messages_about_parameters_name_the_options():
    names = estimator_options(FitOptions)
    assert in_command_words("random_state must be whole") == "--seed must be whole"
    said = in_command_words("noise='heteroscedastic' needs target_transform='identity'")
    assert said == "--noise heteroscedastic needs --target-transform identity"
    assert in_command_words("the noise of networks is small") == "the noise of networks is small"
    assert {"target_transform", "effort", "n_networks", "likelihood", "noise"} <= set(names)


def test_the_interval_is_the_models_own(run, monkeypatch):
    """Ends of the interval need not be symmetric about the mean."""
    table().select("x", "y").write_csv("train.csv")
    run("fit train.csv -t y --selection none")
    own = nngp.NNGPRegressor.predict_interval

    def skewed(self, X, coverage=0.95, *, noise=True):
        lower, upper = own(self, X, coverage, noise=noise)
        return lower, upper + 7.0

    monkeypatch.setattr(nngp.NNGPRegressor, "predict_interval", skewed)
    code, out, _ = run("predict model.nngp train.csv --interval 0.5 --json")
    assert code == 0
    rows = json.loads(out)["predictions"]
    lower, upper = skewed(nngp.load("model.nngp"), table().select("x"), 0.5)
    np.testing.assert_allclose([row["y_lower"] for row in rows], lower, rtol=1e-12)
    np.testing.assert_allclose([row["y_upper"] for row in rows], upper, rtol=1e-12)
    pl.DataFrame({"x": table()["x"], "y": [row["y"] + 5 for row in rows]}).write_csv("test.csv")
    _, out, _ = run("evaluate model.nngp test.csv --json")
    assert json.loads(out)["coverage_95"] == 1.0
