"""A lost worker costs time; losing too many, or all, is one clear error and never a hang."""

import re
import time
from types import SimpleNamespace

import numpy as np
import pytest
from clusters import Killer, check_same, end, fit, is_alive, processes

import nngp
from nngp.linsolve.engines.dask.client import known_workers, result


def test_a_killed_worker_costs_time_and_nothing_else(problem, local):
    with processes() as client:
        engine = nngp.DaskEngine(client, 150)
        killer = Killer(engine, after=20)
        posterior = fit(problem, engine, progress=killer)
        assert len(killer.killed) == 1
        assert not is_alive(killer.killed[0])
        assert max(engine.listener.done.values()) > 1  # tiles that were lost with it
        assert posterior.report.cluster["computed_again"] >= 1
        check_same(posterior, local, problem.Xs)


@pytest.mark.slow
def test_killing_whoever_holds_the_rows(problem, local, tmp_path):
    """Workers that die one after the other take all rows with them."""
    np.save(tmp_path / "X.npy", problem.X)
    with processes() as client:
        engine = nngp.DaskEngine(client, 150)
        killer = Killer(engine, after=15, times=2)
        posterior = fit(problem._replace(X=tmp_path / "X.npy"), engine, progress=killer)
        assert len(killer.killed) == 2
        check_same(posterior, local, problem.Xs)


def test_more_deaths_than_allowed_are_one_clear_error(problem):
    with processes(failures=0) as client:
        engine = nngp.DaskEngine(client, 150)
        killer = Killer(engine, after=5, times=10)
        with pytest.raises(nngp.errors.ClusterError, match="worker died"):
            fit(problem, engine, progress=killer)


@pytest.mark.slow
def test_no_workers_is_an_error_after_a_while(problem):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        start = time.monotonic()
        with pytest.raises(nngp.errors.ClusterError, match="no worker"):
            fit(problem, nngp.DaskEngine(client, patience=1))
        assert time.monotonic() - start < 60


def test_a_scheduler_that_goes_away(problem):
    with processes() as client:
        engine = nngp.DaskEngine(client, 150)

        def stop(step):
            if engine.listener.done and client.status == "running":
                end(client.cluster)

        with pytest.raises(nngp.errors.ClusterError, match=r"again|make a new"):
            fit(problem, engine, progress=stop)
        with pytest.raises(nngp.errors.ClusterError):
            fit(problem, engine)


def test_no_scheduler_at_all(monkeypatch):
    from nngp.linsolve.engines.dask import client as cluster_client

    monkeypatch.setattr(cluster_client, "CONNECT", 0.5)
    with pytest.raises(nngp.errors.ClusterError, match="no Dask scheduler at tcp://127"):
        nngp.DaskEngine("tcp://127.0.0.1:9")
    with pytest.raises(TypeError, match="address such as"):
        nngp.DaskEngine(3)
    for address in ("bla", "", "http://127.0.0.1:8786", "tcp://host", "tcp://:8786"):
        with pytest.raises(nngp.errors.ClusterError, match="it looks like 'tcp://host:8786'"):
            nngp.DaskEngine(address)


def test_a_tile_that_fits_no_worker_is_refused(problem):
    with processes(workers=1, memory="496MB") as client:
        engine = nngp.DaskEngine(client, tile=2048)
        X = np.ones((20_000, 3))
        with pytest.raises(MemoryError, match="use tile="):
            nngp.condition(problem.net, X, X[:, 0], engine=engine)
        assert not engine.listener.done
        with pytest.raises(MemoryError) as refused:
            engine.check_room(100_000, 64)
        advised = int(re.search(r"tile=(\d+)", str(refused.value))[1])
        nngp.DaskEngine(client, tile=advised).check_room(100_000, 64)
        with pytest.raises(MemoryError):
            nngp.DaskEngine(client, tile=advised + 100).check_room(100_000, 64)


def test_wrong_options(client):
    for options in (
        {"tile": 0},
        {"tile": 2.5},
        {"dtype": "f2"},
        {"patience": -1},
        {"store": 5},
        {"store": ""},
    ):
        with pytest.raises(ValueError, match="must be"):
            nngp.DaskEngine(client, **options)


class Alone:
    """A client whose workers are gone."""

    status = "running"
    scheduler = SimpleNamespace(identity=None)

    def sync(self, function, callback_timeout, **arguments):
        return {"workers": {}}


class Silent(Alone):
    """A client whose scheduler does not answer: it is busy, stopped, or behind a broken cable."""

    def __init__(self, error):
        self.error = error

    def sync(self, function, callback_timeout, **arguments):
        assert 0 < callback_timeout < 60
        raise self.error

    def scheduler_info(self, **_):
        return {"workers": {"tcp://127.0.0.1:1": {}}}  # what it heard last


class Reconnecting(Silent):
    """A client whose scheduler is gone, which it has not given up yet."""

    status = "connecting"


class Closing(Silent):
    """A client that another thread closes while the scheduler is asked."""

    def sync(self, function, callback_timeout, **arguments):
        self.status = "closed"
        raise self.error


def test_a_scheduler_that_does_not_answer_has_no_workers():
    for error in (OSError(), TimeoutError()):
        assert known_workers(Silent(error)) == {}
        with pytest.raises(
            nngp.errors.ClusterError, match="its scheduler has not answered; see that"
        ):
            result(Silent(error), Lost(), patience=0.01)
    assert known_workers(Reconnecting(None)) == {}
    with pytest.raises(nngp.errors.ClusterError, match="is closed; make a new"):
        known_workers(Closing(RuntimeError("the loop is not running")))


class Lost:
    """A future that has finished, with a result that nobody holds any more."""

    status = "finished"

    def done(self):
        return True

    def result(self, timeout):
        raise TimeoutError


class Large(Lost):
    """A result that takes a fifth of a second to travel; who waits for less gets nothing."""

    asked = 0

    def result(self, timeout):
        self.asked += 1
        if timeout < 0.2 and self.asked < 100:
            raise TimeoutError
        return self.asked


def test_a_result_that_takes_long_to_travel_arrives(client, monkeypatch):
    monkeypatch.setattr("nngp.linsolve.engines.dask.client.POLL", 0.01)
    assert result(client, Large(), patience=60.0) < 10


class Slow(Lost):
    """A task that ran out of time by itself."""

    status = "error"

    def exception(self, timeout):
        return TimeoutError(110, "the network drive is gone")


def test_a_task_that_runs_out_of_time_is_no_lost_cluster(client):
    with pytest.raises(TimeoutError, match="the network drive"):
        result(client, Slow(), patience=1.0)


def test_without_workers_nothing_is_known_of_memory(monkeypatch):
    with processes(workers=1) as client:
        engine = nngp.DaskEngine(client)
        monkeypatch.setattr(
            "nngp.linsolve.engines.dask.dask_engine.known_workers", lambda client: {}
        )
        forecast = nngp.forecast(50_000, 10, engine=engine, solver="auto")
        assert (forecast.available, forecast.fits) == (None, True)


def test_a_result_that_is_lost_on_its_way_is_not_waited_for_without_end():
    with pytest.raises(nngp.errors.ClusterError, match="no worker"):
        result(Alone(), Lost(), patience=0.01)
