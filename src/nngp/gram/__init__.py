"""Stage 4, the matrix: from inputs to blocks of K.

Inputs of equal norm read the compiled curve, one look-up per pair at any depth
(`host/matrix.py`). Other inputs run the recursion for (q, q', c) in every pair
(`host/pairwise.py`). `plan.py` decides, in one place, and `plan_kernel` tells. `kernel_matrix.py`
is the seam to the stages that follow: blocks of K on any engine, made by one of three backends
(`host/`, `device/`, `cluster/`).
"""

from nngp.gram.activation_parameters import scale_in_parameters, with_parameters
from nngp.gram.host.backend import HostBackend
from nngp.gram.host.derivatives import kernel_derivatives
from nngp.gram.host.images import image_bytes
from nngp.gram.host.input_gradient import InputGradient
from nngp.gram.host.lower_triangle import (
    EvaluationArrays,
    KernelGradient,
    LowerTriangle,
    has_lower_triangle,
)
from nngp.gram.host.pairwise import table_bytes
from nngp.gram.inputs import Inputs, InputSet, as_inputs, common_var, normalize
from nngp.gram.jax_kernel import jax_kernel
from nngp.gram.kernel import (
    WARN_ABOVE,
    KernelPair,
    check_network,
    inputs_diag,
    kernel,
    kernel_and_tangent,
    kernel_diag,
    kernel_scale,
    kernels,
    plan_kernel,
    warn_if_inexact,
)
from nngp.gram.kernel_matrix import (
    Gradient,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    Shift,
    Tile,
    shift_of,
)
from nngp.gram.plan import KernelPlan
from nngp.gram.sensitivities import scale_derivatives
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

__all__ = [
    "TRIVIAL_SPLIT",
    "WARN_ABOVE",
    "EvaluationArrays",
    "Gradient",
    "GradientSums",
    "HostBackend",
    "InputGradient",
    "InputSet",
    "Inputs",
    "KernelBackend",
    "KernelGradient",
    "KernelMatrix",
    "KernelPair",
    "KernelPlan",
    "KernelSplit",
    "LowerTriangle",
    "Shift",
    "Tile",
    "as_inputs",
    "check_network",
    "common_var",
    "has_lower_triangle",
    "image_bytes",
    "inputs_diag",
    "jax_kernel",
    "kernel",
    "kernel_and_tangent",
    "kernel_derivatives",
    "kernel_diag",
    "kernel_scale",
    "kernels",
    "normalize",
    "plan_kernel",
    "scale_derivatives",
    "scale_in_parameters",
    "shift_of",
    "table_bytes",
    "warn_if_inexact",
    "with_parameters",
]
