"""Networks of any dense shape, made of parts.

A part maps units to units. `Chain` puts parts behind each other; `Sum`, `Residual`, `Product` and
`Concat` join branches; `Repeat` stacks copies of a part, each with weights of its own. Any part can
be the whole network, if it ends in affine maps (`graph.check_graph`).
"""

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nngp._numbers import as_real, shortest, whole_number
from nngp.architecture.activation import (
    Activation,
    ActivationLike,
    as_activation,
    spec_of,
)
from nngp.architecture.graph import (
    INPUT,
    Added,
    Affine,
    GraphBuilder,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
)
from nngp.architecture.network import Network, depth_of
from nngp.architecture.outline import Outline, OutlineStep, repeated

LARGEST_USUAL_WEIGHT_VAR = 100.0  # above that, a width was probably meant


class NetworkPart(Network):
    """A piece of a network, or the whole of one."""

    @abstractmethod
    def append_to(self, graph: GraphBuilder, source: int) -> int:
        """Append the nodes of this part behind the node `source`; the index of the last one."""

    def nodes(self) -> Iterator[Node]:
        graph = GraphBuilder()
        self.append_to(graph, INPUT)
        return iter(graph.nodes)

    @property
    def depth(self) -> int:  # type: ignore[override]
        """Number of nonlinearities on the longest way from input to output."""
        return depth_of(self)


@dataclass(frozen=True)
class Dense(NetworkPart):
    """An affine map: weights of variance weight_var / fan-in and biases of variance bias_var.

    Examples
    --------
    >>> import nngp
    >>> nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Act("relu"), nngp.Dense(2.0, 0.1)).weight_vars
    (2.0, 2.0)
    """

    weight_var: float = 1.0
    bias_var: float = 0.0

    def __post_init__(self) -> None:
        for name in ("weight_var", "bias_var"):
            value = as_real(getattr(self, name), name)
            if not np.isfinite(value) or value < 0:
                raise ValueError(f"{name} must be finite and not negative, got {value!r}")
            object.__setattr__(self, name, value)
        if self.weight_var == 0:
            raise ValueError("weight_var must be positive: without weights no input is seen")
        if self.weight_var > LARGEST_USUAL_WEIGHT_VAR:
            warnings.warn(
                f"nngp.Dense takes the variance of the weights, here {self.weight_var:g}, not a "
                "width: layers are infinitely wide; pass W_std² of a layer of neural-tangents",
                stacklevel=3,
            )

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Affine(source, self.weight_var, self.bias_var))

    def outline(self) -> Outline:
        details = f"weight_var {self.weight_var:g}", f"bias_var {self.bias_var:g}"
        return (OutlineStep("dense", "Dense", details),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "dense", "weight_var": self.weight_var, "bias_var": self.bias_var}

    def __repr__(self) -> str:
        return f"Dense({shortest(self.weight_var)}, {shortest(self.bias_var)})"


@dataclass(frozen=True)
class Act(NetworkPart):
    """An activation, by name, as a callable or an `nngp.Activation`; an `nngp.Dense` comes before
    it.

    Examples
    --------
    >>> import nngp
    >>> nngp.Act("relu")
    Act('relu')
    """

    activation: Activation

    def __init__(self, activation: ActivationLike) -> None:
        object.__setattr__(self, "activation", as_activation(activation))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Nonlinearity(source, self.activation))

    def outline(self) -> Outline:
        return (OutlineStep("activation", self.activation.name),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "act", "activation": spec_of(self.activation)}

    def __repr__(self) -> str:
        phi = self.activation
        named = phi.spec is None or isinstance(phi.spec, str)  # a user's function, or a name
        return f"Act({phi.name!r})" if named else f"Act({phi.name})"


@dataclass(frozen=True)
class LayerNorm(NetworkPart):
    """Divide the units of every input by their root mean square (their mean is zero here).

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Dense(3.0), nngp.LayerNorm(), nngp.Act("relu"), nngp.Dense(2.0))
    >>> nngp.kernel(net, [[5.0, 0.0], [0.0, 1.0]]).round(4).tolist()
    [[1.0, 0.3183], [0.3183, 1.0]]
    """

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Normalised(source))

    def outline(self) -> Outline:
        return (OutlineStep("other", "LayerNorm"),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "layer_norm"}

    def __repr__(self) -> str:
        return "LayerNorm()"


@dataclass(frozen=True)
class Dropout(NetworkPart):
    """Keep a unit with probability `keep`, divided by `keep`; otherwise set it to zero.

    Masks are drawn for every row of the data: two rows that are equal are two draws, so their
    covariance is less than the variance of either.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Dropout(0.5), nngp.Dense(1.0))
    >>> nngp.kernel(net, [[1.0, 1.0], [1.0, 1.0]]).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    """

    keep: float

    def __post_init__(self) -> None:
        keep = as_real(self.keep, "keep")
        if not 0 < keep <= 1:
            raise ValueError(f"keep must be a probability above 0 and at most 1, got {keep!r}")
        object.__setattr__(self, "keep", keep)

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Masked(source, self.keep))

    def outline(self) -> Outline:
        return (OutlineStep("other", "Dropout", (f"keep {self.keep:g}",)),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "dropout", "keep": self.keep}

    def __repr__(self) -> str:
        return f"Dropout({shortest(self.keep)})"


@dataclass(frozen=True, repr=False)
class Chain(NetworkPart):
    """Parts behind each other; without any, the identity.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Act("tanh"), nngp.Dense(1.0))
    >>> net.depth, net.bias_vars
    (1, (0.1, 0.0))
    """

    parts: tuple[NetworkPart, ...]

    def __init__(self, *parts: NetworkPart) -> None:
        object.__setattr__(self, "parts", as_parts("Chain", parts))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        for part in self.parts:
            source = part.append_to(graph, source)
        return source

    def outline(self) -> Outline:
        return tuple(step for part in self.parts for step in part.outline())

    def as_dict(self) -> dict[str, Any]:
        return {"part": "chain", "parts": [part.as_dict() for part in self.parts]}

    def __repr__(self) -> str:
        return f"Chain({', '.join(map(repr, self.parts))})"


@dataclass(frozen=True, repr=False)
class _Branches(NetworkPart):
    """Branches that begin at the same units."""

    branches: tuple[NetworkPart, ...]

    def __init__(self, *branches: NetworkPart) -> None:
        name = type(self).__name__
        if not branches:
            raise ValueError(f"nngp.{name} needs at least one branch")
        object.__setattr__(self, "branches", as_parts(name, branches))

    def _ends(self, graph: GraphBuilder, source: int) -> tuple[int, ...]:
        """The last node of each branch."""
        return tuple(branch.append_to(graph, source) for branch in self.branches)

    def _joined(self, *details: str) -> Outline:
        branches = tuple(branch.outline() for branch in self.branches)
        return (OutlineStep("join", type(self).__name__, details, branches),)

    def _saved_branches(self) -> list[dict[str, Any]]:
        return [branch.as_dict() for branch in self.branches]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.branches))})"


@dataclass(frozen=True, init=False, repr=False)
class Sum(_Branches):
    """The sum of branches; all but one of them end in an `nngp.Dense` of their own.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Sum(nngp.Dense(1.0), nngp.Dense(2.0))
    >>> nngp.kernel(net, [[1.0, 1.0]]).tolist()
    [[3.0]]
    """

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Added(self._ends(graph, source)))

    def outline(self) -> Outline:
        return self._joined()

    def as_dict(self) -> dict[str, Any]:
        return {"part": "sum", "branches": self._saved_branches()}


@dataclass(frozen=True, init=False, repr=False)
class Product(_Branches):
    """The product of branches, unit by unit; all but one have an `nngp.Dense` of their own.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Product(nngp.Dense(3.0), nngp.Dense(2.0)), nngp.Dense(1.0))
    >>> nngp.kernel(net, [[1.0, 1.0]]).tolist()
    [[6.0]]
    """

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        first, *others = self._ends(graph, source)
        for other in others:
            first = graph.add(Multiplied((first, other)))
        return first

    def outline(self) -> Outline:
        return self._joined()

    def as_dict(self) -> dict[str, Any]:
        return {"part": "product", "branches": self._saved_branches()}


@dataclass(frozen=True, init=False, repr=False)
class Concat(_Branches):
    """The units of branches side by side; `shares` says which part of all units each branch has,
    equal parts by default. An `nngp.Dense` comes behind it before any activation.

    Examples
    --------
    >>> import nngp
    >>> joined = nngp.Concat(nngp.Dense(1.0), nngp.Dense(3.0), shares=(0.25, 0.75))
    >>> nngp.kernel(nngp.Chain(joined, nngp.Dense(1.0)), [[1.0, 1.0]]).tolist()
    [[2.5]]
    """

    shares: tuple[float, ...]

    def __init__(self, *branches: NetworkPart, shares: Sequence[float] | None = None) -> None:
        super().__init__(*branches)
        given = (1 / len(branches),) * len(branches) if shares is None else shares
        if not np.iterable(given):
            raise TypeError(
                f"shares must be a sequence of numbers, one for each branch, got {given!r}"
            )
        values = tuple(as_real(share, "a share") for share in given)
        if len(values) != len(branches) or not all(0 < share <= 1 for share in values):
            raise ValueError(f"shares must be a positive number for each branch, got {values}")
        if abs(sum(values) - 1) > 1e-12:
            raise ValueError(f"shares must add up to 1, got {values}")
        object.__setattr__(self, "shares", values)

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Joined(self._ends(graph, source), self.shares))

    def outline(self) -> Outline:
        return self._joined("shares " + " : ".join(f"{share:g}" for share in self.shares))

    def as_dict(self) -> dict[str, Any]:
        shares = list(self.shares)
        return {"part": "concat", "branches": self._saved_branches(), "shares": shares}

    def __repr__(self) -> str:
        if len(set(self.shares)) == 1:
            return super().__repr__()
        return f"{super().__repr__()[:-1]}, shares={self.shares})"


@dataclass(frozen=True, repr=False)
class Residual(NetworkPart):
    """The units plus what the parts, behind each other, make of them.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(1.0), nngp.Repeat(block, 3), nngp.Dense(1.0))
    >>> nngp.kernel_diag(net, [[1.0, 1.0]]).tolist()  # 1.5³
    [3.375]
    """

    parts: tuple[NetworkPart, ...]

    def __init__(self, *parts: NetworkPart) -> None:
        if not parts:
            raise ValueError("nngp.Residual needs at least one part")
        object.__setattr__(self, "parts", as_parts("Residual", parts))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Added((source, Chain(*self.parts).append_to(graph, source))))

    def outline(self) -> Outline:
        return (OutlineStep("join", "Residual", branches=((), Chain(*self.parts).outline())),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "residual", "parts": [part.as_dict() for part in self.parts]}

    def __repr__(self) -> str:
        return f"Residual({', '.join(map(repr, self.parts))})"


@dataclass(frozen=True, repr=False)
class Repeat(NetworkPart):
    """Copies of a part behind each other, each with weights of its own.

    Examples
    --------
    >>> import nngp
    >>> layer = nngp.Chain(nngp.Act("relu"), nngp.Dense(2.0))
    >>> nngp.Chain(nngp.Dense(2.0), nngp.Repeat(layer, 50)).depth
    50
    """

    part: NetworkPart
    times: int

    def __init__(self, part: NetworkPart, times: int) -> None:
        (part,) = as_parts("Repeat", (part,))
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "times", whole_number("times", times))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        for _ in range(self.times):
            source = self.part.append_to(graph, source)
        return source

    def outline(self) -> Outline:
        return repeated(self.part.outline(), self.times)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "repeat", "of": self.part.as_dict(), "times": self.times}

    def __repr__(self) -> str:
        return f"Repeat({self.part!r}, {self.times})"


def as_parts(name: str, parts: Sequence[Any]) -> tuple[NetworkPart, ...]:
    """Parts, checked."""
    for part in parts:
        if not isinstance(part, NetworkPart):
            layers = "; pass the parts of its `chain`" if hasattr(part, "chain") else ""
            raise TypeError(
                f"nngp.{name} is made of parts such as nngp.Dense or nngp.Act, got "
                f"{type(part).__name__}{layers}"
            )
    return tuple(parts)
