"""The seam of this room: what every description of a network gives to those who compute with it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from nngp.architecture.activation import Activation, KernelMapOnly, spec_of
from nngp.architecture.graph import Affine, Graph, Masked, Node, Nonlinearity, check_graph
from nngp.architecture.outline import Outline, as_html, as_text
from nngp.architecture.planes import PlanePlan, plan_planes


class Network(ABC):
    """A description of an infinitely wide network: frozen, hashable, without data.

    `Architecture` is the paper's chain of equal layers, the parts (`Chain`, `Residual`, ...) make
    any other shape, and `NTK` stands for the tangent kernel of either. `print` draws it as text,
    `nngp.plots.network` as a picture.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Repeat(block, 50))
    >>> isinstance(net, nngp.Network), net.depth, hash(net) == hash(net)
    (True, 50, True)
    >>> print(net)
    input
    Dense       weight_var 2, bias_var 0.1
    50 times
    └ Residual
      ├ identity
      └ relu
        Dense   weight_var 1, bias_var 0
    output
    """

    _read: ClassVar[Callable[[Mapping[str, Any]], "Network"]]  # set in `saved`, for all kinds
    is_tangent = False  # whether its kernel is the tangent kernel
    depth: int  # number of nonlinearities on the longest way from input to output

    @abstractmethod
    def nodes(self) -> Iterator[Node]:
        """The operations in the order of computation (`graph`), endless at infinite depth."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold; `nngp.Network.from_dict` reads them back."""

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Network":
        """Construct the network that `as_dict` described, of any kind; ValueError for anything
        else.

        Examples
        --------
        >>> import nngp
        >>> net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Act("tanh"), nngp.Dense(1.0))
        >>> nngp.Network.from_dict(net.as_dict()) == net
        True
        """
        return Network._read(values)

    @abstractmethod
    def outline(self) -> Outline:
        """The steps from input to output, for text and pictures."""

    def __str__(self) -> str:
        return as_text(self.outline())

    def _repr_html_(self) -> str:
        """A drawing, for notebooks."""
        return as_html(self.outline())

    @property
    def base(self) -> "Network":
        """The network whose kernel is a function of norms and cosines: this one, unless it is an
        average over transformations."""
        return self

    def products(self, d: int) -> int:
        """How many matrices of inner products a kernel matrix takes, for inputs of d columns."""
        return 1

    @property
    def is_infinite(self) -> bool:
        """Whether the depth is infinite."""
        return False

    @property
    def graph(self) -> Graph:
        """The operations of a network of finite depth, checked."""
        if self.is_infinite:
            raise ValueError(
                "a network of infinite depth has no list of layers; this works at finite depth only"
            )
        return _graph_of(self)

    @property
    def weight_vars(self) -> tuple[float, ...]:
        """weight_var of each affine map, in the order of computation."""
        return tuple(node.weight_var for node in self.graph if isinstance(node, Affine))

    @property
    def bias_vars(self) -> tuple[float, ...]:
        """bias_var of each affine map, in the order of computation."""
        return tuple(node.bias_var for node in self.graph if isinstance(node, Affine))

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The different activations, in the order in which they first occur."""
        found = (node.activation for node in self.graph if isinstance(node, Nonlinearity))
        return tuple(dict.fromkeys(found))

    @property
    def params(self) -> dict[str, float]:
        """The parameters of the activations, by name. ValueError if two activations disagree."""
        out: dict[str, float] = {}
        for phi in _activations_of(self):
            for name, value in phi.params.items():
                if out.setdefault(name, value) != value:
                    raise ValueError(
                        f"two activations of the network have a parameter '{name}', with different "
                        "values; give one of them another name"
                    )
        return out

    def with_params(self, **values: float) -> "Network":
        """The same network at other values of some parameters of its activations.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> swish = nngp.Activation(lambda x, beta: x / (1 + np.exp(-beta * x)), params={"beta": 1})
        >>> nngp.Architecture(2, swish).with_params(beta=2.0).params
        {'beta': 2.0}
        """
        for name in values:
            if name not in self.params:
                known = ", ".join(self.params) or "none"
                raise ValueError(f"the network has no parameter '{name}' (it has {known})")

        def change(phi: Activation) -> Activation:
            return phi.with_params(**{k: v for k, v in values.items() if k in phi.params})

        out: Network = _with_activations(self, change)
        return out

    @property
    def has_masks(self) -> bool:
        """Whether there is dropout: two equal inputs then are two draws of the masks."""
        return not self.is_infinite and any(isinstance(node, Masked) for node in self.graph)

    @property
    def planes(self) -> PlanePlan | None:
        """How covariances of images are laid out; None for a network that reads rows as they
        are."""
        return None if self.is_infinite else plan_planes(self.graph)

    @property
    def values(self) -> list[Any]:
        """Values that identify the network, for a digest."""
        return [self.is_tangent, [_node_values(node) for node in self.graph]]

    def if_deep(self, words: str) -> str:
        """Words for a message, where there are layers to spare: empty at depth 0 and 1."""
        return words if self.depth > 1 else ""


class WrappedNetwork(Network):
    """A network that stands for another one: everything is that of `network`, unless a subclass
    says otherwise."""

    network: Network

    def nodes(self) -> Iterator[Node]:
        return self.network.nodes()

    def outline(self) -> Outline:
        return self.network.outline()

    @property
    def is_infinite(self) -> bool:
        return self.network.is_infinite

    @property
    def graph(self) -> Graph:
        return self.network.graph

    @property
    def weight_vars(self) -> tuple[float, ...]:
        return self.network.weight_vars

    @property
    def bias_vars(self) -> tuple[float, ...]:
        return self.network.bias_vars

    @property
    def activations(self) -> tuple[Activation, ...]:
        return self.network.activations

    @property
    def depth(self) -> int:  # type: ignore[override]
        return self.network.depth


@lru_cache(maxsize=256)
def _activations_of(network: Network) -> tuple[Activation, ...]:
    """The different activations of a network and of what it is made of."""
    found: list[Activation] = []

    def note(phi: Activation) -> Activation:
        found.append(phi)
        return phi

    _with_activations(network, note)
    return tuple(dict.fromkeys(found))


def _with_activations(part: Any, change: Callable[[Activation], Activation]) -> Any:
    """A network, or a part of one, with its activations replaced."""
    if isinstance(part, Activation):
        return change(part)
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        return tuple(_with_activations(one, change) for one in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    own = {one.name: getattr(part, one.name) for one in fields(part)}
    new = {name: _with_activations(value, change) for name, value in own.items()}
    if all(new[name] is own[name] for name in own):
        return part
    out = copy(part)
    for name, value in new.items():
        object.__setattr__(out, name, value)
    return out


@lru_cache(maxsize=256)
def _graph_of(network: Network) -> Graph:
    graph = tuple(network.nodes())
    check_graph(graph)
    return graph


@lru_cache(maxsize=256)
def depth_of(network: Network) -> int:
    """Number of nonlinearities on the longest way from input to output."""
    depths = [0]
    for node in network.graph:
        below = max(depths[source] for source in node.sources)
        depths.append(below + isinstance(node, Nonlinearity))
    return depths[-1]


def _node_values(node: Node) -> list[Any]:
    """Plain values of a node."""
    own = {**vars(node)}
    if isinstance(node, Nonlinearity):
        own["activation"] = activation_identity(node.activation)
    return [type(node).__name__, [[name, _plain(value)] for name, value in own.items()]]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def activation_identity(phi: Activation) -> Any:
    """Values that identify an activation: a built-in one by its name, a user's function by its
    name, its kinks and its values on a wide grid."""
    try:
        return spec_of(phi)
    except ValueError:
        far = np.geomspace(1e-12, 1e12, 4001)
        grid = np.concatenate([np.linspace(-30.0, 30.0, 6001), far, -far])
        with np.errstate(all="ignore"):
            if isinstance(phi.fn, KernelMapOnly):
                q, corr = np.broadcast_arrays(
                    np.geomspace(1e-6, 1e6, 41)[:, None], grid[:6001] / 30
                )
                return [phi.name, np.asarray(phi.fn.dual(corr * q, q, q), dtype=np.float64)]
            return [phi.name, list(phi.kinks), np.asarray(phi.apply(grid), dtype=np.float64)]
