"""A damaged store gives one clear error, whatever is damaged."""

import sqlite3

import numpy as np
import pytest
from damage import mutated, outcome

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, as_row

DAMAGES = 100


def written(path, count=40):
    with RunStore(path) as store:
        keys = store.declare("width", [{"width": 2**i, "seed": [i, i]} for i in range(count)])
        for key in keys[: count - 5]:
            store.finish(key, {"accuracy": 0.5, "curve": list(range(40))}, seconds=1.0)
        store.fail(keys[-1], "it did not converge")
        store.claim(keys)
    return keys


def used(path, keys):
    """Every method of a store, on a copy that may be damaged."""
    with RunStore(path, create=False) as store:
        rows = [as_row(run, True) for run in store.runs()]
        store.runs(where={"width": 4})
        store.counts()
        store.counts(where={"width": 4})
        store.get(keys[3])
        store.declare("width", [{"width": -1}])
        store.claim()
        store.finish(keys[-2], {"accuracy": 0.1}, seconds=1.0)
        store.retry()
        store.release(keys)
        store.pending()
    with RunStore(path.with_name("other.db")) as other:
        other.merge(path)
        path.with_name("other.db").unlink()
    return rows


def test_any_damage_is_one_clear_error_or_none(tmp_path):
    path = tmp_path / "runs.db"
    keys = written(path)
    whole, rng, refused = path.read_bytes(), np.random.default_rng(0), 0
    for _ in range(DAMAGES):
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(mutated(whole, rng)[1])
        # A KeyError says that a run is not there, as one whose key was damaged is not.
        found = outcome(lambda: used(path, keys), (RunStoreError, KeyError), lambda rows: True)
        assert found in ("refused", "same"), found
        refused += found == "refused"
    assert refused > DAMAGES // 4


@pytest.mark.deep
def test_many_damaged_stores(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "DAMAGES", 2000)
    test_any_damage_is_one_clear_error_or_none(tmp_path)


BROKEN = [
    ("config", "{"),
    ("config", "[1]"),
    ("config", b"\xff\xfe"),
    ("config", "[" * 100_000),
    ("result", "{"),
    ("result", "3"),
    ("result", b"\x00\x01"),
    ("versions", "[]"),
]


def changed(path, query, *values):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.execute(query, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(("column", "value"), BROKEN)
def test_a_broken_row_is_said_and_the_others_are_readable(tmp_path, column, value):
    path = tmp_path / "runs.db"
    keys = written(path)
    changed(path, f"UPDATE runs SET {column} = ? WHERE key = ?", value, keys[2])
    with RunStore(path) as store:
        with pytest.raises(RunStoreError, match=rf"runs\.db .*{column} of a run.* it is damaged"):
            store.runs()
        assert store.get(keys[3]).config["width"] == 8
        with RunStore(tmp_path / "new.db") as new:
            with pytest.raises(RunStoreError, match="it is damaged"):
                new.merge(path)
            assert new.counts()["done"] == 0


def test_a_missing_table(tmp_path):
    path = tmp_path / "runs.db"
    written(path)
    changed(path, "DROP TABLE runs")
    with RunStore(path) as store, pytest.raises(RunStoreError, match="no such table"):
        store.claim()
