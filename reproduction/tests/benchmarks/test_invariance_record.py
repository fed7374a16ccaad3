"""The record of what an invariance is worth is that of the program, and a row of it can be had
again."""

import json
import sys
from pathlib import Path

import pytest

from nngp_paper.experiment import network_of
from nngp_paper.parts.invariance import network_for
from nngp_paper.runs import merged
from nngp_paper.shared.invariances import Variant, scores

FOLDER = Path(__file__).parents[3] / "benchmarks"
MEASURED = FOLDER.parent / "reproduction" / "measured" / "invariance.db.gz"
ROWS = json.loads((FOLDER / "results" / "invariance.json").read_text())["worth"]


@pytest.fixture(scope="module")
def program():
    """The benchmark, from a folder that is searched last and not for long: it holds a
    distributed.py."""
    pytest.importorskip("distributed")
    sys.path.append(str(FOLDER))
    try:
        import invariance
    finally:
        sys.path.remove(str(FOLDER))
    return invariance


def test_every_row_has_the_products_of_its_variant(program):
    columns = {"mnist": 784, "cifar10": 3072}
    for row in ROWS:
        base = network_of(network_for(row["dataset"]))
        network = Variant.named(row["variant"], row["dataset"]).network(base)
        assert row["products"] == network.products(columns[row["dataset"]])
        assert row["network"] == repr(base)
        assert row["test"] == 10_000
    sizes = {
        (row["dataset"], row["train"])
        for row in ROWS
        if row["train"] <= program.ALL[row["dataset"]]
    }
    wanted = {(name, n, one) for name, n in sizes for one in program.USUAL[name]}
    assert wanted <= {(row["dataset"], row["train"], row["variant"]) for row in ROWS}


def test_a_row_again(program, data_folder):
    folder, wanted = data_folder("mnist.npz"), ("mnist", 100, "shifts 1")
    (row,) = (r for r in ROWS if (r["dataset"], r["train"], r["variant"]) == wanted)
    data, base = program.images("mnist", 100, None, folder), network_of(network_for("mnist"))
    found = scores(data, Variant.named("shifts 1", "mnist"), base, "cpu")
    assert found["accuracy"] == pytest.approx(row["accuracy"], abs=1e-3)
    # The record is older than the share of the class frequencies in the probabilities.
    assert found["log_loss"] == pytest.approx(row["log_loss"], rel=0.02)


def test_the_published_runs_are_the_record():
    """`publish` was called after the last row."""
    with merged([MEASURED]) as store:
        runs = store.runs(experiment="invariance", status="done")
    found = {
        (r.config["dataset"], r.config["train"], r.config["variant"], r.result["accuracy"])
        for r in runs
    }
    assert found == {(r["dataset"], r["train"], r["variant"], r["accuracy"]) for r in ROWS}
