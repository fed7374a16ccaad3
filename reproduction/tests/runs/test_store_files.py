"""Faulty files of a store give one clear sentence each, and nothing is lost."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, database, schema


@pytest.fixture
def path(tmp_path):
    """A store with one finished and one pending run."""
    with RunStore(tmp_path / "runs.db") as store:
        keys = store.declare("e", [{"i": 0}, {"i": 1}])
        store.finish(keys[0], {"a": 1}, seconds=0)
    return tmp_path / "runs.db"


def content(path):
    with RunStore(path) as store:
        return [(run.key, run.status, run.result) for run in store.runs()]


def test_one_file_is_left_and_it_says_whose_it_is(path):
    assert [other.name for other in path.parent.iterdir()] == ["runs.db"]
    head = path.read_bytes()[:100]
    assert head[68:72] == b"nngp"  # SQLite's application_id
    assert int.from_bytes(head[60:64], "big") == len(schema.MIGRATIONS)  # its user_version
    assert head[18:20] == b"\x02\x02"  # WAL


def test_commits_are_synced(path):
    with RunStore(path) as store, store._database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_an_older_file_is_brought_up_to_date(path, monkeypatch):
    before = content(path)
    step = ("ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE runs SET note = 'old'")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    with RunStore(path) as store, store._database.reading() as connection:
        assert connection.execute("SELECT DISTINCT note FROM runs").fetchall() == [("old",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        store.declare("e", [{"i": 2}])
    assert content(path)[:2] == before
    with sqlite3.connect(path) as raw:  # opened again, nothing is done twice
        assert raw.execute("SELECT count(*) FROM runs WHERE note IS NULL").fetchone() == (1,)
    raw.close()


def test_an_empty_file_goes_through_all_steps(tmp_path, monkeypatch):
    (tmp_path / "runs.db").touch()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE notes (n)",)))
    with RunStore(tmp_path / "runs.db") as store, store._database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_step_that_fails_changes_nothing(path, monkeypatch):
    before, whole = content(path), path.read_bytes()
    step = ("ALTER TABLE runs ADD COLUMN note TEXT", "SELECT nonsense")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    with pytest.raises(RunStoreError, match="nonsense"):
        RunStore(path)
    monkeypatch.undo()
    assert (content(path), path.read_bytes()) == (before, whole)


def test_a_newer_file_is_refused(path, monkeypatch):
    whole = path.read_bytes()
    monkeypatch.setattr(schema, "MIGRATIONS", ())
    with pytest.raises(RunStoreError, match=r"later nngp \(format 1, .* up to 0\); update nngp"):
        RunStore(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", [b"x", b"key,value\n" * 300, b"SQLite format 3"])
def test_a_file_that_is_no_database_is_refused(tmp_path, text):
    (tmp_path / "runs.db").write_bytes(text)
    with pytest.raises(RunStoreError, match=r"runs\.db is not a store of runs; choose another"):
        RunStore(tmp_path / "runs.db")
    assert (tmp_path / "runs.db").read_bytes() == text
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mark", ["CREATE TABLE t (a)", "PRAGMA user_version = 1"])
def test_another_programs_database_is_refused(tmp_path, mark):
    raw = sqlite3.connect(tmp_path / "mail.db")
    raw.execute(mark)
    raw.commit()
    raw.close()
    whole = (tmp_path / "mail.db").read_bytes()
    with pytest.raises(RunStoreError, match=r"mail\.db is the database of another program"):
        RunStore(tmp_path / "mail.db")
    assert (tmp_path / "mail.db").read_bytes() == whole
    assert len(list(tmp_path.iterdir())) == 1


def test_places_where_no_file_can_be(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist; create it"):
        RunStore(tmp_path / "nowhere" / "runs.db")
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        RunStore(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_creating_creates(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no store .*runs\.db"):
        RunStore(tmp_path / "runs.db", create=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "runs.db").touch()
    with pytest.raises(RunStoreError, match="is empty: there is no store"):
        RunStore(tmp_path / "runs.db", create=False)
    assert (tmp_path / "runs.db").read_bytes() == b""


@pytest.fixture
def guest():
    """A folder to be spoiled, by a user whom permissions hold (root they do not)."""
    folder = Path(tempfile.mkdtemp())
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root:
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name != "posix", reason="permissions are other ones there")
def test_a_read_only_file_can_be_read_and_says_why_it_is_not_written(guest):
    path = guest / "runs.db"
    with RunStore(path) as store:
        store.declare("e", [{"i": 0}])
    path.chmod(0o444)
    store = RunStore(path)
    assert store.counts()["pending"] == 1
    for call in (store.claim, lambda: store.declare("e", [{"i": 1}])):
        with pytest.raises(PermissionError, match=r"runs\.db or its folder is read-only"):
            call()
    assert store.counts()["pending"] == 1
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions are other ones there")
def test_a_read_only_folder(guest):
    path = guest / "runs.db"
    RunStore(path).close()
    guest.chmod(0o555)
    with pytest.raises(PermissionError, match=r"runs\.db or its folder is read-only; change perm"):
        RunStore(path)
    with pytest.raises(PermissionError, match=r"new\.db cannot be opened; both the file and its"):
        RunStore(guest / "new.db")
    assert [other.name for other in guest.iterdir()] == ["runs.db"]


def test_a_full_disk(path):
    before = content(path)
    with RunStore(path) as store:
        with store._database.reading() as connection:
            connection.execute("PRAGMA max_page_count = 1")
        with pytest.raises(OSError, match="no room left to write to the store"):
            store.declare("e", [{"i": i} for i in range(2, 2000)])
        assert store.finish(before[1][0], {"a": 2}, seconds=0)
    assert content(path) == [before[0], (before[1][0], "done", {"a": 2})]


def test_a_truncated_file(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunStoreError, match=r"runs\.db is damaged .*malformed.*\.recover"):
        RunStore(path).claim()
    assert path.read_bytes() == whole[: len(whole) // 2]


def test_a_file_that_is_damaged_inside(path):
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xff" * (len(whole) - 4096)
    path.write_bytes(whole)
    store = RunStore(path)
    with pytest.raises(RunStoreError, match=r"runs\.db is damaged"):
        store.runs()
    store.close()


def test_a_file_that_stays_locked(path, monkeypatch):
    monkeypatch.setattr(database, "PATIENCE", 0.05)
    raw = sqlite3.connect(path, isolation_level=None)
    with RunStore(path) as store:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError, match=r"runs\.db stayed locked by another program; try"):
            store.claim()
        assert store.counts()["pending"] == 1  # reading goes on
        raw.execute("ROLLBACK")
        assert store.claim() is not None
    raw.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_vanishes_in_use(path, tmp_path, replaced):
    store = RunStore(path)
    key = store.claim().key
    if replaced:
        shutil.copy(path, tmp_path / "copy.db")
        (tmp_path / "copy.db").replace(path)
    else:
        path.unlink()
    with pytest.raises(RunStoreError, match="was removed or replaced while in use; open it again"):
        store.finish(key, {}, seconds=0)
    with pytest.raises(RunStoreError, match="was removed or replaced"):
        store.close()
    with pytest.raises(ValueError, match="is closed"):
        store.counts()


class Hesitant:
    """A connection that fails a number of times before it executes a statement."""

    def __init__(self, times, code):
        self.times, self.code, self.done = times, code, []

    def execute(self, statement):
        if self.times:
            self.times -= 1
            error = sqlite3.OperationalError("not now")
            error.sqlite_errorcode = self.code
            raise error
        self.done.append(statement)


def test_a_new_file_that_others_are_making_is_waited_for(monkeypatch):
    busy = Hesitant(3, sqlite3.SQLITE_BUSY_RECOVERY)
    schema._enable_write_ahead_log(busy)
    assert busy.done == ["PRAGMA journal_mode = WAL"]
    with pytest.raises(sqlite3.OperationalError, match="not now"):
        schema._enable_write_ahead_log(Hesitant(1, sqlite3.SQLITE_READONLY))
    monkeypatch.setattr(schema, "PATIENCE", 0.02)
    with pytest.raises(sqlite3.OperationalError, match="not now"):
        schema._enable_write_ahead_log(Hesitant(10**6, sqlite3.SQLITE_BUSY))


def test_names_that_mean_something_in_addresses(tmp_path):
    path = tmp_path / "a?mode=ro#b %20.db"
    with RunStore(path) as store:
        store.declare("e", [{}])
    assert path.exists()
