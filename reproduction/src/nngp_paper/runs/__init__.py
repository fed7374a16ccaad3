"""Experiments as a list of runs in one SQLite file.

A run is named by its full configuration (`key.py`), so it is declared once however often a program
is started, and done once however many processes share the work:

    with RunStore("runs.db") as store:
        keys = store.declare("width", [{"width": width} for width in (64, 128, 256, 512)])
        while run := store.claim(keys):
            began = time.perf_counter()
            result = train(**run.config)
            store.finish(run.key, result, seconds=time.perf_counter() - began)

`claim` gives each run to one process. If that process dies, its claimed runs are given to others
(`owner.py`), and nothing else is lost. Of two results for one run the first is kept, and a result
replaces a failure. `schema.py` has the tables and their versions, `database.py` the connection
(threads, forks, transactions), `queries.py` the SQL, `store.py` the class `RunStore`, `export.py`
CSV and Parquet files, `packed.py` compressed stores, `commit.py` the commit of the code, `study.py`
the loop above for a list of runs on this machine or on a cluster.
"""

from nngp_paper.runs.export import (
    as_row as as_row,
    column_names as column_names,
    export_rows as export_rows,
    export_runs as export_runs,
)
from nngp_paper.runs.key import key_of as key_of
from nngp_paper.runs.packed import merged as merged, pack as pack, unpacked as unpacked
from nngp_paper.runs.run import STATUSES as STATUSES, Run as Run, flat as flat
from nngp_paper.runs.store import POLL as POLL, RunStore as RunStore
