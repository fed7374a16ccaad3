"""One layer, and all layers, as functions of the cosine: covariances and compiled curves.

`nngp.kernel` uses these; here they are for those who study them.
"""

from nngp.covariance import LookupTable, layer_covariance, layer_derivatives
from nngp.curve import AngularCurve, compile_curve, compile_curves

__all__ = [
    "AngularCurve",
    "LookupTable",
    "compile_curve",
    "compile_curves",
    "layer_covariance",
    "layer_derivatives",
]
