"""Signal propagation: fixed points, phases and depth scales of any activation (paper, sec. 3.2).

Takes an activation and the two variances; gives fixed points, phases, the critical line and depth
scales. Works on one-dimensional moments of the activation, so it needs no data and no kernel; it
uses the parts of a numeric layer (`covariance.resolve`, `.hermite`, `.pair`) separately.

Subject                                                           file
- E[phi²], E[u phi phi'], E[phi'²] as functions of the variance   moments, moment_table
- their integration, and extrapolation beyond the table           moment_integrals, extrapolation
- fixed points of the variance                                    variance
- fixed points of the correlation                                 correlation, deficits
- slopes, depth scales and phase at the fixed point               propagation_state
- the same as public functions                                    propagation, validation
- the critical line                                               criticality
- all of it on a grid                                             diagram
- repeated parts: residual blocks, layer norm                     blocks, depth_laws
- diagnosis of one network and its data                           diagnosis, output_geometry,
                                                                  recommendation, network_diagnosis
"""

from nngp.regimes.blocks import BlockPropagation, propagate
from nngp.regimes.criticality import EdgeOfChaos, critical_line, edge_of_chaos
from nngp.regimes.depth_laws import DepthLaw
from nngp.regimes.diagnosis import Diagnosis, diagnose, trainable_depth
from nngp.regimes.diagram import PhaseDiagram, phase_diagram
from nngp.regimes.network_diagnosis import NetworkDiagnosis
from nngp.regimes.propagation import (
    DepthScale,
    chi,
    correlation_fixed_point,
    depth_scale,
    phase,
    variance_fixed_point,
)

__all__ = [
    "BlockPropagation",
    "DepthLaw",
    "DepthScale",
    "Diagnosis",
    "EdgeOfChaos",
    "NetworkDiagnosis",
    "PhaseDiagram",
    "chi",
    "correlation_fixed_point",
    "critical_line",
    "depth_scale",
    "diagnose",
    "edge_of_chaos",
    "phase",
    "phase_diagram",
    "propagate",
    "trainable_depth",
    "variance_fixed_point",
]
