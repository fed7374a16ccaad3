"""Stage 3, all layers: the kernel of equal-norm inputs as one function of their cosine.

With x·x/d the same for all inputs, every pair has the same variance q_l in layer l, so the whole
recursion of eq. 5 is a function of the cosine alone. It is composed once, at some thousand nodes,
and then interpolated for every pair: any depth at the cost of one layer.
"""

from nngp.curve.angular_curve import AngularCurve
from nngp.curve.compile import compile_curve, compile_curves, curve_at
from nngp.curve.deficits import SMALLEST, negative_variance, node_states, output_variance
from nngp.curve.octaves import NEAR, FastTable, Profile, Workspace

__all__ = [
    "NEAR",
    "SMALLEST",
    "AngularCurve",
    "FastTable",
    "Profile",
    "Workspace",
    "compile_curve",
    "compile_curves",
    "curve_at",
    "negative_variance",
    "node_states",
    "output_variance",
]
