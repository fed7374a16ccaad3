"""The Dask engine: chains as tasks on the workers of a cluster.

Scheduling, moving data, spilling to disk and doing lost work again are Dask's; the graph is ours.
Its tasks are the links of chains: a few updates each, so that a worker holds a few tiles for one
task, however long the chain. The client holds handles, vectors and no tile. Data come to workers
by tasks that load them, never by `scatter`: what a dead worker held can be computed again.

With a store every finished tile is a file, and a task is a whole chain that reads what it needs:
nothing is held in memory, and a job that died altogether goes on where it was.
"""

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._digest import digest
from nngp._files import usable_folder
from nngp.gram import Tile
from nngp.gram.cluster.matrix import ClusterBackend
from nngp.gram.cluster.task import Task, own_copy
from nngp.linsolve.engines.dask.client import (
    Listener,
    check_open,
    connected,
    known_workers,
    patient,
    result,
)
from nngp.linsolve.engines.dask.tasks import Link, call, copied, link, whole
from nngp.linsolve.engines.dask.tile_store import Token, find_tile, write_tile
from nngp.linsolve.engines.engine import Engine, EngineRun, Handle, TileChain, TileFunction
from nngp.linsolve.tiling import even_size

TILE, SMALLEST_TILE, ALIGNED = 4096, 128, 16
FEWEST = 8  # tiles down the matrix, at least: with fewer workers would wait for each other
GROUP = 4  # updates in one task
AHEAD = 4  # columns of the factor that are begun before one is waited for
TEST_ROWS = 1024  # test points in one block
MEMORY_SHARE = (
    0.3  # of a worker's memory that one task may take; the rest is for what waits beside it
)
PIECE = 2**22  # bytes of an array that travel with one task: schedulers dislike more
PRODUCT = 768  # rows of the matrices whose product measures a worker


class Remote:
    """A tile on the cluster, or the promise of one; `future` may be a token of the store."""

    __slots__ = ("engine", "future", "name")

    def __init__(self, engine: "DaskEngine", future: Any, name: str) -> None:
        self.engine, self.future, self.name = engine, future, name

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self.engine.fetch(self), dtype=dtype)


class DaskEngine(Engine):
    """Tiles on the workers of a Dask cluster.

    Parameters
    ----------
    client_or_address : distributed.Client, a cluster object, or str
        The scheduler to work with, such as "tcp://head:8786".
    tile : int
        Rows of a tile, at most (up to the next multiple of 16). A task holds about ten tiles of
        8 tile² bytes, and that must be well below a worker's memory; it is refused otherwise.
    store : path, optional
        A folder that all workers see, where finished tiles are kept as files. A job whose client,
        scheduler and workers all died goes on from there when it is started again. Tiles of other
        data, kernels, noise, tile sizes or precision are never mistaken for those of this job.
    dtype : {"float64", "float32"}
        Of the tiles. Single precision halves memory and traffic; the report's residual tells what
        it costs.
    patience : float
        Seconds to go on without any worker before giving up.

    Notes
    -----
    With a scheduler and workers started by `dask scheduler` and `dask worker` elsewhere, give the
    scheduler's address and the path of the data there, such as "/shared/X.npy", in place of X.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> from distributed import Client
    >>> X, net = np.linspace(-1, 1, 50)[:, None], nngp.Architecture(2, "erf")
    >>> with Client(processes=False, dashboard_address=":0") as client:  # threads
    ...     engine = nngp.DaskEngine(client, tile=16)
    ...     posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4, engine=engine)
    ...     mean = posterior.mean([[0.5]])
    >>> mean.round(1).tolist(), posterior.report.cluster["workers"]
    ([1.0], 1)
    """

    name = "dask"
    spills = True

    def __init__(
        self,
        client_or_address: Any,
        tile: int = TILE,
        store: Any = None,
        *,
        dtype: Any = "float64",
        patience: float = 60.0,
    ) -> None:
        if not isinstance(tile, int | np.integer) or isinstance(tile, bool) or tile < 1:
            raise ValueError(f"tile must be a whole number of at least 1, got {tile!r}")
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float64, np.float32):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
        if not isinstance(patience, int | float) or not patience >= 0:
            raise ValueError(f"patience must be a number of seconds, got {patience!r}")
        self.tile, self.patience = int(tile), float(patience)
        self.store = None if store is None else _folder(store)
        self.has_store = self.store is not None
        self.client = connected(client_or_address)
        self._own = self.client is not client_or_address
        self._is_shared = False
        self.listener = Listener(self.client)

    def close(self) -> None:
        """End the connection, if it was made here."""
        self.listener.close()
        if self._own:
            with suppress(TimeoutError):  # a scheduler that does not answer needs no farewell
                self.client.close()

    def __enter__(self) -> "DaskEngine":
        check_open(self.client)
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __copy__(self) -> "DaskEngine":
        """Another engine with this connection. Without it copies would be made as from a pickle,
        with a connection each, which nobody ends and whose tasks may overtake those of this one."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__, _own=False)
        return out

    def __deepcopy__(self, memo: Any) -> "DaskEngine":
        return self  # a connection, which copies of an estimator share

    def __reduce__(self) -> Any:
        address = self.client.scheduler.address
        return _rebuilt, (address, self.tile, self.store, str(self.dtype), self.patience)

    def __repr__(self) -> str:
        where = self.client.scheduler.address if self.client.scheduler else "closed"
        kept = "" if self.store is None else f", store={self.store!r}"
        return f"DaskEngine({where!r}, tile={self.tile}{kept})"

    def single(self) -> "DaskEngine":
        """The same workers with tiles in single precision."""
        out = copy(self)
        out.dtype = np.dtype(np.float32)
        return out

    def workers(self) -> list[dict[str, Any]]:
        """The scheduler's records of its workers."""
        return list(known_workers(self.client).values())

    @property
    def kernels(self) -> ClusterBackend:
        return ClusterBackend(self)

    @property
    def width(self) -> int:
        return max(1, sum(worker["nthreads"] for worker in self.workers()))

    def tile_size(self, n: int) -> int:
        """Even tiles, at least eight down the matrix. Not of the number of workers: a store is to
        be of use on another cluster as well."""
        return even_size(n, min(self.tile, max(SMALLEST_TILE, n // FEWEST)), ALIGNED)

    def rows_at_a_time(self, n: int) -> int:
        return TEST_ROWS

    def free_memory(self) -> int | None:
        """Bytes that workers hold before they spill; unknown while there are no workers."""
        limits = [worker["memory_limit"] for worker in self.workers()]
        return int(0.6 * sum(limits)) if limits and all(limits) else None

    def task_room(self) -> float:
        """Bytes that one task may take on any worker."""
        return min((_room(worker) for worker in self.workers()), default=np.inf)

    def check_room(self, n: int, d: int) -> None:
        """Raise MemoryError if a task on these tiles does not fit the smallest worker."""
        smallest = min(self.workers(), key=_room, default=None)
        rows = self.tile_size(n)
        if smallest is None or self._task_bytes(rows, d) <= _room(smallest):
            return
        fitting = rows // ALIGNED * ALIGNED
        while fitting > ALIGNED and self._task_bytes(fitting, d) > _room(smallest):
            fitting -= ALIGNED
        raise MemoryError(
            f"a task on tiles of {rows} rows takes {self._task_bytes(rows, d) / 1e6:.0f} MB "
            f"and a worker of {smallest['memory_limit'] / 1e6:.0f} MB with "
            f"{smallest['nthreads']} thread(s) has room for {_room(smallest) / 1e6:.0f} MB; use "
            f"tile={fitting}, or workers with more memory"
        )

    def _task_bytes(self, rows: int, d: int) -> float:
        """Of one task: its tiles, the kernel's workspace, two blocks of inputs."""
        tiles = 3 if self.store is not None else 2 * GROUP + 2
        return tiles * rows * rows * self.dtype.itemsize + 8.0 * rows * (rows + 2 * d)

    def facts(self) -> dict[str, int]:
        heard, workers = self.listener, self.workers()
        known = [worker.get("metrics", {}) for worker in workers]
        return {
            "workers": len(workers),
            "threads": self.width,
            "chains": len(heard.done),
            "computed_again": sum(heard.done.values()) - len(heard.done),
            "found_in_store": len(heard.found),
            "spilled_bytes": sum(m.get("spilled_bytes", {}).get("disk", 0) for m in known),
            "largest_worker_bytes": max((m.get("memory", 0) for m in known), default=0),
        }

    def run(self) -> "DaskRun":
        return DaskRun(self)

    def submit(self, task: Task, *, kind: str = "rows", keep: bool = False) -> Remote:
        """Compute a task on a worker; with `keep` and a store, through a file."""
        if keep and self.store is not None:
            token = find_tile(self.store, task.name)
            if token is None:
                token = write_tile(self.store, task.name, call(task.function, task.arguments))
            self._check_shared(token)
            return Remote(self, token, task.name)
        arguments = [_plain(self._in_pieces(argument)) for argument in task.arguments]
        return Remote(self, self.send(kind, call, task.function, arguments), task.name)

    def _check_shared(self, token: Token) -> None:
        """Once: a file that is written here must be there for the workers."""
        if self._is_shared:
            return
        seen = self.send("seen", find_tile, token.folder, token.name)
        if result(self.client, seen, self.patience) is None:
            raise ValueError(
                f"the workers do not see what this machine writes to store={self.store!r}; use a "
                "folder that all share, or save X where they can read it and pass the path"
            )
        self._is_shared = True

    def _in_pieces(self, argument: Any) -> Any:
        """A large array as a list of its parts, each of which travels with a task of its own."""
        if not isinstance(argument, np.ndarray) or argument.nbytes <= PIECE or len(argument) < 2:
            return argument
        count = min(len(argument), -(-argument.nbytes // PIECE))
        return [self.submit(_copy_task(part)) for part in np.array_split(argument, count)]

    def compute(self, delayed: Any) -> Remote:
        """Compute a delayed object of Dask's own."""
        check_open(self.client)
        return Remote(self, self.client.compute(delayed), "")

    def send(self, kind: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Submit a function call to the scheduler under a unique key."""
        check_open(self.client)
        key = f"nngp-{kind}-{secrets.token_hex(8)}"
        return self.client.submit(function, *arguments, key=key, pure=False)

    def wait(self, handle: Remote) -> Remote:
        """Wait until it is computed; raises what its task raised."""
        if not isinstance(handle.future, Token):
            patient(self.client, handle.future, self.patience)
        return handle

    def fetch(self, handle: Remote) -> Any:
        """Its value, on the client."""
        found = handle.future
        if not isinstance(found, Token):
            found = result(self.client, found, self.patience)
        if isinstance(found, Token):  # of a file that workers see, and perhaps not this machine
            found = result(self.client, self.send("read", call, whole, [found]), self.patience)
        return found


class DaskRun(EngineRun):
    """One job on the cluster; what it has begun is let go of if it fails."""

    ahead = AHEAD

    def __init__(self, engine: DaskEngine) -> None:
        self.engine, self.width = engine, engine.width
        self._begun: WeakSet[Any] = WeakSet()  # to hold them would keep their tiles

    def __enter__(self) -> "DaskRun":
        return self

    def close(self, error: BaseException | None) -> None:
        if error is None:
            return
        # Not by cancelling: of keys that depend on each other that can cost the connection.
        for future in list(self._begun):
            if future.status == "pending":
                future.release()

    def begin(self, chain: TileChain) -> Handle:
        start = chain.first()
        if isinstance(start, Remote):
            start = Task(copied, (start,), start.name)
        engine, pairs = self.engine, list(chain.pairs)
        name = digest("chain", start, pairs, chain.last, chain.transposed, engine.dtype.str)
        *before, final = self._groups(start, pairs, chain.last)
        potrf, topic = chain.ends_in_potrf, engine.listener.topic
        how = Link("", topic, engine.dtype.str, chain.transposed, lower=potrf)
        for group in before:
            start = Task(copied, (self._send("update", how, start, group),), name)
        if chain.then is None:  # it has a name, and may be kept
            how = how._replace(name=name, store=(engine.store or "") if chain.keep else "")
        how, last = how._replace(potrf=potrf), None if potrf else chain.last
        sent = self._send("chain", how, start, final, last, chain.then, chain.beside)
        return Remote(engine, sent.future, name if chain.then is None else digest(sent.future.key))

    def _groups(self, start: Task, pairs: list[Any], last: Any) -> list[list[Any]]:
        """The updates of one task after the other. Where tiles are files one task does them all, as
        it reads them one by one."""
        if self.engine.store is not None:
            return [pairs]
        groups = [pairs[k : k + GROUP] for k in range(0, len(pairs), GROUP)] or [[]]
        if start.heavy and isinstance(last, Remote):
            groups.append([])  # all else need not wait for the diagonal tile
        return groups

    def _send(
        self,
        kind: str,
        how: Link,
        start: Task,
        group: list[Any],
        last: Handle | None = None,
        then: TileFunction | None = None,
        beside: Sequence[Handle] = (),
    ) -> Remote:
        """One task of a chain."""
        future = self.engine.send(
            kind,
            link,
            how,
            start.function,
            [_plain(argument) for argument in start.arguments],
            [_plain(a) for a, _ in group],
            [_plain(b) for _, b in group],
            _plain(last),
            then,
            [_plain(self._submitted(handle)) for handle in beside],
        )
        self._begun.add(future)
        return Remote(self.engine, future, how.name)

    def apply(self, function: TileFunction, *handles: Handle) -> Handle:
        arguments = [_plain(self._submitted(handle)) for handle in handles]
        future = self.engine.send("apply", call, function, arguments)
        self._begun.add(future)
        return Remote(self.engine, future, digest(future.key))

    def wait(self, handle: Handle) -> Handle:
        there = self._submitted(handle)
        return self.engine.wait(there) if isinstance(there, Remote) else there

    def fetch(self, handle: Handle) -> Any:
        there = self._submitted(handle)
        return self.engine.fetch(there) if isinstance(there, Remote) else np.asarray(there)

    def _submitted(self, handle: Handle) -> Handle:
        """The handle of a task that has not been submitted yet; any other handle as it is."""
        return self.engine.submit(handle, kind="put") if isinstance(handle, Task) else handle

    def put(self, array: Array) -> Tile:
        return self.engine.submit(
            _copy_task(np.ascontiguousarray(array, self.engine.dtype)), kind="put"
        )

    def zeros(self, rows: int, columns: int) -> Tile:
        shape = int(rows), int(columns)
        return Task(np.zeros, (shape,), digest("zeros", shape))

    def copy(self, handle: Handle) -> Tile:
        return Task(copied, (handle,), handle.name)


def _room(worker: dict[str, Any]) -> float:
    """Bytes that one task may take there."""
    limit, threads = worker["memory_limit"], worker["nthreads"]
    return MEMORY_SHARE * limit / threads if limit else np.inf


def _copy_task(array: Any) -> Task:
    return Task(own_copy, (array,), digest("given", array))


def _plain(argument: Any) -> Any:
    """As Dask wants it: a future, or a value, also inside a list."""
    if isinstance(argument, list):
        return [_plain(item) for item in argument]
    return argument.future if isinstance(argument, Remote) else argument


def _folder(store: Any) -> str:
    if not isinstance(store, str | os.PathLike) or not str(store):
        raise ValueError(f"store must be the path of a folder, got {store!r}")
    return str(usable_folder(store, "store"))


def _rebuilt(
    address: str, tile: int, store: str | None, dtype: str, patience: float
) -> "DaskEngine":
    return DaskEngine(address, tile, store, dtype=dtype, patience=patience)
