"""Claims end with their owner: a process that is gone, or silent for too long."""

import os
import subprocess
import sys
import time

import pytest

from nngp_paper.errors import RunStoreError
from nngp_paper.runs import RunStore, store as stores
from nngp_paper.runs.store import LEASE


class Clock:
    def __init__(self):
        self.now = 1.8e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def opened(tmp_path, clock):
    return RunStore(tmp_path / "runs.db", clock=clock)


def pretend(store, *, place=None, pid=None):
    """Change what the file says of the owner of the claimed run."""
    with store._writing() as connection:
        ((owner,),) = connection.execute("SELECT owner FROM runs WHERE status = 'running'")
        own_place, own_pid, number = owner.rsplit(":", 2)
        other = f"{place or own_place}:{pid or own_pid}:{number}"
        connection.execute("UPDATE runs SET owner = ? WHERE owner = ?", (other, owner))


def gone_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


@pytest.fixture
def claimed(tmp_path, clock):
    """Two stores; the first has claimed the first of two runs."""
    with opened(tmp_path, clock) as first, opened(tmp_path, clock) as second:
        keys = first.declare("e", [{"i": 0}, {"i": 1}])
        assert first.claim().key == keys[0]
        yield first, second, keys


def test_a_living_owner_keeps_its_run(claimed, clock):
    _, second, keys = claimed
    clock.now += LEASE - 1
    assert second.claim().key == keys[1]
    assert second.claim() is None


def test_a_dead_process_loses_its_run_at_once(claimed):
    first, second, keys = claimed
    pretend(first, pid=gone_process())
    assert second.claim().key == keys[0]
    assert second.get(keys[0]).attempts == 2
    assert second.get(keys[0]).owner != first.get(keys[1]).owner


def test_a_process_of_another_user_is_there(monkeypatch):
    def refuse(pid, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not stores._is_gone(f"{stores._place()}:{os.getpid()}:0")


def test_a_process_on_another_host_counts_by_its_lease(claimed, clock):
    first, second, keys = claimed
    pretend(first, place="far away", pid=gone_process())
    assert second.claim([keys[0]]) is None
    clock.now += LEASE + 1
    assert second.claim().key == keys[0]


def test_where_processes_cannot_be_seen_only_the_lease_counts(claimed, clock, monkeypatch):
    first, second, keys = claimed
    monkeypatch.setattr(stores, "_is_gone", lambda owner: False)
    pretend(first, pid=gone_process())
    assert second.claim([keys[0]]) is None
    clock.now += LEASE + 1
    assert second.claim().key == keys[0]


def test_of_two_takers_the_first_result_is_kept(claimed, clock):
    first, second, keys = claimed
    clock.now += LEASE + 1  # a laptop that was asleep
    assert second.claim().key == keys[0]
    assert first.release([keys[0]]) == 0  # it is not ours any more
    assert first.finish(keys[0], {"by": "first"}, seconds=1)
    assert not second.finish(keys[0], {"by": "second"}, seconds=1)
    assert second.get(keys[0]).result == {"by": "first"}
    assert first.claim().key == keys[1]  # and goes on as before
    assert second.claim() is None


def test_our_own_silence_does_not_take_our_runs_from_us(claimed, clock):
    first, _, keys = claimed
    clock.now += LEASE + 1
    assert first.claim().key == keys[1]
    assert first.get(keys[0]).status == "running"


def test_a_lease_is_renewed_while_its_owner_lives(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(stores, "BEAT", 0.01)
    with opened(tmp_path, clock) as first, opened(tmp_path, clock) as second:
        keys = first.declare("e", [{"i": 0}])
        first.claim()
        clock.now += LEASE - 1
        wait_for(lambda: end_of_lease(first) == clock.now + LEASE)
        clock.now += LEASE - 1  # together more than one lease
        assert second.claim() is None
        first.finish(keys[0], {}, seconds=0)
        seen = end_of_lease(first)
        clock.now += 5
        time.sleep(0.1)
        assert end_of_lease(first) == seen  # nothing claimed, nothing written


def test_renewal_survives_trouble_and_ends_with_the_store(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(stores, "BEAT", 0.01)
    store = opened(tmp_path, clock)
    store.declare("e", [{"i": 0}])
    store.claim()
    thread, writing, tries = store._heart, store._writing, []

    def locked():
        tries.append(1)
        if len(tries) < 3:
            raise RunStoreError("locked")
        return writing()

    monkeypatch.setattr(store, "_writing", locked)
    clock.now += 7
    wait_for(lambda: len(tries) > 2 and end_of_lease(store) == clock.now + LEASE)
    assert thread.daemon
    store.close()
    thread.join(5)
    assert not thread.is_alive()


def end_of_lease(store):
    with store._reading() as connection:
        return connection.execute("SELECT max(expires) FROM runs").fetchone()[0]


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in five seconds")
