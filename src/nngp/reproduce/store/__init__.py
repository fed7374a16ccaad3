"""Experiments as a list of runs in one SQLite file.

A run is named by its full configuration (`key.py`), so it is declared once however often a program
is started, and done once however many processes share the work:

    with RunStore("runs.db") as store:
        keys = store.declare("width", [{"width": width} for width in (64, 128, 256, 512)])
        while run := store.claim(keys):
            began = time.perf_counter()
            result = train(**run.config)
            store.finish(run.key, result, seconds=time.perf_counter() - began)

`claim` hands each run to one taker. A process that dies loses the runs it had claimed and nothing
else: they are handed out again (`owner.py`). Of two results for one run the first is kept, and a
result replaces a failure. `schema.py` has the tables and their versions, `database.py` the
connection (threads, forks, transactions), `export.py` the way to CSV and Parquet.
"""

from nngp.reproduce.store.export import (
    as_row as as_row,
    column_names as column_names,
    export_rows as export_rows,
    export_runs as export_runs,
)
from nngp.reproduce.store.faults import StoreFileError as StoreFileError
from nngp.reproduce.store.flat import flat as flat
from nngp.reproduce.store.key import key_of as key_of
from nngp.reproduce.store.packed import pack as pack, unpacked as unpacked
from nngp.reproduce.store.run import STATUSES as STATUSES, Run as Run
from nngp.reproduce.store.store import RunStore as RunStore
