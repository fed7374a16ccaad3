"""Infinitely many residual blocks with 1/depth of the variance, as one part."""

import copy
import math
from dataclasses import dataclass
from typing import Any

from nngp._numbers import whole_number
from nngp.architecture.graph import Added, Affine, GraphBuilder
from nngp.architecture.network import Network
from nngp.architecture.outline import Outline, OutlineStep
from nngp.architecture.parts import Chain, Dense, NetworkPart, as_parts

MOST_STEPS = 2000  # chosen by default


@dataclass(frozen=True, repr=False)
class ContinuousResidual(NetworkPart):
    """Infinitely many residual blocks, each with 1/depth of the variance: the limit of
    `Repeat(Residual(*parts), L)` for L to infinity, if the last part is `Dense(w / L, b / L)`.

    The parts end in `Dense(w, b)`. With t from 0 to 1 as depth, the covariance obeys
    dK/dt = b + w F(K). This is integrated by `steps` steps of the classical Runge-Kutta method,
    which is itself a network: its weights are positive, so it keeps the precision of small
    differences. Its error falls as steps⁻⁴. By default there are as many steps as an error of 1e-8
    of the variance needs where phi has slopes of at most 1: 30 w^(5/4), from 100 to 2,000. Kernels
    report the error that remains.
    Only the tangent kernel of inputs that are nearly opposite converges more slowly where phi has
    a kink: 1e-5 for relu at cosine -1.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Chain(
    ...     nngp.Dense(1.0), nngp.ContinuousResidual(nngp.Act("relu"), nngp.Dense(2.0))
    ... )
    >>> nngp.kernel_diag(net, [[1.0, 1.0]]).round(8).tolist()  # e
    [2.71828183]
    """

    parts: tuple[NetworkPart, ...]
    steps: int

    def __init__(self, *parts: NetworkPart, steps: int | None = None) -> None:
        if not parts or not isinstance(parts[-1], Dense):
            raise ValueError("the parts of nngp.ContinuousResidual must end in an nngp.Dense")
        object.__setattr__(self, "parts", as_parts("ContinuousResidual", parts))
        if steps is None:
            # The classical method has a relative error of λ⁵ / (120 steps⁴) on y' = λy, and λ is at
            # most the product of the weight variances if phi has slopes of at most 1.
            rate = math.prod(part.weight_var for part in parts if isinstance(part, Dense))
            steps = max(100, math.ceil(min(30 * max(rate, 1.0) ** 1.25, MOST_STEPS)))
        object.__setattr__(self, "steps", whole_number("steps", steps))

    def append_to(self, graph: GraphBuilder, source: int) -> int:
        *before, last = self.parts
        assert isinstance(last, Dense)

        def slope(at: int) -> int:
            """Input of the affine map at the end of a block."""
            return Chain(*before).append_to(graph, at)

        def moved(*slopes: tuple[int, float]) -> int:
            """The units plus slopes, each for some part of a step, with weights of its own."""
            ends = [
                graph.add(Affine(end, part / steps * last.weight_var, part / steps * last.bias_var))
                for end, part in slopes
            ]
            return graph.add(Added((source, *ends)))

        steps = self.steps
        for _ in range(steps):
            first = slope(source)
            second = slope(moved((first, 1 / 2)))
            third = slope(moved((second, 1 / 2)))
            fourth = slope(moved((third, 1.0)))
            source = moved((first, 1 / 6), (second, 1 / 3), (third, 1 / 3), (fourth, 1 / 6))
        return source

    def outline(self) -> Outline:
        branches = (), Chain(*self.parts).outline()
        return (OutlineStep("join", "ContinuousResidual", (f"{self.steps} steps",), branches),)

    def as_dict(self) -> dict[str, Any]:
        parts = [part.as_dict() for part in self.parts]
        return {"part": "flow", "parts": parts, "steps": self.steps}

    def __repr__(self) -> str:
        return f"ContinuousResidual({', '.join(map(repr, self.parts))}, steps={self.steps})"


def coarsened(network: Network) -> Network | None:
    """The network with half the steps in every `ContinuousResidual`, None if that is the same. A
    fifteenth of the difference between the two kernels estimates the error of the finer one
    (Richardson)."""
    out = _halved(network)
    return None if out == network else out


def _halved(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_halved, value))
    if not isinstance(value, Network):
        return value
    out = copy.copy(value)
    for name, part in vars(value).items():
        object.__setattr__(out, name, _halved(part))
    if isinstance(out, ContinuousResidual):
        object.__setattr__(out, "steps", max(1, out.steps // 2))
    return out
