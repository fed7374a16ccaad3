"""Runs as tables, read back by others: the csv module, polars; and merged stores."""

import csv
import json
import math
import sqlite3
import sys

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, export_runs, flat


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
    assert export_runs(store.runs(), tmp_path / "out.csv") == 4
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


def test_parquet_keeps_kinds(store, tmp_path):
    pl = pytest.importorskip("polars")
    assert export_runs(store.runs(), tmp_path / "out.parquet") == 4
    table = pl.read_parquet(tmp_path / "out.parquet")
    assert table.columns == NAMES
    kinds = dict(zip(table.columns, table.dtypes, strict=True))
    assert kinds["config.width"] == kinds["result.t.n"] == pl.Int64
    assert kinds["config.depth"] == kinds["seconds"] == kinds["jitter"] == pl.Float64
    assert kinds["config.net.wide"] == pl.Boolean
    assert kinds["config.seed"] == kinds["config.mixed"] == kinds["config.layers"] == pl.String
    assert table["config.width"].to_list() == [64, 128, 64, 65]
    assert table["config.depth"].to_list() == [3, math.inf, 1, 2]
    assert table["config.seed"].to_list() == [None, str(2**64), None, None]
    assert table["config.mixed"].to_list() == [None, None, "1", "1"]
    acc = table["result.acc"].to_list()
    assert acc[0] == 0.1
    assert math.isnan(acc[1])
    assert acc[2:] == [None, None]
    assert table["error"].to_list() == [None, None, "it diverged", None]


def test_large_whole_numbers_beside_fractions_stay_exact(store, tmp_path):
    pl = pytest.importorskip("polars")
    store.declare("f", [{"n": 2**53 + 1}, {"n": 0.5}])
    export_runs(store.runs("f"), tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["config.n"].to_list() == [
        str(2**53 + 1),
        "0.5",
    ]


def test_numbers_are_numbers_even_where_none_is_known(store, tmp_path):
    pl = pytest.importorskip("polars")
    export_runs(store.runs(status="pending"), tmp_path / "out.parquet")
    assert pl.read_parquet(tmp_path / "out.parquet")["seconds"].dtype == pl.Float64


def test_lists_on_request(store, tmp_path):
    export_runs(store.runs(), tmp_path / "out.csv", lists=True)
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert json.loads(rows[0]["result.curve"]) == [1.5, 2]


def test_no_runs_are_a_header(store, tmp_path):
    assert export_runs([], tmp_path / "out.csv") == 0
    assert (tmp_path / "out.csv").read_text().startswith("key,experiment,status,seconds,")


def test_what_cannot_be_exported_leaves_what_was_there(store, tmp_path, monkeypatch):
    target = tmp_path / "out.parquet"
    target.write_text("before")
    with pytest.raises(ValueError, match=r"the name must end in \.csv or \.parquet"):
        export_runs(store.runs(), tmp_path / "out.xlsx")
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        export_runs(store.runs(), tmp_path / "nowhere" / "out.csv")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[cli\]'; or export to \.csv"):
        export_runs(store.runs(), target)
    export_runs(store.runs(), tmp_path / "out.csv")  # needs none
    assert target.read_text() == "before"


def test_dotted_names():
    assert flat({"a": {"b": {"c": 1}, "d": [{"e": 2}]}, "f": {}}) == {
        "a.b.c": 1,
        "a.d": [{"e": 2}],
        "f": {},
    }
    assert flat({"a.b": 1, "a": {"b": 2}}) == {"a.b": 1, "a.b_": 2}


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
    assert "curve" not in store.runs("g", lists=False)[0].result


def test_a_merge_without_lists(store, tmp_path):
    with RunStore(tmp_path / "other.db") as other:
        key, more = other.declare("curves", [{"width": 3}, {"width": 4}])
        for each in (key, more):
            other.finish(each, {"best": 0.5, "curve": {"loss": [1.0, 0.5]}}, seconds=2.0)
    assert store.merge(tmp_path / "other.db", [key], lists=False) == 1
    run = store.get(key)
    assert (run.result, run.seconds) == ({"best": 0.5}, 2.0)
    assert store.merge(tmp_path / "other.db") == 1


def test_what_cannot_be_merged(store, tmp_path):
    before = store.counts()
    with pytest.raises(FileNotFoundError, match=r"there is no store .*far"):
        store.merge(tmp_path / "far.db")
    with pytest.raises(ValueError, match="is this store; name another one"):
        store.merge(store.path)
    (tmp_path / "bad.db").write_text("nothing\n" * 100)
    with pytest.raises(RunStoreError, match=r"bad\.db is not a store"):
        store.merge(tmp_path / "bad.db")
    damaged(tmp_path / "half.db")
    with pytest.raises(RunStoreError, match=r"half\.db is damaged"):
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
