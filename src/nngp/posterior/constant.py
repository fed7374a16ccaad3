"""The constant that all inputs share, kept apart: inference that depth cannot spoil.

With K = s (M + g 11ᵀ) (`gram/split.py`), the function is f = μ + h, where the constant μ has prior
variance s g and h the kernel s M. Let B = M + noise/s be factored, b = B⁻¹1, β = 1ᵀb. Then, for any
g from zero to infinity, by Sherman and Morrison,

    variance of μ       s κ,    κ = 1 / (1/g + β)
    mean of μ           μ = κ bᵀy
    mean at x           μ + m(x)ᵀ B⁻¹(y - μ1)
    variance at x       s (M(x,x) - |L⁻¹m(x)|² + κ (1 - m(x)ᵀb)²)
    yᵀ(K + noise)⁻¹y    ((y - μ1)ᵀB⁻¹(y - μ1) + μ²/g) / s
    log det             n log s + log det B + log(1 + gβ)
    (K + noise)⁻¹       (B⁻¹ - κ bbᵀ) / s
    1ᵀ(K + noise)⁻¹y    bᵀy / (s + s g β)

Nothing large is subtracted: g enters as 1/g, or in a sum. What a network of depth 500 leaves of
its inputs (s = 1e-151, g = 1e150) is used as well as what one of depth 5 leaves. An infinite g is a
flat prior for the constant; the evidence is then that of everything else (without log g).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import Array
from nngp.gram import KernelSplit, Tile


@dataclass(frozen=True)
class Constant:
    """The posterior of the constant. Variances are in units of the split's scale."""

    split: KernelSplit
    beta: float
    sums: Array  # bᵀY, an entry for each output
    z: Sequence[Tile] = ()  # L⁻¹1, as tiles (1, rows) of the engine
    alpha: Sequence[Tile] = ()  # b, likewise
    n: int | None = None  # points, where the last tile is filled up beyond them

    @classmethod
    def solve(
        cls, split: KernelSplit, beta: float, sums: Array, middle: Array
    ) -> tuple["Constant", Array]:
        """From β and bᵀ(Y - middle); also μ - middle.

        The latter without subtracting: κ bᵀ(Y - middle) - middle / (1 + gβ). So targets that are
        all the same leave nothing but what the prior of the constant resists.
        """
        out = cls(split, beta, sums + middle * beta)
        return out, out.variance * sums - middle * (split.scale / out.weight)

    @cached_property
    def vector(self) -> Array:
        """b on the host."""
        return np.concatenate([np.asarray(tile)[0] for tile in self.alpha])[: self.n]

    @property
    def variance(self) -> float:
        """κ, the posterior variance."""
        return 1.0 / (1.0 / self.split.offset + self.beta) if self.split.offset > 0 else 0.0

    @property
    def mean(self) -> Array:
        """μ, the posterior mean for each output."""
        return self.variance * self.sums

    @property
    def log_det(self) -> float:
        """log(1 + gβ), without log g where that is infinite."""
        if self.split.offset == np.inf:
            return float(np.log(self.beta))
        return float(np.log1p(self.split.offset * self.beta))

    @property
    def fit(self) -> float:
        """Σ μ²/g over the outputs."""
        if self.split.offset == 0:
            return 0.0
        return float(np.sum(self.mean**2)) / self.split.offset

    @property
    def weight(self) -> float:
        """s (1 + gβ): what sums over (K + noise)⁻¹ are divided by."""
        return self.split.scale + self.split.constant * self.beta

    def precision(self, inverse_diagonal: Array) -> Array:
        """The diagonal of B⁻¹ - κ bbᵀ, from that of B⁻¹.

        As [B⁻¹]_ii (1/g + β_i)/(1/g + β), β_i being what the other points know of the constant,
        which is nothing for a single point.
        """
        if self.split.offset == 0:
            return inverse_diagonal
        if len(inverse_diagonal) == 1:
            return inverse_diagonal * (self.split.scale / self.weight)
        b, prior = self.vector, 1.0 / self.split.offset
        others = np.maximum(self.beta - b * (b / inverse_diagonal), 0.0)
        return inverse_diagonal * ((prior + others) / (prior + self.beta))

    def check_held_out(self) -> None:
        """Raise ValueError for leaving out the only point where the prior is flat."""
        if self.split.offset == np.inf and len(self.vector) == 1:
            raise ValueError(
                "leaving out the only point leaves nothing to predict from where the constant has "
                "a flat prior (infinite depth); use two points or more"
            )

    def contradiction(self, weights: Array) -> float:
        """By how much μ, as 1ᵀα = μ/g has it, differs from itself; `weights` are α times s."""
        if self.split.offset == 0:
            return 0.0
        apart = weights.sum(axis=0) - self.mean / self.split.offset
        return float(np.abs(apart).max()) / self.beta
