"""Stage 2, one layer: F_phi(q1, q2, c) = E[phi(u) phi(v)].

u and v are Gaussian with variances q1, q2 and correlation c, the pre-activations of one unit for
two inputs. The network's recursion (eq. 5) applies this function once per layer.

How it is computed                                                        file
- in closed form for relu and its relatives, erf, gelu, sin, ...          closed_form
- else from the activation's panels: its kinks, scales and reach          resolve
  - by Mehler's series, one-dimensional integrals only                    hermite
  - by quadrature in rotated coordinates, where the series does not end   quadrature, pair
  - whichever meets the tolerance, with its error                         numeric
- as the curve wants it: deficits F(1) - F(c) at one variance             layer
- as the paper did it: a table and bilinear interpolation                 lookup
The choice is made in `select` and nowhere else.
"""

from nngp.covariance.closed_form import ClosedForm, closed_form
from nngp.covariance.layer import Layer, both_sides, layer_at
from nngp.covariance.lookup import LookupTable, default_table
from nngp.covariance.numeric import Expansions, by_quadrature, derivatives, second_moment
from nngp.covariance.select import CovarianceDerivatives, layer_covariance, layer_derivatives

__all__ = [
    "ClosedForm",
    "CovarianceDerivatives",
    "Expansions",
    "Layer",
    "LookupTable",
    "both_sides",
    "by_quadrature",
    "closed_form",
    "default_table",
    "derivatives",
    "layer_at",
    "layer_covariance",
    "layer_derivatives",
    "second_moment",
]
