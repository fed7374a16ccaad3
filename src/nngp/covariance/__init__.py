"""Stage 2, one layer: F_phi(q1, q2, c) = E[phi(u) phi(v)].

u and v are Gaussian with variances q1, q2 and correlation c, the pre-activations of one unit for
two inputs. The network's recursion (eq. 5) applies this function once per layer.

Method                                                                    file
- closed forms: relu and its relatives, erf, gelu, sin, ..., scaled       closed_form, form,
  ones and polynomials; a user's kernel map                               homogeneous_forms,
                                                                          smooth_forms,
                                                                          composed_forms,
                                                                          kernel_map
- any other activation, as polynomials on panels between its kinks        resolve, survey
  - by Mehler's series, one-dimensional integrals only                    hermite
  - at large variances, where phi is straight on both sides               asymptotic
  - by quadrature in rotated coordinates, where neither converges         quadrature, pair
  - by whichever meets the tolerance, with its error                      numeric
- deficits F(1) - F(c) at one variance, which the curve composes          layer, fitted_layer
- the same of phi' instead of phi, for the tangent kernel                 derivative
- the paper's table and bilinear interpolation                            lookup
- differentiable functions for JAX                                        differentiable
`select` chooses among them for `layer_covariance` and `layer_derivatives`.
"""

from nngp.covariance.closed_form import closed_form
from nngp.covariance.derivative import at_zero, derivative_layer, derivative_of
from nngp.covariance.form import ClosedForm
from nngp.covariance.layer import Layer, both_sides, layer_at
from nngp.covariance.lookup import LookupTable, default_table
from nngp.covariance.numeric import (
    Expansions,
    beyond_series,
    derivatives,
    expansion_terms,
    second_moment,
)
from nngp.covariance.select import CovarianceDerivatives, layer_covariance, layer_derivatives

__all__ = [
    "ClosedForm",
    "CovarianceDerivatives",
    "Expansions",
    "Layer",
    "LookupTable",
    "at_zero",
    "beyond_series",
    "both_sides",
    "closed_form",
    "default_table",
    "derivative_layer",
    "derivative_of",
    "derivatives",
    "expansion_terms",
    "layer_at",
    "layer_covariance",
    "layer_derivatives",
    "second_moment",
]
