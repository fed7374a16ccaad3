"""Several processes on one file: each run is done once; a process may be killed at any moment."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nngp_paper.runs import RunStore

WORKER = """
import sys, time
from nngp_paper.runs import RunStore
from pathlib import Path
path, log, pause, together = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
with RunStore(path) as store, open(log, "a") as file:
    while len(list(Path(log).parent.glob("*.log"))) < together:  # else the first may do it all
        time.sleep(0.001)
    while run := store.claim():
        file.write(run.key + "\\n"); file.flush()
        time.sleep(pause)
        store.finish(run.key, {"twice": 2 * run.config["i"]}, seconds=pause)
"""


def start(code, *words):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *map(str, words)], stderr=subprocess.PIPE
    )


def run_code(code, *words):
    """A program in a process of its own, given a minute."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def work_logged(folder):
    return [key for log in Path(folder).glob("*.log") for key in log.read_text().split()]


def finish_all(workers):
    for worker in workers:
        _, errors = worker.communicate(timeout=60)
        assert (worker.returncode, errors) == (0, b"")


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_share_the_work(tmp_path, processes):
    with RunStore(tmp_path / "runs.db") as store:
        keys = store.declare("e", [{"i": i} for i in range(60)])
        logs = [tmp_path / f"{n}.log" for n in range(processes)]
        workers = [start(WORKER, store.path, log, 0.01, processes) for log in logs]
        finish_all(workers)
        assert sorted(work_logged(tmp_path)) == sorted(keys)
        runs = store.runs()
        assert [run.result for run in runs] == [{"twice": 2 * i} for i in range(60)]
        assert {run.attempts for run in runs} == {1}
        assert len({run.owner for run in runs}) > 1


def test_kill_loses_only_the_runs_in_progress(tmp_path):
    path = tmp_path / "runs.db"
    with RunStore(path) as store:
        store.declare("e", [{"i": i} for i in range(40)])
    workers = [start(WORKER, path, tmp_path / f"{n}.log", 0.03, 2) for n in range(2)]
    with RunStore(path) as store:
        while store.counts()["done"] < 10:
            assert [worker.poll() for worker in workers] == [None, None]
            time.sleep(0.01)
    for worker in workers:
        worker.send_signal(signal.SIGKILL)
        worker.communicate(timeout=60)
    with RunStore(path) as store:
        before = store.runs(status="done")
        assert 10 <= len(before) < 40
        assert store.counts()["running"] <= 2
        begun = work_logged(tmp_path)
        assert len(set(begun)) - len(before) <= 2
    finish_all([start(WORKER, path, tmp_path / "again.log", 0.0, 1)])
    with RunStore(path) as store:
        runs = store.runs()
        assert [run.result for run in runs] == [{"twice": 2 * i} for i in range(40)]
        assert [run for run in runs if run.key in {old.key for old in before}] == before
        again = (tmp_path / "again.log").read_text().split()
        assert sorted(again) == sorted({run.key for run in runs} - {old.key for old in before})
        assert sum(run.attempts for run in runs) <= 42


def test_a_transaction_cut_short_never_happened(tmp_path):
    code = """
import os, sys
from nngp_paper.runs import RunStore
store = RunStore(sys.argv[1])
with store._writing() as connection:
    connection.execute("UPDATE runs SET status = 'done'")
    os.kill(os.getpid(), 9)
"""
    with RunStore(tmp_path / "runs.db") as store:
        store.declare("e", [{"i": i} for i in range(3)])
        dying = start(code, store.path)
        dying.communicate(timeout=60)
        assert dying.returncode == -9
        assert store.counts()["pending"] == 3
        assert all(store.claim() for _ in range(3))


pytestmark_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytestmark_fork
def test_a_store_that_crosses_a_fork_is_another_owner(tmp_path):
    code = """
import os, sys
from nngp_paper.runs import RunStore
store = RunStore(sys.argv[1])
keys = store.declare("e", [{"i": i} for i in range(6)])
mine = store.claim()
child = os.fork()
if child == 0:
    run = store.claim()                       # the next one, not the parent's
    assert run.key == keys[1]
    assert store.release([mine.key]) == 0     # not the child's to give back
    store.finish(run.key, {"by": "child"}, seconds=0)
    store.claim()                             # keys[2], and dies with it
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
store.finish(mine.key, {"by": "parent"}, seconds=0)
assert store.claim().key == keys[2]           # its owner is gone
child = os.fork()
if child == 0:
    store.close()                             # gives back nothing of the parent's
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert store.counts() == {"pending": 3, "running": 1, "done": 2, "failed": 0}
store.close()
print("well")
"""
    assert run_code(code, tmp_path / "runs.db") == ["well"]


@pytestmark_fork
def test_children_may_be_forked_in_the_middle_of_the_work_of_threads(tmp_path):
    code = """
import os, sys, threading
from nngp_paper.runs import RunStore
store = RunStore(sys.argv[1])
keys = store.declare("e", [{"i": i} for i in range(200)])
def work():
    while run := store.claim(keys):
        store.finish(run.key, {}, seconds=0)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        run = store.claim(keys)
        assert sum(store.counts().values()) == 200
        if run: store.finish(run.key, {}, seconds=0)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
for thread in threads: thread.join()
assert {run.attempts for run in store.runs(status="done", keys=keys)} == {1}
assert store.counts()["done"] == 200
print("well")
"""
    assert run_code(code, tmp_path / "runs.db") == ["well"]


@pytestmark_fork
def test_processes_that_create_one_file_at_once(tmp_path):
    code = """
import os, sys, time
from nngp_paper.runs import RunStore
for trial in range(5):
    path, go = f"{sys.argv[1]}/{trial}.db", time.time() + 0.05
    children = []
    for n in range(6):
        child = os.fork()
        if child == 0:
            time.sleep(max(0.0, go - time.time()))
            RunStore(path).declare("e", [{"i": n}, {"shared": 1}])
            os._exit(0)
        children.append(child)
    assert not any(os.waitpid(child, 0)[1] for child in children)
    with RunStore(path) as store:
        print(store.counts()["pending"])
"""
    assert run_code(code, tmp_path) == ["7"] * 5
