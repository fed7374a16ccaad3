"""Experiments as a list of runs in one SQLite file.

A run is named by its full configuration (`key.py`), so it is declared once however often a program
is started, and done once however many processes share the work:

    with RunStore("runs.db") as store:
        keys = store.declare("width", [{"width": width} for width in (64, 128, 256, 512)])
        while run := store.claim(keys):
            began = time.perf_counter()
            result = train(**run.config)
            store.finish(run.key, result, seconds=time.perf_counter() - began)

`claim` gives each run to one process. If that process dies, its claimed runs are given to others,
and nothing else is lost. Of two results for one run the first is kept, and a result replaces a
failure. `store.py` has the class `RunStore`, `files.py` CSV files and compressed stores,
`versions.py` the versions and the commit of the code, `study.py` the loop above for a list of runs
on this machine or on a cluster.
"""

from nngp_paper.runs.files import (
    as_row as as_row,
    column_names as column_names,
    export_rows as export_rows,
    merged as merged,
    pack as pack,
    unpacked as unpacked,
)
from nngp_paper.runs.key import flat as flat, key_of as key_of
from nngp_paper.runs.store import (
    POLL as POLL,
    STATUSES as STATUSES,
    Run as Run,
    RunStore as RunStore,
)
