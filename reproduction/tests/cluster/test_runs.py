"""The paper's runs on a cluster: the same results as here, whoever dies, and nothing twice."""

import csv
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from clusters import end, is_alive, processes

import nngp
from nngp_paper import on_dask
from nngp_paper.on_dask import Workers
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared.uncertainty import uncertainty_study

SCOPE = Scope("digits", tuple(range(20, 120, 10)), activations=("relu", "tanh"), engine="cpu")
SMALL = "--sizes 20,40 --depths 1,2 --grid 2 --activations relu --engine cpu"


def results(path):
    """What a store says, by key."""
    with RunStore(path) as store:
        return {run.key: (run.status, run.result, run.error) for run in store.runs()}


def table(path):
    with path.open() as file:
        return [
            {k: v for k, v in row.items() if "seconds" not in k} for row in csv.DictReader(file)
        ]


class Watched(Workers):
    """Hands that tell how far they are."""

    def __init__(self, *arguments, then, **more):
        super().__init__(*arguments, **more)
        self._then, self.ended = then, 0

    def next_ended(self):
        found = super().next_ended()
        self.ended += 1
        self._then(self)
        return found


@pytest.mark.slow
def test_the_command_finds_what_it_finds_here(run, client, tmp_path):
    pytest.importorskip("matplotlib")
    where = f"--cluster {client.scheduler.address}"
    code, _, err = run(f"reproduce table2 fig3 {SMALL} --store there.db --out there {where}")
    assert code == 0, err
    assert "on each of 2 threads of workers" in err
    code, _, _ = run(f"reproduce table2 fig3 {SMALL} --store here.db --out here")
    assert code == 0
    there, here = results("there.db"), results("here.db")
    assert len(there) == 2 + 2 + 8  # uncertainties, their scales, strips of the grid
    assert there == here
    ours, theirs = (table(tmp_path / name / "table2-digits.csv") for name in ("there", "here"))
    assert ours == theirs
    assert len(ours) == 2


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(tmp_path):
    killed = []

    def kill(hands):
        if hands.ended == 3:
            killed.extend(list(hands.client.run(os.getpid).values())[:1])
            os.kill(killed[0], signal.SIGKILL)

    with processes() as client:
        hands = Watched(client, SCOPE, then=kill)
        with RunStore(tmp_path / "there.db") as store:
            keys = carry_out(store, uncertainty_study(SCOPE), executor=hands, progress=False)
            assert {store.get(key).attempts for key in keys} == {1}  # Dask did them again, not we
        assert hands.ended == len(keys) == 20
    assert not is_alive(killed[0])
    with RunStore(tmp_path / "here.db") as store:
        carry_out(store, uncertainty_study(SCOPE), progress=False)
    assert results(tmp_path / "there.db") == results(tmp_path / "here.db")


def test_what_cannot_be_computed_is_written_down(client, tmp_path):
    """A configuration that no network has; what cannot be is a result too."""
    study = uncertainty_study(replace(SCOPE, sizes=(20,)))
    configs = [{**study.configs[0], "bin": 1000}, study.configs[1]]  # one bin correlates with none
    with RunStore(tmp_path / "runs.db") as store:
        study = replace(study, configs=configs)
        failed, done = map(
            store.get, carry_out(store, study, executor=Workers(client, SCOPE), progress=False)
        )
    assert (failed.status, done.status) == ("failed", "done")
    assert "nothing correlates" in failed.error
    assert failed.seconds > 0


def test_other_errors_end_the_work_and_give_the_runs_back(client, tmp_path):
    scope = replace(SCOPE, dataset="mnist", sizes=(100,), data=tmp_path / "nowhere")
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
            carry_out(
                store, uncertainty_study(scope), executor=Workers(client, scope), progress=False
            )
        assert store.counts()["pending"] == 2


def test_an_interruption_gives_back_what_is_in_flight(client, tmp_path):
    def interrupt(hands):
        if hands.ended == 2:
            raise KeyboardInterrupt

    hands = Watched(client, SCOPE, then=interrupt)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(KeyboardInterrupt):
            carry_out(store, uncertainty_study(SCOPE), executor=hands, progress=False)
        counts = store.counts()
        assert (counts["done"], counts["pending"], counts["running"]) == (1, 19, 0)
        carry_out(store, uncertainty_study(SCOPE), executor=Workers(client, SCOPE), progress=False)
        assert store.counts()["done"] == 20


def test_at_the_end_of_a_budget_what_is_in_flight_is_waited_for(client, tmp_path, monkeypatch):
    clock = iter([0.0] * 4 + [2.0] * 99)  # it strikes when four are in flight
    real = {"perf_counter": time.perf_counter, "sleep": time.sleep}
    watch = SimpleNamespace(monotonic=lambda: next(clock), **real)
    monkeypatch.setattr("nngp_paper.runs.study.time", watch)
    hands = Workers(client, SCOPE)
    with RunStore(tmp_path / "runs.db") as store:
        carry_out(store, uncertainty_study(SCOPE), executor=hands, until=1.0, progress=False)
        counts = store.counts()
        assert (counts["done"], counts["pending"], counts["running"]) == (4, 16, 0)


def test_no_workers_is_an_error_after_a_while(tmp_path):
    with processes(workers=0) as client, RunStore(tmp_path / "runs.db") as store:
        hands = Workers(client, SCOPE, patience=0.1)
        with pytest.raises(
            nngp.errors.ClusterError, match=r"no worker for 0 seconds.*are in the store"
        ):
            carry_out(store, uncertainty_study(SCOPE), executor=hands, progress=False)
        assert store.counts()["pending"] == 20


@pytest.mark.slow
def test_a_scheduler_that_goes_away(tmp_path):
    def stop(hands):
        if hands.ended == 2:
            end(hands.client.cluster)

    with processes() as client, RunStore(tmp_path / "runs.db") as store:
        hands = Watched(client, SCOPE, then=stop)
        with pytest.raises(nngp.errors.ClusterError, match="lost"):
            carry_out(store, uncertainty_study(SCOPE), executor=hands, progress=False)
        assert store.counts()["done"] == 2
        assert store.counts()["running"] == 0


def test_training_sets_that_no_worker_can_hold_are_refused(run, client):
    pytest.importorskip("matplotlib")
    where = f"--cluster {client.scheduler.address}"
    code, _, err = run(f"reproduce fig3 --dataset mnist --sizes 50000 {where}")
    assert code == 4
    assert "for each thread of a worker, and the smallest has" in err


def test_a_study_is_made_once_for_the_runs_of_a_thread(monkeypatch):
    made, closed = [], []

    def study(name, scope):
        made.append(name)
        work, close = lambda config: Outcome(config), lambda: closed.append(name)
        return Study(name, [], work, close)

    monkeypatch.setattr(on_dask, "study_named", study)
    for name in ("a", "a", "b", "b"):
        assert on_dask.do_run(name, SCOPE, {"x": 1}).outcome.result == {"x": 1}
    assert (made, closed) == (["a", "b"], ["a"])
    on_dask.do_run("b", replace(SCOPE, grid=3), {})
    assert made == ["a", "b", "b"]


@pytest.mark.slow
def test_the_command_of_the_guide(client, run, tmp_path):
    guide = Path(__file__).parents[3] / "docs" / "guides" / "cluster.md"
    lines = [one for one in guide.read_text().splitlines() if one.startswith("nngp-paper ")]
    (line,) = lines
    here = line.removeprefix("nngp-paper ").replace("tcp://head:8786", client.scheduler.address)
    code, _, err = run(here)
    assert code == 0, err
    assert (tmp_path / "reproduced" / "fig3-digits.png").exists()
