"""Workers stay below their limits, whatever the matrix; the client holds none of it."""

import os
import threading

import numpy as np
import pytest
from clusters import processes

import nngp

psutil = pytest.importorskip("psutil")
TILE = 256


class Watch:
    """The most that each process holds, and that workers have on disk, while something is done."""

    def __init__(self, client):
        self.client, self.stop, self.disk = client, threading.Event(), 0
        self.pids = list(client.run(os.getpid).values())
        self.workers, self.own = dict.fromkeys(self.pids, 0), []
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.own.append(psutil.Process().memory_info().rss)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.stop.set()
        self.thread.join()

    def look(self):
        while not self.stop.wait(0.02):
            self.own.append(psutil.Process().memory_info().rss)
            for pid in self.pids:
                held = psutil.Process(pid).memory_info().rss
                self.workers[pid] = max(self.workers[pid], held)
            known = self.client.scheduler_info()["workers"].values()
            disk = sum(worker["metrics"]["spilled_bytes"]["disk"] for worker in known)
            self.disk = max(self.disk, disk)

    @property
    def grew(self):
        return max(self.own) - self.own[0]


def solved(n, limit, tile, **options):
    """Fit n points on two workers of `limit` megabytes; what they held, and the residual."""
    X = nngp.normalize(np.random.default_rng(0).normal(size=(n, 20)))
    net = nngp.Architecture(3, "relu", 1.6, 0.1)
    with processes(memory=f"{limit}MB") as client:
        engine = nngp.DaskEngine(client, tile, **options)
        with Watch(client) as watch:
            posterior = nngp.condition(
                net, X, X[:, :2].copy(), noise_var=1e-2, engine=engine, solver="cholesky"
            )
        assert max(watch.workers.values()) < 1e6 * limit
        assert watch.grew < 60e6  # a few tiles, not the matrix
        assert posterior.report.residual < 1e-10
    return watch


@pytest.mark.slow
def test_workers_spill_and_stay_below_their_limit():
    assert solved(5000, 220, TILE).disk > 0


@pytest.mark.slow
def test_with_a_store_workers_hold_next_to_nothing(tmp_path):
    watch = solved(4000, 400, TILE, store=tmp_path)
    assert watch.disk == 0
    assert max(watch.workers.values()) < 200e6
    assert sum(file.stat().st_size for file in tmp_path.rglob("*.safetensors")) > 60e6


@pytest.mark.slow
def test_a_triangle_larger_than_all_workers_together():
    """400 MB of factor on two workers of 300 MB, of which a third is the interpreter."""
    watch = solved(10_000, 300, 512)
    assert watch.disk > 150e6
