"""A network averaged over transformations of its inputs, as a network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nngp.architecture.invariances.family import Family
from nngp.architecture.invariances.orbit import Orbit, orbit_of
from nngp.architecture.invariances.symmetries import functions
from nngp.architecture.network import Network, WrappedNetwork
from nngp.architecture.outline import Outline, OutlineStep


@dataclass(frozen=True)
class Invariant(WrappedNetwork):
    """A network averaged over transformations of its inputs, wherever a network is taken.

    Its function is Σ w_g f(g x) with f that of the network, and its kernel the average of
    k(g x, h x') over pairs of transformations: exact, and positive definite. Where transformations
    exchange columns or signs, the average is one over g⁻¹h, and its cost that of a kernel matrix
    for each of these.

    Parameters
    ----------
    network : Network
        `nngp.Architecture`, one of parts, or an `NTK` of either.
    transformations : Family, function of rows, or a sequence of them
        `nngp.images` has flips, shifts, rotations and orders of colours, `nngp.symmetries`
        permutations of columns, signs and functions of rows. Of several, one of each is applied,
        in this order, functions of rows first.

    Examples
    --------
    >>> import nngp
    >>> from sklearn.datasets import load_digits
    >>> X = nngp.normalize(load_digits().data[:4])
    >>> net = nngp.Invariant(nngp.Architecture(3, "relu"), nngp.images.shifts(1, (8, 8)))
    >>> net.products(64)  # shifts from -2 to 2 along both axes
    25
    >>> bool(nngp.kernel_diag(net, X).max() < nngp.kernel_diag(net.network, X).min())
    True
    """

    network: Network
    transformations: tuple[Family, ...]

    def __init__(
        self, network: Network, transformations: Family | Any | Sequence[Family | Any]
    ) -> None:
        if not isinstance(network, Network) or network.base is not network:
            raise TypeError(
                "Invariant takes a network that is not invariant yet (nngp.Architecture, "
                f"nngp.Chain, nngp.NTK, ...), got {type(network).__name__}; pass several "
                "transformations as a list"
            )
        object.__setattr__(self, "network", network)
        object.__setattr__(self, "transformations", as_families(transformations))

    @property
    def is_tangent(self) -> bool:  # type: ignore[override]
        return self.network.is_tangent

    @property
    def base(self) -> Network:
        return self.network

    def orbit(self, d: int) -> Orbit:
        """The kernels that are averaged, for inputs of d columns."""
        return orbit_of(self.transformations, d)

    def products(self, d: int) -> int:
        """How many matrices of inner products a kernel matrix takes, for inputs of d columns.

        Examples
        --------
        >>> import nngp
        >>> flips = nngp.images.flips((28, 28))
        >>> nngp.Invariant(nngp.Architecture(2), flips).products(784)
        2
        """
        return self.orbit(d).products

    def outline(self) -> Outline:
        average = tuple(
            OutlineStep("other", f"average over {one.label}", one.details)
            for one in self.transformations
        )
        return (*average, *self.network.outline())

    @property
    def values(self) -> list[Any]:
        return [self.network.values, [one.as_dict() for one in self.transformations]]

    def as_dict(self) -> dict[str, Any]:
        families = [one.as_dict() for one in self.transformations]
        return {"part": "invariant", "of": self.network.as_dict(), "families": families}

    def __repr__(self) -> str:
        return f"Invariant({self.network!r}, {list(self.transformations)!r})"


def as_families(transformations: Any) -> tuple[Family, ...]:
    """One family or several; a function of rows becomes a family."""
    given = transformations if isinstance(transformations, list | tuple) else [transformations]
    out = []
    for one in given:
        if not isinstance(one, Family) and not callable(one):
            raise TypeError(
                "transformations must be families, such as nngp.images.shifts(1), or functions of "
                f"rows, got {type(one).__name__}"
            )
        out.append(one if isinstance(one, Family) else functions(one))
    if not out:
        raise ValueError("Invariant needs at least one family of transformations")
    labels = [one.label for one in out if one.parameters]
    if len(set(labels)) < len(labels):
        raise ValueError(
            "two families of one kind cannot be told apart; combine others, such as flips and "
            "shifts"
        )
    return tuple(out)
