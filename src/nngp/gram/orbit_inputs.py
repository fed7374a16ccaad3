"""Inputs of a network that is averaged over transformations, as its row functions leave them."""

from collections.abc import Sequence
from typing import TypeVar, cast

from nngp.architecture import Invariant, Network, average_of
from nngp.gram.inputs import Inputs, InputSet

Rows = TypeVar("Rows", bound=InputSet)


def transformed_inputs(network: Network, inputs: Rows) -> Sequence[Rows]:
    """The inputs by each row function of the network; as they are where there is none."""
    network = average_of(network)
    if not isinstance(network, Invariant):
        return (inputs,)
    orbit = network.orbit(inputs.shape[1])
    if not orbit.has_functions:
        return (inputs,)
    if not isinstance(inputs, Inputs):
        raise TypeError(
            "functions of rows are computed on one machine; use engine='cpu' or 'gpu', or "
            "transformations that exchange columns"
        )

    def compute(own: Inputs) -> list[Inputs]:
        return [own if one is None else Inputs.of(one(own.X)) for one in orbit.functions]

    return cast(Sequence[Rows], inputs.derived(network.transformations, compute))


def cut(inputs: Inputs, rows: slice) -> Inputs:
    """Some rows that follow each other, not copied."""
    return Inputs(inputs.X[rows], inputs.var[rows])
