"""A damaged store gives one clear error, whatever is damaged; what is whole can be saved."""

import sqlite3
import warnings

import numpy as np
import pytest
from damage import mutated, outcome

from nngp_paper.errors import RunStoreError, RunStoreWarning
from nngp_paper.runs import RunStore, as_row, key_of

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
        rows = [as_row(run, True) for run in store.runs(lists=True)]
        store.runs(where={"width": 4}, lists=False)
        store.counts()
        store.counts(where={"width": 4})
        store.get(keys[3])
        store.declare("width", [{"width": -1}])
        store.claim_many(2)
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
    ("config", '{"width": 3}'),
    ("config", b"\xff\xfe"),
    ("config", "[" * 100_000),
    ("result", "{"),
    ("result", "3"),
    ("result", b"\x00\x01"),
    ("versions", "[]"),
    ("seconds", "long"),
    ("jitter", b"\x00"),
    ("attempts", "often"),
    ("device", b"cpu"),
    ("started", b"\x03"),
    ("experiment", 5.5),
    ("key", "short"),
]


def changed(path, query, *values):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.execute(query, values)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(("column", "value"), BROKEN)
def test_a_broken_row_is_named_and_the_others_are_readable(tmp_path, column, value):
    path = tmp_path / "runs.db"
    keys = written(path)
    changed(path, f"UPDATE runs SET {column} = ? WHERE key = ?", value, keys[2])
    with RunStore(path) as store:
        with pytest.raises(RunStoreError, match=r"^the store .*runs\.db is damaged \(the run '"):
            store.runs()
        assert store.get(keys[3]).config["width"] == 8
        with RunStore(tmp_path / "new.db") as new:
            with pytest.raises(RunStoreError, match=r"runs\.db is damaged"):
                new.merge(path)
            with pytest.warns(RunStoreWarning, match="1 runs or groups of runs were left out"):
                assert new.merge(path, salvage=True) == 34
            assert new.get(keys[3]).result["curve"] == list(range(40))


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("UPDATE runs SET status = ? WHERE id = 2", "asleep"),
        ("UPDATE owners SET pid = ?", 2**60),
        ("UPDATE owners SET beat = ?", "never"),
        ("UPDATE owners SET place = ?", b"x"),
    ],
)
def test_broken_states_and_owners(tmp_path, query, value):
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        keys = store.declare("width", [{"width": i} for i in range(5)])
        store.claim(keys[:1])
        changed(path, query, value)
        use = RunStore.counts if "status" in query else RunStore.claim
        with RunStore(path) as other, pytest.raises(RunStoreError, match="damaged"):
            use(other)


@pytest.mark.parametrize("statement", ["DROP TABLE runs", "DROP TABLE owners"])
def test_missing_tables(tmp_path, statement):
    path = tmp_path / "runs.db"
    written(path)
    changed(path, statement)
    with RunStore(path) as store, pytest.raises(RunStoreError, match="no such table"):
        store.claim()


def test_a_store_cut_short_keeps_what_can_be_read(tmp_path):
    """The pages of some rows are overwritten; the rows before them are saved."""
    path = tmp_path / "runs.db"
    keys = written(path, 400)
    whole = bytearray(path.read_bytes())
    whole[-20_000:-10_000] = b"\xff" * 10_000
    path.write_bytes(whole)
    with RunStore(tmp_path / "new.db") as new, warnings.catch_warnings():
        warnings.simplefilter("ignore", RunStoreWarning)
        assert 100 < new.merge(path, salvage=True) < 395
        assert new.get(keys[0]).key == key_of("width", {"width": 1, "seed": [0, 0]})
