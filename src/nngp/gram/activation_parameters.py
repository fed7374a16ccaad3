"""Derivatives of a kernel in the parameters of its activations.

A kernel is smooth in such a parameter even where phi has kinks that move with it, as every entry is
an integral. So its derivative is a difference of fourth order of kernels at four values: that is
Mehler's series with dphi/dα in place of one phi, layer after layer, without dphi/dα itself, which
may not exist at a kink. Steps are 2e-3 of the parameter: the difference is good to about 1e-10 of
the kernel's size in units of the parameter.

Deep kernels are a large constant and a remainder (`split`). Both are differenced, each by itself.
"""

import threading
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network, WithHead
from nngp.curve import curve_at
from nngp.gram.inputs import InputSet
from nngp.gram.kernel_matrix import (
    Gradient,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    Tile,
)
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

STEP, LEAST = 2e-3, 1e-2  # relative to the parameter, or to this where it is smaller
RULE = ((-2.0, 1 / 12), (-1.0, -8 / 12), (1.0, 8 / 12), (2.0, -1 / 12))  # steps, and weights


class Moved(NamedTuple):
    """A network at a moved value of one parameter, and its weight in the derivative."""

    name: str
    weight: float
    network: Network


def moved_networks(network: Network) -> list[Moved]:
    """The networks whose weighted sum is the derivative in each parameter."""
    out = []
    for name, value in network.params.items():
        step = STEP * max(abs(value), LEAST)
        out += [
            Moved(name, weight / step, network.with_params(**{name: value + count * step}))
            for count, weight in RULE
        ]
    return out


def scale_in_parameters(network: Network, input_var: float) -> Gradient:
    """Derivatives of the kernel's scale in the parameters of activations."""
    out: Gradient = dict.fromkeys(network.params, 0.0)
    for name, weight, one in moved_networks(network):
        curve = curve_at(one.head, 1.0) if isinstance(one, WithHead) else curve_at(one, input_var)
        out[name] = out[name] + weight * curve.scale
    return out


class ParameterSums:
    """`GradientSums` with the parameters of activations in addition to what others sum."""

    def __init__(
        self,
        others: GradientSums,
        backend: KernelBackend,
        network: Network,
        inputs: InputSet,
        split: KernelSplit,
    ) -> None:
        if not backend.is_local:
            raise ValueError(
                "derivatives in the parameters of activations are computed on one machine; use "
                "engine='cpu'"
            )
        self._others, self._moved, self._scale = others, moved_networks(network), split.scale
        self._matrices: list[KernelMatrix] = [
            backend.matrix(one.network, inputs, split=_like(split, one.network))
            for one in self._moved
        ]
        self._sums = np.zeros(len(self._moved))
        self._lock = threading.Lock()

    def contract(self, G: Tile, rows: slice, columns: slice) -> None:
        weights = np.asarray(G)
        found = [_vdot(weights, one.block(rows, columns)) for one in self._matrices]
        with self._lock:
            self._sums += found
        self._others.contract(G, rows, columns)

    def result(self, sum_of_all: float) -> Gradient:
        out = {**self._others.result(sum_of_all)}
        for (name, weight, _), matrix, own in zip(
            self._moved, self._matrices, self._sums, strict=True
        ):
            split = matrix.split
            total = split.scale / self._scale * own
            if np.isfinite(split.offset):  # a flat prior stays flat
                total += split.constant / self._scale * sum_of_all
            out[name] = out.get(name, 0.0) + float(weight * total)
        return out


def _vdot(G: Array, block: Tile) -> float:
    values = np.asarray(block)
    return float(np.vdot(G[: values.shape[0], : values.shape[1]], values))


def _like(split: KernelSplit, network: Network) -> KernelSplit:
    """The split of the same kind for a moved network: none where there is none, and all of the
    constant where all of it is kept."""
    if split.is_trivial or split.input_var is None:
        return TRIVIAL_SPLIT
    curve = curve_at(network, split.input_var)
    if isinstance(network, WithHead):
        curve = curve_at(network.head, 1.0)
    kept = split.kept if split.offset > 0 else curve.offset
    return replace(split, scale=curve.scale, offset=curve.offset - kept, kept=kept)


def with_parameters(
    others: GradientSums,
    backend: KernelBackend,
    network: Network,
    inputs: InputSet,
    split: KernelSplit,
) -> GradientSums:
    """Sums of derivatives, with those in the parameters of activations if there are any."""
    if not network.params:
        return others
    return ParameterSums(others, backend, network, inputs, split)
