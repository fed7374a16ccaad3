"""Engine of a command: this machine, or the workers of a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager

from nngp.linsolve import Engine, choose_engine
from nngp.terminal.options import ComputeOptions
from nngp.terminal.output import UsageError, usage_errors


@contextmanager
def engine_of(options: ComputeOptions) -> Iterator[str | Engine]:
    """The engine that the options name; a connection to a cluster is closed in the end."""
    if options.cluster is None:
        if options.tile is not None or options.tile_store is not None:
            raise UsageError("--tile and --tile-store are for work on a cluster; add --cluster")
        with usage_errors():
            choose_engine(options.engine, 0)
        yield options.engine
        return
    if options.engine == "gpu":
        raise UsageError("--cluster and --engine gpu contradict each other; leave one of them out")
    from nngp.linsolve.engines.dask.dask_engine import TILE, DaskEngine

    tile = TILE if options.tile is None else options.tile
    with DaskEngine(options.cluster, tile, options.tile_store) as engine:
        yield engine
