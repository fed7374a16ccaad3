"""`nngp-paper datasets`: what there is, and where it would come from."""

import json

import pytest


@pytest.fixture(autouse=True)
def empty(tmp_path, monkeypatch):
    monkeypatch.delenv("NNGP_DATA", raising=False)
    monkeypatch.setenv("NNGP_CACHE", str(tmp_path / "cache"))


def test_nothing_but_digits(run):
    code, out, _ = run("datasets")
    words = " ".join(out.split())
    assert code == 0
    assert "folder none (name one with --data or NNGP_DATA)" in words
    assert "digits handwritten digits, 8 x 8 pixels: comes with scikit-learn" in words
    assert "mnist MNIST, handwritten digits: not here; downloaded when it is asked for" in words
    assert "0 of 9 in the folder, below uci_regression" in words


def test_a_folder(run, tmp_path):
    (tmp_path / "data" / "uci_regression").mkdir(parents=True)
    for name in ("mnist.npz", "uci_regression/boston.npz"):
        (tmp_path / "data" / name).write_bytes(b"")
    (tmp_path / "data" / "train-labels-idx1-ubyte").write_bytes(b"")
    code, out, _ = run("datasets --data data")
    words = " ".join(out.split())
    assert code == 0
    assert "MNIST, handwritten digits: in the folder" in words
    assert "articles of clothing: data has train-labels-idx1-ubyte but not train-images" in words
    assert "1 of 9 in the folder, below uci_regression" in words
    code, out, _ = run("datasets --data data --json")
    told = json.loads(out)
    assert told["folder"] == "data"
    assert told["sets"]["mnist"] == {"place": "folder", "path": "data/mnist.npz"}
    assert told["sets"]["fashion_mnist"]["place"] == "incomplete"
    assert told["sets"]["uci/boston"]["path"] == "data/uci_regression/boston.npz"
    assert told["sets"]["uci/yacht"] == {"place": "nowhere", "path": None}
    assert len(told["sets"]) == 160


def test_no_such_folder(run):
    code, _, err = run("datasets --data no")
    assert code == 3
    assert "error: the data folder no does not exist; name a folder that holds the data" in err
