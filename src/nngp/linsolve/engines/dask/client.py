"""The client's side of a cluster: connecting, waiting without hanging, collecting reports."""

import secrets
import time
from contextlib import suppress
from copy import copy
from functools import cache
from inspect import signature
from typing import Any, NamedTuple

from nngp.errors import ClusterError

POLL = 2.0  # seconds between looks at the cluster while waiting
CONNECT = 10.0  # seconds
ANSWER = 10.0  # seconds that a scheduler has for a short answer
SCHEMES = ("tcp", "tls", "ucx", "ucxx", "ws", "wss")  # of addresses that have a port


class Words(NamedTuple):
    """Parts of error messages about interrupted work: the loss, what is kept, and how to need less
    memory."""

    lost: str
    kept: str
    smaller: str


TILES = Words(
    lost=", and with it all that was not in a store",
    kept="; with store=FOLDER what is done is kept",
    smaller="use a smaller tile or larger workers",
)


def connected(client_or_address: Any) -> Any:
    """A client of that scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a cluster needs Dask; install it with: pip install 'nngp[distributed]'"
        ) from None
    if isinstance(client_or_address, Client):
        if client_or_address.status != "running":
            raise ClusterError(
                f"this client is {client_or_address.status}; connect a new one, and keep it open"
            )
        if client_or_address.asynchronous:
            raise ClusterError("this client is asynchronous; use Client(..., asynchronous=False)")
        return client_or_address
    address = getattr(client_or_address, "scheduler_address", client_or_address)
    if not isinstance(address, str):
        raise TypeError(
            "a Dask engine needs a Client, a cluster or an address such as 'tcp://host:8786', got "
            f"{type(client_or_address).__name__}"
        )
    if isinstance(client_or_address, str):
        _check_address(address)
    try:  # a cluster has more than an address: certificates, for one
        return Client(client_or_address, timeout=CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"there is no Dask scheduler at {address} ({type(error).__name__}); start one with "
            "'dask scheduler' and workers with 'dask worker', or check the address"
        ) from None


def _check_address(address: str) -> None:
    """Raise ClusterError for an address that Dask would fail at only after it has begun a client,
    which it cannot end then."""
    scheme, _, rest = address.rpartition("://")
    host, _, port = rest.rpartition(":")
    named = (scheme or "tcp") in SCHEMES and host and port.isdigit()
    if not named and scheme != "inproc":
        raise ClusterError(
            f"{address!r} is no address of a scheduler; it looks like 'tcp://host:8786'"
        )


def check_open(client: Any) -> None:
    """Raise ClusterError for a client that was closed, or lost its scheduler for good."""
    if client.status not in ("running", "connecting"):
        raise ClusterError(
            f"the connection to the cluster is {client.status}; make a new DaskEngine, and use it "
            "while it and its cluster are open"
        )


def known_workers(client: Any) -> dict[str, Any]:
    """Workers by address, as the scheduler knows them now; none while there is no scheduler, or one
    that does not answer. Not by `scheduler_info`, which waits without a limit, and which shows what
    it last heard of a scheduler that is gone."""
    check_open(client)
    if client.status != "running":
        return {}
    try:
        told = client.sync(client.scheduler.identity, **_everyone(), callback_timeout=ANSWER)
    except OSError:  # of which TimeoutError is one
        return {}
    except (AttributeError, RuntimeError):  # of a client that is closed meanwhile
        check_open(client)
        return {}
    found: dict[str, Any] = told["workers"]
    return found


@cache
def _everyone() -> dict[str, int]:
    """How to ask for all workers: newer schedulers tell of some only, older ones of all."""
    from distributed import Scheduler

    newer = "n_workers" in signature(Scheduler.identity).parameters
    return {"n_workers": -1} if newer else {}


class Listener:
    """Collects the facts that tasks report while they run."""

    def __init__(self, client: Any) -> None:
        self.topic = f"nngp-{secrets.token_hex(6)}"
        self.done: dict[str, int] = {}  # how often each chain was computed
        self.found: set[str] = set()  # in the store
        self.pids: set[int] = set()
        self.nearest: dict[str, float] = {}  # of each kernel: its smallest 1 - |c|, if below 2^-16
        self._client = client
        client.subscribe_topic(self.topic, self._hear)

    def begin(self) -> None:
        """Forget the facts of an earlier job."""
        for heard in (self.done, self.found, self.pids, self.nearest):
            heard.clear()

    def close(self) -> None:
        """Stop listening."""
        with suppress(Exception):  # the connection may be gone
            self._client.unsubscribe_topic(self.topic)

    def _hear(self, event: Any) -> None:
        facts = event[1]
        if "done" in facts:
            self.done[facts["done"]] = self.done.get(facts["done"], 0) + 1
            self.pids.add(facts["pid"])
        if "found" in facts:
            self.found.add(facts["found"])
        if "kernel" in facts:
            before = self.nearest.get(facts["kernel"], 1.0)
            self.nearest[facts["kernel"]] = min(before, facts["nearest"])


def patient(client: Any, future: Any, patience: float, words: Words = TILES) -> None:
    """Wait for a future, looking after the cluster meanwhile; raise what its task raised."""
    watch = Watch(client, patience, words)
    while not future.done():
        try:
            future.exception(timeout=POLL)
        except TimeoutError:
            watch.look()
        except Exception as error:
            raise translated(error, words) from None
    check_ended(future, words)


def check_ended(future: Any, words: Words = TILES) -> None:
    """Raise what the task of a future that has ended raised, or that it was lost."""
    if future.status == "error":
        try:
            error = future.exception(timeout=ANSWER)
        except TimeoutError as late:  # the client is closed meanwhile
            raise translated(late, words) from None
        raise translated(error, words, by_task=True)
    if future.status != "finished":
        raise ClusterError(
            f"what was computed is no longer there: the connection to the scheduler was lost"
            f"{words.lost}, or who held it let go of it; see that the cluster runs, and begin "
            f"again{words.kept}"
        )


def result(client: Any, future: Any, patience: float, words: Words = TILES) -> Any:
    """The result of a future, on the client."""
    watch, wait = Watch(client, patience, words), POLL
    while True:  # who held it may die between the end of its task and this
        patient(client, future, patience, words)
        try:
            return future.result(timeout=wait)
        except TimeoutError:
            watch.look()
            wait *= 2  # what takes long to travel begins again every time
        except Exception as error:
            raise translated(error, words) from None


class Watch:
    """Watches the cluster while a result is awaited; `look` raises when waiting is useless."""

    def __init__(self, client: Any, patience: float, words: Words = TILES) -> None:
        self._client, self._patience, self._words = client, patience, words
        self._alone: float | None = None  # since when there has been no worker

    def look(self) -> None:
        """Raise ClusterError if the scheduler is gone, or for too long has known no worker or not
        answered."""
        if self._client.status not in ("running", "connecting"):
            raise ClusterError(
                "the connection to the scheduler was lost; start the cluster and call again"
                + self._words.kept
            )
        now = time.monotonic()
        if known_workers(self._client):
            self._alone = None
        elif self._alone is None:
            self._alone = now
        elif now - self._alone > self._patience:
            raise ClusterError(
                f"the cluster has had no worker for {self._patience:.0f} seconds, or its scheduler "
                f"has not answered; see that they run, and call again{self._words.kept}"
            )


def translated(error: Any, words: Words = TILES, *, by_task: bool = False) -> BaseException:
    """An error of Dask's in one sentence; of others a copy. Dask keeps the one that a task raised
    as long as its future lives: raised again, its traceback would hold on to that future, and to
    all others on the way, for ever. A task may run out of time for reasons of its own, such as a
    slow disk."""
    from distributed import CancelledError
    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterError(
            "one task after another worker died: as often as the scheduler allows; if memory was "
            f"the reason {words.smaller}, otherwise raise "
            f"distributed.scheduler.allowed-failures{words.kept}"
        )
    lost = isinstance(error, CancelledError | CommClosedError)
    if lost or (isinstance(error, TimeoutError) and not by_task):
        return ClusterError(
            f"the cluster gave up ({type(error).__name__}): its scheduler or data were lost; start "
            f"it and call again{words.kept}"
        )
    if not isinstance(error, BaseException):
        return RuntimeError(str(error))
    error.__traceback__ = None
    return copy(error)
