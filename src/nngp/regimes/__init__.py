"""Signal propagation: what depth does to a network, for any activation (paper, sec. 3.2).

Takes an activation and the two variances; gives fixed points, phases, the critical line and depth
scales. Works on one-dimensional moments of the activation, so it needs no data and no kernel; it
does need the parts of a numeric layer (`covariance.resolve`, `.hermite`, `.pair`) one by one.

What                                                                      file
- E[phi²], E[u phi phi'], E[phi'²] as functions of the variance           moments, table
- one interval of that table, and how it goes on beyond its ends          integrals, trends
- where the variance flows                                                variance
- where correlations flow                                                 correlation, deficits
- how fast, and the name of it                                            state
- the same as public functions                                            propagation
- the critical line                                                       line
- all of it on a grid                                                     diagram
- what it means for one network and its data                              diagnosis, remains, advice
"""

from nngp.regimes.diagnosis import Diagnosis, diagnose, trainable_depth
from nngp.regimes.diagram import PhaseDiagram, phase_diagram
from nngp.regimes.line import EdgeOfChaos, critical_line, edge_of_chaos
from nngp.regimes.propagation import (
    DepthScale,
    chi,
    correlation_fixed_point,
    depth_scale,
    phase,
    variance_fixed_point,
)

__all__ = [
    "DepthScale",
    "Diagnosis",
    "EdgeOfChaos",
    "PhaseDiagram",
    "chi",
    "correlation_fixed_point",
    "critical_line",
    "depth_scale",
    "diagnose",
    "edge_of_chaos",
    "phase",
    "phase_diagram",
    "trainable_depth",
    "variance_fixed_point",
]
