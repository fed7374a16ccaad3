"""The random search: done once, shared, killed and gone on with."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from clouds import three_clouds

pytest.importorskip("jax")
pytest.importorskip("optax")

import nngp
from nngp_paper.finite import random_search as module
from nngp_paper.finite.random_search import Cell, best_of, declare, search
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.training import Trainer
from nngp_paper.runs import RunStore

DATA, PLAN = three_clouds(), Plan(steps=40, interval=20)
CELL = Cell("clouds", 60, "tanh", 1, 7)
WORKER = """
import sys, time
from clouds import three_clouds
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.random_search import Cell, search
from nngp_paper.runs import RunStore

finish = RunStore.finish
def slowly(self, key, *result, **options):
    time.sleep(0.05)
    finish(self, key, *result, **options)
    print(key, flush=True)
    for _ in range(1000):  # whoever is first waits for the others to have something, too
        if len({run.owner for run in store.runs(status="done")}) >= workers:
            break
        time.sleep(0.05)
RunStore.finish = slowly
workers = int(sys.argv[2])
with RunStore(sys.argv[1]) as store:
    search(store, [Cell("clouds", 60, "tanh", 1, 7)], three_clouds(), Plan(steps=40, interval=20),
           trials=24, lanes=3)
"""


def start_worker(path, workers=1):
    sources = [Path(module.__file__).parents[2], Path(nngp.__file__).parents[1]]
    places = [Path(__file__).parents[1] / "oracles", *sources]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "JAX_COMPILATION_CACHE_DIR": str(path.parent / "compiled"),  # the next one starts faster
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    words = [sys.executable, "-c", WORKER, str(path), str(workers)]
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def test_the_best_is_chosen_on_validation_and_finished_trials_stay(tmp_path, monkeypatch):
    with RunStore(tmp_path / "runs.db") as store:
        (found,) = search(store, [CELL], DATA, PLAN, trials=4, lanes=4)
        runs = store.runs(status="done")
        assert [run.config["trial"] for run in runs] == [0, 1, 2, 3]
        best = max(runs, key=lambda run: (run.result["val_accuracy"], -run.result["val_mse"]))
        assert (found.best.key, found.trials, found.cell) == (best.key, 4, CELL)
        assert found.result["test_accuracy"] == best.result["test_accuracy"]
        assert all(run.seconds > 0 and run.device for run in runs)

        monkeypatch.setattr(Trainer, "run", None)  # nothing is left to be trained
        assert search(store, [CELL], DATA, PLAN, trials=4) == [found]
        assert search(store, [CELL], DATA, PLAN, trials=3)[0].trials == 3


def test_more_trials_add_to_those_that_are_there(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        few = declare(store, CELL, DATA, PLAN, 3)
        assert declare(store, CELL, DATA, PLAN, 5)[:3] == few
        others = declare(store, CELL, DATA, PLAN, 3, seed=1), declare(store, CELL, DATA, Plan(), 3)
        assert not set(few) & {key for keys in others for key in keys}
        with pytest.raises(ValueError, match="trials must be a whole number of at least 1"):
            declare(store, CELL, DATA, PLAN, 0)


def test_time_is_over(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        assert search(store, [CELL], DATA, PLAN, trials=2, until=time.monotonic()) == []
        keys = [run.key for run in store.runs()]
        assert list(module._claimed(store, keys, time.monotonic())) == []
        assert store.counts()["pending"] == 2
        assert next(module._claimed(store, keys, time.monotonic() + 60)).key == keys[0]


def test_claimed_runs_are_released_when_something_goes_wrong(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise KeyboardInterrupt

    with RunStore(tmp_path / "runs.db") as store:
        monkeypatch.setattr(store, "finish", fails)
        released = []
        monkeypatch.setattr(store, "release", released.extend)
        with pytest.raises(KeyboardInterrupt):
            search(store, [CELL], DATA, PLAN, trials=3, lanes=2)
        runs = store.runs()
        assert set(released) == {runs[0].key, runs[1].key}
        assert runs[2].status == "pending"


def test_every_shape_has_settings_of_its_own(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        for cell in (CELL, replace(CELL, width=8), replace(CELL, depth=2)):
            declare(store, cell, DATA, PLAN, 3)
        assert len({run.config["learning_rate"] for run in store.runs()}) == 9


def test_one_by_one_those_of_one_batch_size_make_a_group(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        keys = declare(store, CELL, DATA, PLAN, 30)
        groups = list(module._groups(store.runs(keys=keys), lanes=1))
        sizes = [{run.config["batch_size"] for run in group} for group in groups]
        assert all(len(size) == 1 for size in sizes)
        assert sum(map(len, groups)) == 30
        assert len(list(module._groups(store.runs(keys=keys), lanes=2))) == 1
        store.finish(keys[0], {"val_accuracy": 0.5}, seconds=1.0)
        (left,) = module._groups(store.runs(keys=keys), lanes=2)
        assert [run.key for run in left] == keys[1:]


def test_a_cell_is_of_its_data(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        for cell in (Cell("rain", 60, "tanh", 1, 7), Cell("clouds", 61, "tanh", 1, 7)):
            with pytest.raises(ValueError, match="and the data are clouds 60"):
                declare(store, cell, DATA, PLAN, 1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"width": 0}, "width must be a whole number of at least 1"),
        ({"depth": -1}, "depth must be a whole number of at least 0"),
        ({"activation": "relux"}, "unknown activation 'relux'"),
    ],
)
def test_cells_that_cannot_be(wrong, said):
    with pytest.raises(ValueError, match=said):
        replace(CELL, **wrong)
    with pytest.raises(TypeError, match="an activation by name"):
        replace(CELL, activation=abs)


def test_who_waits_does_not_work(tmp_path, monkeypatch):
    """Another process has the runs in hand: nothing is put on the device again and again."""
    made = []
    monkeypatch.setattr(module.TrainingData, "of", lambda data: made.append(data))
    with RunStore(tmp_path / "runs.db") as store, RunStore(tmp_path / "runs.db") as other:
        keys = declare(store, CELL, DATA, PLAN, 2)
        assert [other.claim(keys).key for _ in range(2)] == keys

        class Idle:
            def __init__(self, *_, **__):
                pass

            def run(self, recipes, bar):
                assert list(recipes) == []
                return []

        monkeypatch.setattr(module, "Trainer", Idle)
        monkeypatch.setattr(module, "_trainer", lambda *_: Idle())

        def finish_there(seconds):
            for key in keys:
                other.finish(key, {"val_accuracy": 0.5, "val_mse": 1.0}, seconds=1.0)

        monkeypatch.setattr(module.time, "sleep", finish_there)
        (found,) = search(store, [CELL], DATA, PLAN, trials=2)
        assert found.trials == 2
    assert len(made) == 1


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_lost_or_repeated(tmp_path):
    path = tmp_path / "runs.db"
    worker = start_worker(path)
    told = {worker.stdout.readline().strip() for _ in range(5)}
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    with RunStore(path) as store:
        done = {run.key: run.result for run in store.runs(status="done")}
    assert told <= set(done)
    assert len(done) < 24
    again = start_worker(path)
    second = again.communicate(timeout=120)[0].split()
    assert again.returncode == 0
    assert not set(second) & set(done)
    with RunStore(path) as store:
        runs = store.runs()
        assert {run.status for run in runs} == {"done"}
        assert len(runs) == 24
        assert all(store.get(key).result == result for key, result in done.items())


@pytest.mark.slow
def test_two_processes_share_the_work(tmp_path):
    path = tmp_path / "runs.db"
    workers = [start_worker(path, workers=2) for _ in range(2)]
    shares = [worker.communicate(timeout=120)[0].split() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert all(shares)
    assert sorted(shares[0] + shares[1]) == sorted(set(shares[0] + shares[1]))
    with RunStore(path) as store:
        runs = store.runs(status="done")
        assert len(runs) == 24
        assert {run.attempts for run in runs} == {1}
        assert len(best_of(runs)) == 1
