"""Stage 5, the factor: K + noise = L Lᵀ by tiles, the same algorithm wherever tiles live.

Cut the matrix into b x b tiles and keep the lower ones. Tile (i, j) of the factor is one *chain*:

    C = K_ij                      first link: computed from the data, never stored
    C = C - Σ_k L_ik L_jkᵀ        updates, k < j
    L_ij = chol(C)  or  C L_jj⁻ᵀ  last link: potrf on the diagonal, trsm below it

so K never exists beside its factor, and half of n² numbers are all that is held. Everything else
that inference needs is chains of the same kind. Rows of test points appended below the matrix give
L⁻¹K*, that is the variance; the targets as rows give L⁻¹Y; rows of the identity give the inverse;
rows of new data extend the factor (`cholesky/factor.py`). An engine stores tiles and computes
chains (`engines/`): threads with BLAS in place (`cpu.py`), JAX (`gpu.py`), the workers of a cluster
(`dask/`). The noise is raised when a factor fails; `cholesky/memory_forecast.py` forecasts memory.
Nothing here knows what a network is: a matrix is a `KernelMatrix`.

Where no factor fits, `cg/iteration.py` solves by preconditioned conjugate gradients
(`cg/gradients.py`): `cg/product.py` multiplies a matrix by vectors from lower tiles, kept or
recomputed; `cg/nystrom.py` and `cg/single.py` precondition; `cg/cg_plan.py` has the options and
chooses between them; `cg/checkpoint.py` lets a long solve resume after an interruption.
"""

from nngp._progress import Progress
from nngp.linsolve.cg.cg_plan import CG, CgPlan, forecast_cg, plan_cg
from nngp.linsolve.cg.checkpoint import Checkpoint
from nngp.linsolve.cg.iteration import Iteration
from nngp.linsolve.cg.nystrom import Landmarks
from nngp.linsolve.cholesky.factor import (
    LIMIT,
    Factor,
    backward,
    climb,
    factorise,
    forward,
    inverse_rows,
    merge_last,
    next_noise,
)
from nngp.linsolve.cholesky.memory_forecast import Forecast, forecast_factor
from nngp.linsolve.engines.choose import choose_engine, pick_engine
from nngp.linsolve.engines.cpu import CpuEngine
from nngp.linsolve.engines.engine import Engine, EngineRun

__all__ = [
    "CG",
    "LIMIT",
    "CgPlan",
    "Checkpoint",
    "CpuEngine",
    "Engine",
    "EngineRun",
    "Factor",
    "Forecast",
    "Iteration",
    "Landmarks",
    "Progress",
    "backward",
    "choose_engine",
    "climb",
    "factorise",
    "forecast_cg",
    "forecast_factor",
    "forward",
    "inverse_rows",
    "merge_last",
    "next_noise",
    "pick_engine",
    "plan_cg",
]
