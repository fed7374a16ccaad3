"""Studies as runs: done once, in order, resumed, stopped by a budget, released when interrupted."""

import math
import time

import pytest

from nngp_paper.runs import RunStore, study as study_module
from nngp_paper.runs.study import Outcome, Study, carry_out

RUNS = 10


@pytest.fixture(autouse=True)
def some_windows(monkeypatch):
    """Few runs, in several windows nonetheless."""
    monkeypatch.setattr(study_module, "WINDOW", 4)


def square(done: list[int]) -> Study:
    def work(config):
        done.append(config["x"])
        if config["x"] == 3:
            raise ZeroDivisionError("three cannot be squared")
        return Outcome({"square": config["x"] ** 2}, "abacus", 1e-10)

    return Study("squares", [{"x": x} for x in range(RUNS)], work)


def test_every_run_is_done_once_and_in_order(tmp_path):
    done: list[int] = []
    with RunStore(tmp_path / "runs.db") as store:
        keys = carry_out(store, square(done))
        carry_out(store, square(done))
        assert done == list(range(RUNS))
        run = store.get(keys[7])
        assert (run.result, run.device, run.jitter) == ({"square": 49}, "abacus", 1e-10)
        failed = store.get(keys[3])
        assert (failed.status, failed.error) == ("failed", "three cannot be squared")


def test_nothing_is_begun_after_the_time(tmp_path):
    done: list[int] = []
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, square(done), until=time.monotonic() - 1)
        assert done == []
        carry_out(store, square(done), until=math.inf)
        assert len(done) == RUNS


def test_an_interruption_gives_the_run_back(tmp_path):
    def work(config):
        raise KeyboardInterrupt

    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(KeyboardInterrupt):
            carry_out(store, Study("squares", [{"x": 0}], work))
        assert store.counts()["pending"] == 1


def test_without_waiting_what_others_have_in_hand_is_left(tmp_path):
    done: list[int] = []
    with RunStore(tmp_path / "runs.db") as store, RunStore(tmp_path / "runs.db") as other:
        study = square(done)
        keys = store.declare(study.experiment, study.configs)
        other.claim(keys=keys[:1])
        carry_out(store, study, wait=False)
        assert done == list(range(1, RUNS))
