"""Claims end with their owner: a process that is gone, or silent for too long."""

import os
import subprocess
import sys
import time

import pytest

from nngp_paper.runs import RunStore, owner as owners
from nngp_paper.runs.owner import STALE, Owner


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


def pretend(store, **changes):
    """Change what the file says of the one owner in it."""
    with store._database.writing() as connection:
        for name, value in changes.items():
            connection.execute(f"UPDATE owners SET {name} = ?", (value,))


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
    clock.now += STALE - 1
    assert [run.key for run in second.claim_many(2)] == keys[1:]


def test_a_dead_process_loses_its_run_at_once(claimed):
    first, second, keys = claimed
    pretend(first, pid=gone_process())
    assert second.claim().key == keys[0]
    assert second.get(keys[0]).attempts == 2
    assert second.get(keys[0]).owner != first.get(keys[1]).owner


def test_where_the_system_tells_no_start_the_number_counts(claimed, monkeypatch):
    first, second, keys = claimed
    monkeypatch.setattr(owners, "_start", lambda pid: "")
    pretend(first, start="")
    assert second.claim([keys[0]]) is None
    pretend(first, pid=gone_process())
    assert second.claim().key == keys[0]


def test_another_process_with_the_same_number_is_not_the_owner(claimed):
    first, second, keys = claimed
    if not owners._start(os.getpid()):
        pytest.skip("the system does not tell when a process started")
    pretend(first, start="1")
    assert second.claim().key == keys[0]


def test_a_process_that_waits_to_be_buried_is_dead(claimed):
    first, second, keys = claimed
    if not owners._start(os.getpid()):
        pytest.skip("the system does not tell")
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pretend(first, pid=child.pid, start=owners._start(child.pid))
    assert second.claim([keys[0]]) is None
    child.stdin.close()
    wait_for(lambda: owners._start(child.pid) == "dead")
    assert second.claim().key == keys[0]
    child.wait()


def test_a_process_of_another_user_is_there(monkeypatch):
    def refuse(pid, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert Owner.this().is_alive(0)


def test_a_process_on_another_host_counts_by_its_heartbeat(claimed, clock):
    first, second, keys = claimed
    pretend(first, place="far away", pid=gone_process())
    assert second.claim([keys[0]]) is None
    clock.now += STALE + 1
    assert second.claim().key == keys[0]


def test_where_signals_are_no_question_only_the_heartbeat_counts(claimed, clock, monkeypatch):
    first, second, keys = claimed
    monkeypatch.setattr(owners, "SIGNAL_0_CHECKS", False)
    pretend(first, pid=gone_process())
    assert second.claim([keys[0]]) is None
    clock.now += STALE + 1
    assert second.claim().key == keys[0]


def test_of_two_takers_the_first_result_is_kept(claimed, clock):
    first, second, keys = claimed
    clock.now += STALE + 1  # a laptop that was asleep
    assert second.claim().key == keys[0]
    assert first.release([keys[0]]) == 0  # it is not ours any more
    assert first.finish(keys[0], {"by": "first"}, seconds=1)
    assert not second.finish(keys[0], {"by": "second"}, seconds=1)
    assert second.get(keys[0]).result == {"by": "first"}
    assert first.claim().key == keys[1]  # and goes on as before
    assert second.claim() is None


def test_our_own_silence_does_not_take_our_runs_from_us(claimed, clock):
    first, _, keys = claimed
    clock.now += STALE + 1
    assert first.claim().key == keys[1]
    assert first.get(keys[0]).status == "running"


def test_the_heartbeat_goes_on_while_something_is_claimed(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(owners, "BEAT", 0.01)
    with opened(tmp_path, clock) as first, opened(tmp_path, clock) as second:
        keys = first.declare("e", [{"i": 0}])
        first.claim()
        clock.now += STALE - 1
        wait_for(lambda: beat_of(first) == clock.now)
        clock.now += STALE - 1  # together more than STALE
        assert second.claim() is None
        first.finish(keys[0], {}, seconds=0)
        seen = beat_of(first)
        clock.now += 5
        time.sleep(0.1)
        assert beat_of(first) == seen  # nothing claimed, nothing written


def test_the_heartbeat_survives_trouble_and_ends_with_the_store(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(owners, "BEAT", 0.01)
    store = opened(tmp_path, clock)
    store.declare("e", [{"i": 0}])
    beats, renew = [], store._heartbeat._beat

    def beat():
        beats.append(1)
        if len(beats) < 3:
            raise TimeoutError("locked")
        renew()

    store._heartbeat._beat = beat
    store.claim()
    thread = store._heartbeat._thread
    clock.now += 7
    wait_for(lambda: beat_of(store) == clock.now)
    assert thread.daemon
    store.close()
    thread.join(5)
    assert not thread.is_alive()


def beat_of(store):
    with store._database.reading() as connection:
        return connection.execute("SELECT max(beat) FROM owners").fetchone()[0]


def wait_for(condition):
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in five seconds")
