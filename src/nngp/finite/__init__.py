"""Networks of finite width beside the infinite one (extra `finite`): draw them, compare kernels.

import nngp

network = nngp.FiniteNetwork(nngp.Architecture(2, "relu", 1.6, 0.1), width=512)
network.sample(X, n_networks=100)
network.empirical_kernels(X)
nngp.finite.convergence(network.architecture, X)

Takes networks of any shape and a width; gives weights and outputs drawn from the prior, empirical
kernels, and how fast these converge as the width grows. JAX is imported when it is needed.
"""

from typing import TYPE_CHECKING

from nngp._lazy import lazy_attributes
from nngp.finite.requirements import need_jax
from nngp.finite.width_convergence import Decay as Decay

if TYPE_CHECKING:
    from nngp.finite.any_function import empirical_ntk as empirical_ntk, linearize as linearize
    from nngp.finite.functions import NetworkFunctions as NetworkFunctions
    from nngp.finite.network import FiniteNetwork as FiniteNetwork
    from nngp.finite.width_convergence import Convergence as Convergence, convergence as convergence

_HOMES = {
    **dict.fromkeys(("empirical_ntk", "linearize"), "nngp.finite.any_function"),
    **dict.fromkeys(("Convergence", "convergence"), "nngp.finite.width_convergence"),
    "FiniteNetwork": "nngp.finite.network",
    "NetworkFunctions": "nngp.finite.functions",
}
__all__ = sorted([*_HOMES, "Decay"])
if not TYPE_CHECKING:  # a type checker reports a name that is not imported above
    __getattr__, __dir__ = lazy_attributes("nngp.finite", _HOMES, public=__all__, check=need_jax)
