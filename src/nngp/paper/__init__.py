"""The paper's tables and figures: one module for each, and what they share.

A module such as `fig05_prior.py` reads from top to bottom: the claim, the runs that it needs
(`study`), what is read from the store of runs (`read` gives a frozen dataclass), the sentence of
the report (`finding`), the drawing (`draw`), and `PART`, which puts these together. `parts.py`
lists the parts in the paper's order.

Shared: `scope.py` (data set, sizes, ranges), `experiment.py` and `part.py` (the two types behind
every module), `grids/`, `settings.py`, `critical.py`, `searches.py` (runs that several parts need),
`tables.py`, `heat_maps.py`, `uncertainty.py` (two parts each), `published/` (the paper's numbers),
`goals.py`. From parts to runs: `workloads.py` (what has to be computed), `cost.py` (how long it
takes), `on_dask.py` (on a cluster). The page about all of it: `report/`.

matplotlib is imported inside drawings only, JAX inside runs of finite networks only.
"""
