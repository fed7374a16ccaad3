"""Runs as CSV, read back by the csv module; and merged stores."""

import csv
import json
import math
import sqlite3

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, as_row, export_rows, flat


@pytest.fixture
def store(tmp_path):
    """Four runs: two done, one failed, one pending; values of many kinds."""
    configs = [
        {"width": 64, "depth": 3, "net": {"act": "relu", "wide": True}, "layers": [64, 64]},
        {"width": 128, "depth": math.inf, "net": {"act": 'ta,"n\nh'}, "seed": 2**64},
        {"width": 64, "depth": 1, "mixed": 1},
        {"width": 65, "depth": 2, "mixed": "1", "empty": {}},
    ]
    with RunStore(tmp_path / "runs.db", clock=lambda: 1.8e9) as opened:
        keys = opened.declare("e", configs)
        opened.finish(keys[0], {"acc": 0.1, "curve": [1.5, 2], "t": {"n": 3}}, seconds=1.5)
        opened.finish(keys[1], {"acc": math.nan, "t": {"n": 4}}, seconds=2, jitter=1e-9)
        opened.fail(keys[2], "it diverged")
        yield opened


NAMES = [
    *("key", "experiment", "status", "config.width", "config.depth", "config.net.act"),
    *("config.net.wide", "config.layers", "config.seed", "config.mixed", "config.empty"),
    *("result.acc", "result.t.n", "seconds", "device", "jitter", "error", "versions"),
    *("started", "finished"),
]


def test_csv(store, tmp_path):
    assert export_rows([as_row(run) for run in store.runs()], tmp_path / "out.csv") == 4
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    runs = store.runs()
    assert list(rows[0]) == NAMES
    assert [row["key"] for row in rows] == [run.key for run in runs]
    assert [row["status"] for row in rows] == ["done", "done", "failed", "pending"]
    assert [row["config.depth"] for row in rows] == ["3", "inf", "1", "2"]
    assert [row["config.net.act"] for row in rows] == ["relu", 'ta,"n\nh', "", ""]
    assert [row["config.net.wide"] for row in rows] == ["true", "", "", ""]
    assert rows[0]["config.layers"] == "[64, 64]"
    assert rows[1]["config.seed"] == str(2**64)
    assert [row["config.empty"] for row in rows] == ["", "", "", "{}"]
    assert float(rows[0]["result.acc"]) == 0.1
    assert [row["result.acc"] for row in rows[1:]] == ["NaN", "", ""]
    assert [row["error"] for row in rows] == ["", "", "it diverged", ""]
    assert json.loads(rows[0]["versions"]) == runs[0].versions
    assert [row["jitter"] for row in rows] == ["", "1e-09", "", ""]
    assert rows[0]["finished"] == "2027-01-15T08:00:00.000+00:00"


def test_lists_on_request(store, tmp_path):
    export_rows([as_row(run, lists=True) for run in store.runs()], tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        assert [row["result.curve"] for row in csv.DictReader(file)] == ["[1.5, 2]", "", "", ""]


def test_no_runs_are_a_header(tmp_path):
    assert export_rows([], tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text().startswith("key,experiment,status,seconds,")


def test_what_cannot_be_written_changes_nothing(store, tmp_path):
    target = tmp_path / "out.csv"
    target.write_text("before")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        export_rows([as_row(run) for run in store.runs()], tmp_path / "nowhere" / "out.csv")
    with pytest.raises(TypeError):
        export_rows([{"key": object()}], target)
    assert target.read_text() == "before"
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "runs.db"}


def test_dotted_names():
    assert flat({"a": {"b": {"c": 1}, "d": [{"e": 2}]}, "f": {}}) == {
        "a.b.c": 1,
        "a.d": [{"e": 2}],
        "f": {},
    }


def test_results_come_home(store, tmp_path):
    keys = [run.key for run in store.runs()]
    with RunStore(tmp_path / "far.db") as far:
        more = far.declare("e", [run.config for run in store.runs()]) + far.declare("g", [{"x": 1}])
        assert more[:4] == keys
        for key in (keys[0], keys[2], keys[3], more[4]):
            far.finish(key, {"from": "far", "curve": [1]}, seconds=9, device="gpu", jitter=1e-8)
        far.declare("h", [{"never": "done"}])
        there = far.runs()
    assert store.merge(tmp_path / "far.db") == 3
    assert store.merge(tmp_path / "far.db") == 0
    here = {run.key: run for run in store.runs()}
    assert here[keys[0]].result["acc"] == 0.1  # ours is kept
    assert here[keys[2]].error is None  # a result replaces a failure
    for run in there:
        if run.status == "done" and run.key != keys[0]:
            assert here[run.key] == run
    assert [run.experiment for run in store.runs()] == ["e"] * 4 + ["g"]


def test_a_merge_of_some(store, tmp_path):
    with RunStore(tmp_path / "other.db") as other:
        key, more = other.declare("curves", [{"width": 3}, {"width": 4}])
        for each in (key, more):
            other.finish(each, {"best": 0.5, "curve": {"loss": [1.0, 0.5]}}, seconds=2.0)
    assert store.merge(tmp_path / "other.db", [key]) == 1
    assert (store.get(key).result["best"], store.get(key).seconds) == (0.5, 2.0)
    assert store.merge(tmp_path / "other.db") == 1


def test_what_cannot_be_merged(store, tmp_path):
    before = store.counts()
    with pytest.raises(FileNotFoundError, match=r"there is no store .*far"):
        store.merge(tmp_path / "far.db")
    with pytest.raises(ValueError, match="is this store; name another one"):
        store.merge(store.path)
    (tmp_path / "bad.db").write_text("nothing\n" * 100)
    with pytest.raises(RunStoreError, match=r"bad\.db .*no store of runs"):
        store.merge(tmp_path / "bad.db")
    damaged(tmp_path / "half.db")
    with pytest.raises(RunStoreError, match=r"half\.db .* it is damaged"):
        store.merge(tmp_path / "half.db")
    assert store.counts() == before  # not even those that could be read
    assert not (tmp_path / "far.db").exists()


def damaged(path):
    with RunStore(path) as store:
        for key in store.declare("k", [{"i": i} for i in range(50)]):
            store.finish(key, {"text": "x" * 500}, seconds=0)
    raw = sqlite3.connect(path)
    (size,) = raw.execute("PRAGMA page_size").fetchone()
    raw.close()
    whole = bytearray(path.read_bytes())
    whole[-3 * size :] = b"\xff" * (3 * size)
    path.write_bytes(whole)
