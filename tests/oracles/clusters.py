"""Clusters of worker processes on this machine, a problem to give them, and how to kill them."""

import os
import signal
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import nngp

LOADED = ["distributed", "nngp.linsolve.engines.dask.dask_engine", "nngp.gram.cluster.matrix"]


CONNECT = "distributed.comm.timeouts.connect"
HASTY = {CONNECT: "3s"}  # how long others ask a dead worker for a tile
CALM = {CONNECT: "30s"}  # to start and to end: on a machine with much to do all may be as slow
LIMIT = 60.0  # seconds to start a worker, and to end a cluster


@contextmanager
def processes(workers=2, memory="2GB", failures=10, **settings):
    """A client of a new cluster of processes, one thread each, forked where all is loaded."""
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    wanted = {
        "distributed.scheduler.allowed-failures": failures,
        "distributed.worker.multiprocessing-method": "forkserver",
        **CALM,
        **settings,
    }
    # Dask leaves its settings of BLAS threads in the environment
    with patch.dict(os.environ), dask.config.set(wanted):
        get_mp_context().set_forkserver_preload(LOADED)
        cluster = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=memory,
            dashboard_address=":0",
            death_timeout=LIMIT,
            config=HASTY,
        )
        try:
            with dask.config.set(HASTY), Client(cluster, set_as_default=False) as client:
                yield client
        finally:
            end(cluster)


def end(cluster):
    """Close a cluster, or fail. Dask waits for ever where closing has failed once before."""
    import dask

    with dask.config.set(CALM):
        cluster.close(timeout=LIMIT)


class Problem(NamedTuple):
    net: nngp.Architecture
    X: np.ndarray
    Y: np.ndarray
    Xs: np.ndarray
    noise: float = 1e-2


def fit(problem, engine, **options):
    options = {"noise_var": problem.noise, **options}
    return nngp.condition(problem.net, problem.X, problem.Y, engine=engine, **options)


def check_same(posterior, local, Xs, tolerance=1e-10):
    """Mean, variance and evidence agree."""
    (mean, variance), (mean0, variance0) = (p.predict(Xs) for p in (posterior, local))
    np.testing.assert_allclose(mean, mean0, rtol=0, atol=tolerance * np.abs(mean0).max())
    np.testing.assert_allclose(variance, variance0, rtol=0, atol=tolerance * variance0.max())
    assert posterior.log_evidence == pytest.approx(local.log_evidence, rel=tolerance)


class Killer:
    """A progress callback that kills a worker which has done tiles, once `after` are done."""

    def __init__(self, engine, after=8, times=1):
        self.engine, self.after, self.times = engine, after, times
        self.killed = []

    def __call__(self, step):
        heard = self.engine.listener
        alive = [pid for pid in heard.pids if pid not in self.killed]
        enough = len(heard.done) >= self.after * (len(self.killed) + 1)
        if enough and len(self.killed) < self.times and alive:
            os.kill(alive[0], signal.SIGKILL)
            self.killed.append(alive[0])


def is_alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:  # a zombie is dead
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
