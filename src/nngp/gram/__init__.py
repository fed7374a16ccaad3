"""Stage 4, the matrix: from inputs to blocks of K.

Inputs of equal norm read the compiled curve, one look-up per pair at any depth (`equal_norm`).
Other inputs run the recursion for (q, q', c) in every pair (`pairwise`). `kernel` decides, in one
place, and `plan_kernel` tells. `tiles` does the filling for both.
"""

from nngp.gram.dispatch import cosine_blocks, device_can, kernel_blocks, kernel_gradient
from nngp.gram.host.blocks import fits
from nngp.gram.host.gradient import kernel_derivatives, scale_derivatives
from nngp.gram.inputs import Inputs, as_inputs, normalize
from nngp.gram.jax_kernel import jax_kernel
from nngp.gram.kernel import (
    WARN_ABOVE,
    check_architecture,
    inputs_diag,
    kernel,
    kernel_diag,
    kernel_scale,
    plan_kernel,
    warn_if_inexact,
)
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

__all__ = [
    "TRIVIAL_SPLIT",
    "WARN_ABOVE",
    "Inputs",
    "KernelPlan",
    "KernelSplit",
    "as_inputs",
    "check_architecture",
    "cosine_blocks",
    "device_can",
    "fits",
    "inputs_diag",
    "jax_kernel",
    "kernel",
    "kernel_blocks",
    "kernel_derivatives",
    "kernel_diag",
    "kernel_gradient",
    "kernel_scale",
    "normalize",
    "plan_kernel",
    "scale_derivatives",
    "warn_if_inexact",
]
