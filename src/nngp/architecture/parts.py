"""Networks of any shape, made of parts.

A part maps units to units. `Chain` puts parts behind each other; `Sum`, `Residual`, `Product` and
`Concat` join branches; `Repeat` stacks copies of a part, each with weights of its own. Behind an
`Image` units have positions, until `Flatten` or `GlobalAvgPool`; in between `Conv` takes the place
of `Dense`, and `AvgPool` averages neighbours. Any part can be the whole network, if it ends in
affine maps (`graph.check_graph`).
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
    Windowed,
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
        _check_variances(self)

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Affine(source, self.weight_var, self.bias_var))

    def outline(self) -> Outline:
        details = f"weight_var {self.weight_var:g}", f"bias_var {self.bias_var:g}"
        return (OutlineStep("dense", "Dense", details),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "dense", "weight_var": self.weight_var, "bias_var": self.bias_var}

    def __repr__(self) -> str:
        return f"Dense({shortest(self.weight_var)}, {shortest(self.bias_var)})"


def _check_variances(part: "Dense | Conv") -> None:
    """Check the variances of an affine map, and convert them to plain numbers."""
    for name in ("weight_var", "bias_var"):
        value = as_real(getattr(part, name), name)
        if not np.isfinite(value) or value < 0:
            raise ValueError(f"{name} must be finite and not negative, got {value!r}")
        object.__setattr__(part, name, value)
    if part.weight_var == 0:
        raise ValueError("weight_var must be positive: without weights no input is seen")
    # A variance that was found by a search may be as large, but is no whole number.
    if part.weight_var > LARGEST_USUAL_WEIGHT_VAR and part.weight_var.is_integer():
        warnings.warn(
            f"nngp.{type(part).__name__} takes the variance of the weights, here "
            f"{part.weight_var:g}, not a width: layers are infinitely wide; pass W_std² of a layer "
            "of neural-tangents",
            stacklevel=4,
        )


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
class Image(NetworkPart):
    """Read every row of the data as an image: the first part of a convolutional network.

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        Rows hold the numbers in this order, channels fastest, as `images.reshape(len(images), -1)`
        leaves them. A sequence is an image of height 1.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(
    ...     nngp.Image((2, 2)), nngp.Conv(3, 2.0), nngp.Act("relu"), nngp.Flatten(), nngp.Dense()
    ... )
    >>> nngp.kernel(net, [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]).round(4).tolist()
    [[0.1111, 0.0354], [0.0354, 0.1111]]
    """

    shape: tuple[int, int, int]

    def __init__(self, shape: Sequence[int]) -> None:
        sizes = tuple(shape) if np.iterable(shape) else ()
        if len(sizes) not in (2, 3):
            raise ValueError(
                f"shape must be (height, width) or (height, width, channels), got {shape!r}; a "
                "sequence is an image of height 1"
            )
        names = ("height", "width", "channels")
        found = (whole_number(name, size) for name, size in zip(names, (*sizes, 1), strict=False))
        object.__setattr__(self, "shape", tuple(found))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        if source != INPUT:
            raise ValueError(
                "nngp.Image reads the data, so it comes first; put it at the beginning"
            )
        height, width, channels = self.shape
        return graph.add(Windowed(source, "image", (height, width), channels=channels))

    def outline(self) -> Outline:
        return (OutlineStep("other", "Image", (" x ".join(map(str, self.shape)),)),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "image", "shape": list(self.shape)}

    def __repr__(self) -> str:
        return f"Image({self.shape})"


PADDINGS = ("same", "valid", "circular")


@dataclass(frozen=True, repr=False)
class Conv(NetworkPart):
    """A convolution with infinitely many channels: an affine map of the units in a window, with the
    same weights at every position.

    Parameters
    ----------
    window : int or (int, int)
        Height and width of the window in positions.
    weight_var, bias_var : float
        Weights have variance weight_var / fan-in, where the fan-in is that of the whole window.
    stride : int or (int, int)
        Step from one window to the next.
    padding : {"same", "valid", "circular"}
        Zeros around the image, so that a stride of 1 keeps its size; windows inside the image
        alone; or the opposite edge of the image around it.

    Examples
    --------
    >>> import nngp
    >>> halved = nngp.Conv(2, 1.0, stride=2)
    >>> net = nngp.Chain(nngp.Image((4, 4)), halved, nngp.Flatten(), nngp.Dense(1.0))
    >>> nngp.kernel(net, [[1.0] * 16]).tolist()
    [[1.0]]
    """

    window: tuple[int, int]
    weight_var: float
    bias_var: float = 0.0
    stride: tuple[int, int] = (1, 1)
    padding: str = "same"

    def __init__(
        self,
        window: int | Sequence[int],
        weight_var: float,
        bias_var: float = 0.0,
        *,
        stride: int | Sequence[int] = 1,
        padding: str = "same",
    ) -> None:
        if padding not in PADDINGS:
            raise ValueError(f"padding must be one of {', '.join(PADDINGS)}, got {padding!r}")
        values = _pair("window", window), weight_var, bias_var, _pair("stride", stride), padding
        names = ("window", "weight_var", "bias_var", "stride", "padding")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        _check_variances(self)

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        patches = graph.add(Windowed(source, "patch", self.window, self.stride, self.padding))
        return graph.add(Affine(patches, self.weight_var, self.bias_var))

    def outline(self) -> Outline:
        details = [f"weight_var {self.weight_var:g}", f"bias_var {self.bias_var:g}"]
        details += [f"stride {_shown(self.stride)}"] if self.stride != (1, 1) else []
        details += [self.padding] if self.padding != "same" else []
        return (OutlineStep("dense", f"Conv {_shown(self.window)}", tuple(details)),)

    def as_dict(self) -> dict[str, Any]:
        return {
            "part": "conv",
            "window": list(self.window),
            "weight_var": self.weight_var,
            "bias_var": self.bias_var,
            "stride": list(self.stride),
            "padding": self.padding,
        }

    def __repr__(self) -> str:
        words = [_short(self.window), shortest(self.weight_var), shortest(self.bias_var)]
        words += [f"stride={_short(self.stride)}"] if self.stride != (1, 1) else []
        words += [f"padding={self.padding!r}"] if self.padding != "same" else []
        return f"Conv({', '.join(words)})"


@dataclass(frozen=True, repr=False)
class AvgPool(NetworkPart):
    """The mean of the units in windows inside the image, channel by channel.

    Its kernel depends on covariances of different positions, so that networks with pooling take
    the time of (2w - 1)² and more networks without, for windows of w x w positions.

    Parameters
    ----------
    window : int or (int, int)
    stride : int or (int, int), optional
        By default the window, so that windows do not overlap.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(
    ...     nngp.Image((4, 4)), nngp.Conv(3, 2.0), nngp.AvgPool(2), nngp.Flatten(), nngp.Dense()
    ... )
    >>> print(net)
    input
    Image      4 x 4 x 1
    Conv 3x3   weight_var 2, bias_var 0
    AvgPool    2x2
    Flatten
    Dense      weight_var 1, bias_var 0
    output
    """

    window: tuple[int, int]
    stride: tuple[int, int]

    def __init__(
        self, window: int | Sequence[int], stride: int | Sequence[int] | None = None
    ) -> None:
        object.__setattr__(self, "window", _pair("window", window))
        steps = self.window if stride is None else _pair("stride", stride)
        object.__setattr__(self, "stride", steps)

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Windowed(source, "mean", self.window, self.stride))

    def outline(self) -> Outline:
        strides = (f"stride {_shown(self.stride)}",) if self.stride != self.window else ()
        return (OutlineStep("other", "AvgPool", (_shown(self.window), *strides)),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "avg_pool", "window": list(self.window), "stride": list(self.stride)}

    def __repr__(self) -> str:
        stride = f", {_short(self.stride)}" if self.stride != self.window else ""
        return f"AvgPool({_short(self.window)}{stride})"


@dataclass(frozen=True)
class GlobalAvgPool(NetworkPart):
    """The mean of the units at all positions, channel by channel: units without positions.

    Its kernel needs the covariances of all pairs of positions: height x width times the time of
    `Flatten`.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Image((2, 2)), nngp.Conv(1, 1.0), nngp.GlobalAvgPool(), nngp.Dense())
    >>> nngp.kernel(net, [[1.0, 2.0, 3.0, 4.0]]).tolist()  # 2.5²
    [[6.25]]
    """

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Windowed(source, "mean"))

    def outline(self) -> Outline:
        return (OutlineStep("other", "GlobalAvgPool"),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "global_avg_pool"}


@dataclass(frozen=True)
class Flatten(NetworkPart):
    """The units at all positions side by side, for an `nngp.Dense` to read.

    Its kernel compares equal positions of two images only.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(nngp.Image((2, 2)), nngp.Flatten(), nngp.Dense(1.0))
    >>> nngp.kernel(net, [[1.0, 2.0, 3.0, 4.0]]).tolist()
    [[7.5]]
    """

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        return graph.add(Windowed(source, "flat"))

    def outline(self) -> Outline:
        return (OutlineStep("other", "Flatten"),)

    def as_dict(self) -> dict[str, Any]:
        return {"part": "flatten"}


def _pair(name: str, value: Any) -> tuple[int, int]:
    """A number for both axes, or one for each."""
    if not np.iterable(value):
        one = whole_number(name, value)
        return one, one
    numbers = tuple(whole_number(name, one) for one in value)
    if len(numbers) != 2:
        raise ValueError(f"{name} must be a number or (height, width), got {value!r}")
    return numbers


def _shown(pair: tuple[int, int]) -> str:
    return f"{pair[0]}x{pair[1]}"


def _short(pair: tuple[int, int]) -> str:
    return str(pair[0]) if pair[0] == pair[1] else str(pair)


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
