"""nngp_paper: "Deep Neural Networks as Gaussian Processes" (Lee et al., ICLR 2018), reproduced with
the library nngp. The command is `nngp-paper`.

A module such as `parts/fig05_prior.py` reads from top to bottom: the claim, the runs that it needs
(`study`), what is read from the store of runs (`read` gives a frozen dataclass), the sentence of
the report (`finding`), the drawing (`draw`), and `PART`, which puts these together. `parts` lists
the parts in the paper's order.

`scope.py` (data set, sizes, ranges), `experiment.py`, `part.py` and `verdict.py` have the types
behind every module; `grids/` and `shared/` what several parts need; `published/` the paper's
numbers. From parts to runs: `workloads.py` (what has to be computed), `on_dask.py` (on a cluster).
The page about all of it: `report/`.

Below the parts: `datasets/` (images, tables and the paper's splits), `runs/` (experiments in one
file), `finite/` (training and random search of finite networks), `plots/` (their figures).
Above them: `terminal/` (the command).

matplotlib is imported inside drawings only, JAX inside runs of finite networks only.
"""

__version__ = "0.2.0"
