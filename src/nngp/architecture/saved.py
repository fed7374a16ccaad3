"""Networks from the plain values that their `as_dict` gave, as they come from a JSON file."""

from collections.abc import Callable, Mapping
from typing import Any

from nngp.architecture.activation import from_spec
from nngp.architecture.architecture import Architecture
from nngp.architecture.flow import ContinuousResidual
from nngp.architecture.invariances.headed import WithHead
from nngp.architecture.invariances.invariant import Invariant
from nngp.architecture.invariances.saved import family_from_dict
from nngp.architecture.network import Network
from nngp.architecture.parts import (
    Act,
    AvgPool,
    Chain,
    Concat,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Image,
    LayerNorm,
    NetworkPart,
    Product,
    Repeat,
    Residual,
    Sum,
)
from nngp.architecture.tangent import NTK


def network_from_dict(values: Mapping[str, Any]) -> Network:
    """Construct the network that `as_dict` described; ValueError for anything else."""
    try:
        return _read(values)
    except KeyError as missing:
        raise ValueError(f"the description of a network lacks {missing}") from None
    except (AttributeError, TypeError) as cause:
        raise ValueError(f"this describes no network: {cause}") from None
    except RecursionError:
        raise ValueError("this describes no network: its parts are nested too deeply") from None


def _read(values: Mapping[str, Any]) -> Network:
    if not isinstance(values, Mapping):
        raise TypeError(f"a dictionary is needed, got {type(values).__name__}")
    if "depth" in values:
        return Architecture.from_dict(values)
    if values.get("part") == "ntk":
        return NTK(_read(values["of"]))
    if values.get("part") == "invariant":
        return Invariant(_read(values["of"]), [family_from_dict(one) for one in values["families"]])
    if values.get("part") == "headed":
        return WithHead(_invariant(_read(values["of"])), _read(values["head"]))
    return _part_from_dict(values)


def _invariant(network: Network) -> Invariant:
    if not isinstance(network, Invariant):
        raise TypeError("below a head there must be an average over transformations")
    return network


def _part_from_dict(values: Mapping[str, Any]) -> NetworkPart:
    """Construct the part that `as_dict` described."""
    kind = values.get("part") if isinstance(values, Mapping) else None
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"{kind!r} is no part of a network; there are {', '.join(_READERS)}")
    names, read = _READERS[kind]
    for name in values:
        if name not in ("part", *names):
            raise ValueError(f"the part {kind!r} has no entry {name!r}")
    try:
        return read(*(values[name] for name in names))
    except KeyError as missing:
        raise ValueError(f"the part {kind!r} lacks {missing}") from None


def _several(values: Any) -> list[NetworkPart]:
    if not isinstance(values, list):
        raise ValueError("the parts of a network must be a list")
    return [_part_from_dict(one) for one in values]


def _concat(branches: Any, shares: Any) -> NetworkPart:
    if not isinstance(shares, list):
        raise ValueError("the shares of a concatenation must be a list")
    return Concat(*_several(branches), shares=shares)


def _conv(window: Any, weight_var: Any, bias_var: Any, stride: Any, padding: Any) -> NetworkPart:
    return Conv(window, weight_var, bias_var, stride=stride, padding=padding)


# the name of a part -> its entries, and a function of them
_READERS: dict[str, tuple[tuple[str, ...], Callable[..., NetworkPart]]] = {
    "dense": (("weight_var", "bias_var"), Dense),
    "act": (("activation",), lambda spec: Act(from_spec(spec))),
    "image": (("shape",), Image),
    "conv": (("window", "weight_var", "bias_var", "stride", "padding"), _conv),
    "avg_pool": (("window", "stride"), AvgPool),
    "global_avg_pool": ((), GlobalAvgPool),
    "flatten": ((), Flatten),
    "layer_norm": ((), LayerNorm),
    "dropout": (("keep",), Dropout),
    "chain": (("parts",), lambda parts: Chain(*_several(parts))),
    "residual": (("parts",), lambda parts: Residual(*_several(parts))),
    "sum": (("branches",), lambda branches: Sum(*_several(branches))),
    "product": (("branches",), lambda branches: Product(*_several(branches))),
    "concat": (("branches", "shares"), _concat),
    "flow": (
        ("parts", "steps"),
        lambda parts, steps: ContinuousResidual(*_several(parts), steps=steps),
    ),
    "repeat": (("of", "times"), lambda of, times: Repeat(_part_from_dict(of), times)),
}


Network._read = network_from_dict
