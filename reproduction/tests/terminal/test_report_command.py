"""`nngp-paper report`: one store or several, a page, and what cannot be."""

import json
from pathlib import Path

import pytest
from paper_runs import UNCERTAINTY, fill

from nngp_paper.parts import PARTS
from nngp_paper.runs import RunStore

pytest.importorskip("matplotlib")


def doubt(path, dataset, test, size):
    config = {
        **{"dataset": dataset, "train": 100, "activation": "relu", "depth": 3},
        **{"weight_var": 2.0, "bias_var": 0.2, "test": test, "bin": size},
    }
    bins = {"predicted": [0.1, 0.2], "realised": [0.1, 0.2]}
    with RunStore(path) as store:
        fill(store, "doubt", [config], lambda config: {**bins, **UNCERTAINTY})


@pytest.fixture
def stores(run):
    doubt("one.db", "mnist", 10_000, 100)
    doubt("two.db", "digits", 500, 20)
    return run


def test_several_stores_make_one_page(stores):
    code, out, _ = stores("report one.db two.db -o page.html --json")
    assert code == 0
    told = json.loads(out)
    assert told["data sets"] == ["mnist", "digits"]
    assert told["shown"] == ["fig3-mnist", "fig3-digits"]
    about_data = [part for part in PARTS if part.about_data]
    assert len(told["missing"]) == len(PARTS) + len(about_data) - 2 - 1  # no figure 2 of MNIST
    assert "fig2-mnist" not in told["missing"]
    assert told["bytes"] == Path("page.html").stat().st_size
    assert sorted(path.name for path in Path().iterdir()) == ["one.db", "page.html", "two.db"]


def test_one_data_set(stores):
    Path("one.db").rename("runs.db")
    stores("runs runs.db --merge two.db")
    code, out, _ = stores("report --dataset digits --json")
    assert code == 0
    assert json.loads(out)["shown"] == ["fig3-digits"]
    assert "fig3-mnist" not in Path("report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("report nothing.db", 3, "nothing.db"),
        ("report one.db -o page.txt", 2, "the name must end in .html"),
        ("report one.db -o nowhere/page.html", 2, "the folder nowhere does not exist"),
        ("report one.db --dataset cifar10", 2, "no runs on 'cifar10'; data sets with runs: mnist"),
    ],
)
def test_what_cannot_be_is_said(stores, words, code, said):
    got, _, err = stores(words)
    assert (got, said in err) == (code, True), err
    assert sorted(path.name for path in Path().iterdir()) == ["one.db", "two.db"]


def test_a_store_is_not_written_over(stores):
    Path("one.db").rename("one.html")
    before = Path("one.html").read_bytes()
    code, _, err = stores("report two.db one.html -o one.html")
    assert (code, "the output one.html is the store; choose another name" in err) == (2, True)
    assert Path("one.html").read_bytes() == before


def test_a_store_without_results_has_no_report(run):
    RunStore("runs.db").close()
    code, _, err = run("report")
    assert code == 3
    assert "no finished runs" in err
