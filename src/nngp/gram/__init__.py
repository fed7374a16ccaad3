"""Stage 4, the matrix: from inputs to blocks of K.

Inputs of equal norm read the compiled curve, one look-up per pair at any depth (`equal_norm`).
Other inputs run the recursion for (q, q', c) in every pair (`pairwise`). `kernel` decides, in one
place, and `plan_kernel` tells. `tiles` does the filling for both.
"""

from nngp.gram.inputs import as_inputs, normalize
from nngp.gram.jax_kernel import jax_kernel
from nngp.gram.kernel import KernelPlan, kernel, kernel_diag, plan_kernel

__all__ = [
    "KernelPlan",
    "as_inputs",
    "jax_kernel",
    "kernel",
    "kernel_diag",
    "normalize",
    "plan_kernel",
]
