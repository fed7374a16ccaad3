"""The record of what an invariance is worth is that of the program, and a row of it can be had
again."""

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
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


def network_of(program, row):
    variant, name = program.VARIANTS[row["variant"]], row["dataset"]
    return variant.network(program.NETWORKS[name], program.SHAPES[name])


def test_every_row_has_the_products_of_its_variant(program):
    columns = {"mnist": 784, "cifar10": 3072}
    for row in ROWS:
        network = network_of(program, row)
        assert row["products"] == network.products(columns[row["dataset"]])
        assert row["network"] == repr(network.base)
        assert row["test"] == 10_000
    sizes = {(row["dataset"], row["train"]) for row in ROWS}
    wanted = {(name, n, one) for name, n in sizes for one in program.USUAL[name]}
    assert wanted <= {(row["dataset"], row["train"], row["variant"]) for row in ROWS}


def test_a_row_again(program, data_folder):
    folder, wanted = data_folder("mnist.npz"), ("mnist", 100, "shifts 1")
    (row,) = (r for r in ROWS if (r["dataset"], r["train"], r["variant"]) == wanted)
    data = program.Images.load("mnist", 100, None, folder)
    variant, network = program.VARIANTS["shifts 1"], network_of(program, row)
    found = program._scores(data, variant, network, "cpu")
    assert found["accuracy"] == pytest.approx(row["accuracy"], abs=1e-3)
    assert found["log_loss"] == pytest.approx(row["log_loss"], rel=1e-3)
