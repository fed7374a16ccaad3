"""The tangent kernel of a network, as a network."""

from dataclasses import dataclass
from typing import Any

from nngp.architecture.network import Network, WrappedNetwork


@dataclass(frozen=True)
class NTK(WrappedNetwork):
    """The neural tangent kernel of a network, wherever a network is taken.

    Its kernel is the inner product of the gradients of the network's output in all weights and
    biases, each divided by its prior deviation: the kernel by which gradient descent trains the
    infinitely wide network (`nngp.training.train_ensemble`).

    Parameters
    ----------
    network : Network
        Of finite depth, with activations that do not jump: gradients of a jump are infinite.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(1, "relu", weight_var=2.0, bias_var=0.0)
    >>> nngp.kernel_diag(nngp.NTK(net), [[1.0, 1.0]]).tolist()
    [4.0]
    """

    network: Network
    is_tangent = True

    def __post_init__(self) -> None:
        if not isinstance(self.network, Network) or self.network.is_tangent:
            raise TypeError(
                "NTK takes a network (nngp.Architecture, nngp.Chain, ...), got "
                f"{type(self.network).__name__}"
            )
        if self.network.base is not self.network:
            raise TypeError(
                "the tangent kernel of an average is the average of tangent kernels; write "
                "nngp.Invariant(nngp.NTK(network), transformations), and nngp.NTK(head) for layers "
                "on top of it"
            )
        if self.network.is_infinite:
            raise ValueError(
                "the tangent kernel of a network of infinite depth is not available; give a "
                "finite depth"
            )

    def __str__(self) -> str:
        return f"tangent kernel of\n{self.network}"

    def as_dict(self) -> dict[str, Any]:
        return {"part": "ntk", "of": self.network.as_dict()}

    def _repr_html_(self) -> str:
        return f"<i>tangent kernel of</i>{super()._repr_html_()}"

    def __repr__(self) -> str:
        return f"NTK({self.network!r})"
