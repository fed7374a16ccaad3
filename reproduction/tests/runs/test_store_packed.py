"""Packed stores: the same runs, the same bytes, one sentence for a damaged file."""

import gzip

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, merged, pack, unpacked


@pytest.fixture
def stores(tmp_path):
    paths = tmp_path / "a.db", tmp_path / "b.db"
    for i, path in enumerate(paths):
        with RunStore(path) as store:
            keys = store.declare("x", [{"i": i}, {"i": 10 + i}, {"i": 99}])
            for key in keys[:2]:
                store.claim(keys=[key])
                store.finish(key, {"values": [i, 2.5]}, seconds=1.0)
    return paths


def test_finished_runs_of_all_are_there(stores, tmp_path):
    target = tmp_path / "runs.db.gz"
    assert pack(stores, target) == 4
    with unpacked(target) as file, RunStore(file, create=False) as store:
        assert store.counts() == {"pending": 0, "running": 0, "done": 4, "failed": 0}
        found = {run.config["i"]: run.result["values"] for run in store.runs()}
    assert found == {0: [0, 2.5], 10: [0, 2.5], 1: [1, 2.5], 11: [1, 2.5]}
    assert not file.exists()
    again = tmp_path / "again.db.gz"
    assert pack([target], again) == 4


def test_a_plain_store_is_itself(stores):
    with unpacked(stores[0]) as file:
        assert file == stores[0]


def test_several_stores_are_read_as_one(stores, tmp_path):
    packed = tmp_path / "b.db.gz"
    pack(stores[1:], packed)
    with merged([stores[0], packed]) as store:
        assert store.counts() == {"pending": 0, "running": 0, "done": 4, "failed": 0}
        assert {run.config["i"] for run in store.runs()} == {0, 1, 10, 11}
    assert not store.path.exists()
    with merged(stores[:1]) as store:
        assert (store.path, store.counts()["pending"]) == (stores[0], 1)


def test_damaged_or_missing_files(stores, tmp_path):
    target = tmp_path / "runs.db.gz"
    pack(stores, target)
    whole = target.read_bytes()
    for content in (whole[: len(whole) // 2], b"not packed at all", b""):
        target.write_bytes(content)
        with (
            pytest.raises(RunStoreError, match=r"^\S*runs\.db\.gz is "),
            unpacked(target) as file,
            RunStore(file, create=False),
        ):
            pass
    with pytest.raises(FileNotFoundError, match="there is no store"), unpacked(tmp_path / "x.gz"):
        pass


def test_the_command_reads_and_does_not_change(stores, tmp_path, run):
    target = tmp_path / "runs.db.gz"
    pack(stores, target)
    code, out, _ = run(f"runs {target} --json")
    assert code == 0
    assert '"done": 4' in out
    code, _, err = run(f"runs {target} --retry-failed")
    assert code == 2
    assert "can only be read" in err
    target.write_bytes(gzip.compress(b"something else"))
    code, _, err = run(f"runs {target}")
    assert code == 3
    assert "no store of runs" in err
