"""Faulty files of a store give one clear sentence each, and nothing is lost."""

import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, store as stores


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
    assert int.from_bytes(head[60:64], "big") == stores.VERSION  # its user_version


def test_commits_are_synced(path):
    with RunStore(path) as store, store._reading() as connection:
        assert tuple(connection.execute("PRAGMA synchronous").fetchone()) == (2,)


def test_a_file_of_the_first_version_is_read_and_goes_on(path):
    """Its leases were kept in another table: what it says is running is free."""
    before = content(path)
    with RunStore(path) as store:
        store.declare("e", [{"i": 2}])
    with sqlite3.connect(path) as raw:
        raw.execute("ALTER TABLE runs DROP COLUMN expires")
        raw.execute("UPDATE runs SET status = 'running', owner = 'host:1:ff' WHERE id = 3")
        raw.execute("PRAGMA user_version = 1")
    raw.close()
    with RunStore(path) as store:
        assert content(path)[:2] == before
        assert [store.claim().config for _ in range(2)] == [{"i": 1}, {"i": 2}]
        assert path.read_bytes()[60:64] == stores.VERSION.to_bytes(4, "big")


def test_a_newer_file_is_refused(path, monkeypatch):
    whole = path.read_bytes()
    monkeypatch.setattr(stores, "VERSION", 1)
    with pytest.raises(RunStoreError, match=r"later nngp-paper \(format 2, .* up to 1\); update"):
        RunStore(path)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("text", [b"x", b"key,value\n" * 300, b"SQLite format 3"])
def test_a_file_that_is_no_database_is_refused(tmp_path, text):
    (tmp_path / "runs.db").write_bytes(text)
    with pytest.raises(RunStoreError, match=r"runs\.db .*no store of runs.*choose another"):
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
        with pytest.raises(RunStoreError, match=r"runs\.db .* readonly.*; change the permissions"):
            call()
    assert store.counts()["pending"] == 1
    store.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions are other ones there")
def test_a_read_only_folder(guest):
    path = guest / "runs.db"
    with RunStore(path) as store:
        store.declare("e", [{"i": 0}])
    guest.chmod(0o555)
    assert RunStore(path).counts()["pending"] == 1
    with pytest.raises(RunStoreError, match=r"runs\.db .*; change the permissions of file and fol"):
        RunStore(path).claim()
    with pytest.raises(
        RunStoreError, match=r"new\.db .*; change the permissions of file and folder"
    ):
        RunStore(guest / "new.db")
    assert [other.name for other in guest.iterdir()] == ["runs.db"]


def test_a_full_disk(path, monkeypatch):
    before, connect = content(path), RunStore._connect

    def small(self, mode):
        connection = connect(self, mode)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    with RunStore(path) as store:
        monkeypatch.setattr(RunStore, "_connect", small)
        with pytest.raises(RunStoreError, match=r"full.*; make room and start again, as finished"):
            store.declare("e", [{"i": i} for i in range(2, 2000)])
        monkeypatch.undo()
        assert store.finish(before[1][0], {"a": 2}, seconds=0)
    assert content(path) == [before[0], (before[1][0], "done", {"a": 2})]


def test_a_truncated_file(path):
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(RunStoreError, match=r"runs\.db .*malformed.*damaged.*\.recover"):
        RunStore(path).claim()
    assert path.read_bytes() == whole[: len(whole) // 2]


def test_a_file_that_is_damaged_inside(path):
    whole = bytearray(path.read_bytes())
    whole[4096:] = b"\xff" * (len(whole) - 4096)
    path.write_bytes(whole)
    store = RunStore(path)
    with pytest.raises(RunStoreError, match=r"runs\.db .* it is damaged"):
        store.runs()
    store.close()


def test_a_file_that_stays_locked(path, monkeypatch):
    monkeypatch.setattr(stores, "PATIENCE", 0.05)
    raw = sqlite3.connect(path, isolation_level=None)
    with RunStore(path) as store:
        raw.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunStoreError, match=r"runs\.db .*locked.*; try again when the other"):
            store.claim()
        assert store.counts()["pending"] == 1  # reading goes on
        raw.execute("ROLLBACK")
        assert store.claim() is not None
    raw.close()


def test_a_file_that_vanishes_in_use(path):
    store = RunStore(path)
    key = store.claim().key
    path.unlink()
    for call in (lambda: store.finish(key, {}, seconds=0), store.close):
        with pytest.raises(FileNotFoundError, match=r"there is no store .*runs\.db"):
            call()
    assert not path.exists()
    with pytest.raises(ValueError, match="is closed"):
        store.counts()


def test_names_that_mean_something_in_addresses(tmp_path):
    path = tmp_path / "a?mode=ro#b %20.db"
    with RunStore(path) as store:
        store.declare("e", [{}])
    assert path.exists()
