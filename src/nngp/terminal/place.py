"""Where a command computes: on this machine, or with the workers of a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nngp.terminal.speech import UsageError


@contextmanager
def engine_at(
    engine: str, cluster: str | None, tile: int | None = None, store: Path | None = None
) -> Iterator[Any]:
    """The engine that the options name; a connection to a cluster is closed in the end."""
    if cluster is None:
        if tile is not None or store is not None:
            raise UsageError("--tile and --tile-store are for work on a cluster; add --cluster")
        yield engine
        return
    if engine == "gpu":
        raise UsageError("--cluster and --engine gpu contradict each other; leave one of them out")
    from nngp.linsolve.engines.dask.engine import TILE, DaskEngine

    with DaskEngine(cluster, TILE if tile is None else tile, store) as found:
        yield found
