"""The same problem on this machine and on worker processes of it: what a cluster costs.

    python benchmarks/distributed.py [--n 8000] [--workers 2] [--repeats 3] [--out FILE]
    python benchmarks/distributed.py --n 10000 --tile 512 --memory 300MB --repeats 1

Both use the same cores: the local engine as many threads as there are workers, each worker one
thread. What is compared are the fastest runs of each. Memory is what processes hold (RSS), sampled
every 20 ms in one more run; the triangle is what the factor takes by itself. With --store tiles are
files; with --kill one worker is killed when half of the tiles are done.
"""

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# This file has the name of the package that it measures, and is not what should be imported.
sys.path[:] = [folder for folder in sys.path if Path(folder).resolve() != Path(__file__).parent]

import dask  # noqa: E402
import numpy as np  # noqa: E402
import psutil  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import nngp  # noqa: E402

NET = nngp.Architecture(3, "relu", 1.6, 0.1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=8000)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tile", type=int, default=4096)
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


class Watch:
    """The most memory that each process held, and the most that workers had on disk."""

    def __init__(self, client: Client) -> None:
        self._client, self._stop = client, threading.Event()
        self.workers: dict[int, int] = {}
        self.before = self.client = psutil.Process().memory_info().rss
        self.spilled = 0

    def __enter__(self) -> "Watch":
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        me = psutil.Process()
        while not self._stop.wait(0.02):
            self.client = max(self.client, me.memory_info().rss)
            for process in me.children(recursive=True):
                try:
                    held = process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                self.workers[process.pid] = max(self.workers.get(process.pid, 0), held)
            known = self._client.scheduler_info(n_workers=-1)["workers"].values()
            disk = sum(w["metrics"].get("spilled_bytes", {}).get("disk", 0) for w in known)
            self.spilled = max(self.spilled, disk)


@contextmanager
def cluster(asked: argparse.Namespace) -> Iterator[Client]:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 10}),
        LocalCluster(
            n_workers=asked.workers,
            threads_per_worker=1,
            processes=True,
            memory_limit=asked.memory,
            dashboard_address=":0",
        ) as local,
        Client(local) as client,
    ):
        yield client


def fitted(data: Any, engine: Any, progress: Any = False) -> tuple[nngp.Posterior, float]:
    start = time.perf_counter()
    options = {"noise_var": 1e-2, "solver": "cholesky", "engine": engine, "progress": progress}
    posterior = nngp.condition(NET, *data, **options)
    return posterior, time.perf_counter() - start


def killing(engine: nngp.DaskEngine, chains: int) -> Any:
    """Kill a worker once half of the chains are done."""
    killed: list[int] = []

    def step(_: Any) -> None:
        if not killed and len(engine.listener.done) > chains / 2:
            killed.extend(sorted(engine.listener.pids)[:1])
            os.kill(killed[0], signal.SIGKILL)

    return step


def main() -> None:
    asked = arguments()
    rng = np.random.default_rng(0)
    X = nngp.normalize(rng.normal(size=(asked.n, asked.d)))
    Y, Xs = X[:, :3].copy(), nngp.normalize(rng.normal(size=(200, asked.d)))
    local_seconds, dask_seconds, answers = [], [], {}
    with cluster(asked) as client, tempfile.TemporaryDirectory() as folder:
        for turn in range(asked.repeats + 1):
            store = f"{folder}/{turn}" if asked.store else None
            engine = nngp.DaskEngine(client, asked.tile, store)
            down = -(-asked.n // engine.tile_size(asked.n))
            step = killing(engine, down * (down + 1) // 2) if asked.kill else False
            if turn < asked.repeats:
                posterior, seconds = fitted((X, Y), engine, step)
                dask_seconds.append(seconds)
            else:  # once more, to look at memory, which takes time itself
                with Watch(client) as watch:
                    posterior, _ = fitted((X, Y), engine, step)
                    answers["dask"] = posterior.predict(Xs)
        client_grew = watch.client - watch.before
        for _ in range(asked.repeats):  # afterwards: its factor would be the client's memory
            posterior, seconds = fitted((X, Y), "cpu")
            answers["cpu"] = posterior.predict(Xs)
            local_seconds.append(seconds)
    workers = sorted(watch.workers.values())[-asked.workers :]
    record = {
        "n": asked.n,
        "d": asked.d,
        "tile": engine.tile_size(asked.n),
        "workers": asked.workers,
        "memory_limit": asked.memory,
        "store": asked.store,
        "killed": asked.kill,
        "local_seconds": [round(s, 2) for s in local_seconds],
        "dask_seconds": [round(s, 2) for s in dask_seconds],
        "factor": round(min(dask_seconds) / min(local_seconds), 2),
        "triangle_mb": round(4e-6 * asked.n**2),
        "worker_peak_mb": [round(held / 1e6) for held in workers],
        "client_grew_mb": round(client_grew / 1e6),
        "spilled_mb": round(watch.spilled / 1e6),
        "chains_again": sum(engine.listener.done.values()) - len(engine.listener.done),
        "difference": float(
            max(np.abs(a - b).max() for a, b in zip(answers["dask"], answers["cpu"], strict=True))
        ),
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores",
        "nngp": nngp.__version__,
    }
    print(json.dumps(record, indent=1))
    if asked.out:
        with asked.out.open("a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
