"""`nngp-paper finite` and `nngp-paper gap`: small searches on digits, and what cannot be."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_a_search_leaves_a_store_and_a_picture_and_goes_on(run):
    words = "finite --width 8 --depth 1 --trials 2 --steps 100 --train 100 --json"
    code, out, err = run(words)
    assert code == 0
    told = json.loads(out)
    (row,) = told["rows"]
    assert (row["depth"], row["width"], row["trials"]) == (1, 8, 2)
    assert 0 < row["test"] <= 1
    assert 0.5 < row["infinite width"] <= 1
    assert told["picture"] is None
    assert not list(Path().glob("*.png"))
    assert "1 shape(s) x 2 trials on cpu" in err
    before = json.loads(run("runs --json")[1])["runs"]
    assert len(before) == 3
    code, out, _ = run(words.replace("--json", ""))
    assert code == 0
    assert "infinite width" in out
    assert Path("finite-digits-relu.png").stat().st_size > 10_000
    assert json.loads(run("runs --json")[1])["runs"] == before


@pytest.mark.slow
def test_a_gap(run):
    code, out, _ = run(
        "gap --width 32 --depth 2 --activation tanh --trials 4 --train 20 --steps 900 --json "
        "-o gap.png"
    )
    assert code == 0
    (row,) = json.loads(out)["rows"]
    assert row["activation"] == "tanh"
    assert 1 <= row["networks"] <= 4
    assert 0 < row["smallest gap"] <= row["largest gap"] < 1
    assert Path("gap.png").stat().st_size > 10_000


def test_the_answer_is_about_what_was_asked(run):
    """Other activations and widths are in the store, too; all is done, so nothing is trained."""
    from nngp_paper import datasets
    from nngp_paper.finite.gap import EXPERIMENT, PLAN
    from nngp_paper.finite.random_search import Cell, declare
    from nngp_paper.runs import RunStore

    data = datasets.split("digits", 20)
    with RunStore("runs.db") as store:
        for activation, width in (("relu", 8), ("relu", 16), ("tanh", 8)):
            cell = Cell("digits", 20, activation, 5, width)
            (key,) = declare(store, cell, data, PLAN, 1, experiment=EXPERIMENT)
            result = {"train_accuracy": 1.0, "test_accuracy": 0.5, "val_accuracy": 0, "val_mse": 0}
            store.finish(key, result, seconds=1.0)
    code, out, _ = run("gap --train 20 --trials 1 --width 8 --activation relu --json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [(row["activation"], row["width"], row["networks"]) for row in rows] == [("relu", 8, 1)]


def test_steps_are_a_whole_number_of_looks(capsys):
    from nngp_paper.finite.recipe import Plan
    from nngp_paper.terminal.finite import _plan
    from nngp_paper.terminal.options import SearchOptions

    plan = _plan(SearchOptions(steps=150, patience=3), Plan(), "cross_entropy")
    assert (plan.steps, plan.interval, plan.patience, plan.loss) == (200, 100, 3, "cross_entropy")
    assert "so there are 200 at most" in " ".join(capsys.readouterr().err.split())
    plan = _plan(SearchOptions(steps=30, patience=3), Plan(), "mse")
    assert (plan.steps, plan.interval) == (30, 30)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("finite --width ten", 2, "--width must be whole numbers such as 64,512, got 'ten'"),
        ("finite --width 0", 2, "--width must be at least 1"),
        ("finite --out picture.txt", 2, "the name must end in .svg, .png, .pdf"),
        ("finite --engine fast", 2, "engine"),
        ("gap --depth 0", 2, "depth"),
        ("finite --out nowhere/picture.png", 2, "the folder nowhere does not exist"),
        ("finite --activation relux", 2, "unknown activation 'relux'; did you mean"),
        ("finite --dataset mnits", 3, "mnist"),
        ("finite --loss hinge", 2, "loss must be 'mse' or 'cross_entropy'"),
        ("finite --train 5", 3, "5"),
        ("finite --store nowhere/runs.db", 3, "nowhere"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_left(run, words, code, said):
    got, _, err = run(words)
    assert (got, said in err) == (code, True), err
    assert list(Path().iterdir()) == []


def test_missing_packages_are_said(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    monkeypatch.setattr(
        "nngp_paper.finite.requirements.find_spec", lambda name: None if name == "optax" else True
    )
    code, _, err = run("finite")
    assert code == 4
    assert "finite networks need optax; install it with: pip install 'nngp[finite]'" in err
