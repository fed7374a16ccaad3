"""A low-rank preconditioner: P = F Fᵀ + δ with F = K_nS L_S⁻ᵀ, where K_SS = L_S L_Sᵀ.

S are some of the points, the landmarks. F Fᵀ is what they say of K, and never more than K; what
they do not say is K - F Fᵀ, of which P keeps the mean diagonal: δ = noise + (tr K - |F|²)/n. With
δ = noise alone small eigenvalues of K would stay where they are, while P has none that large, and
at small noise CG would take five times the iterations. P⁻¹ is applied by Woodbury's formula,

    P⁻¹r = (r - F C⁻¹ Fᵀr) / δ,    C = δ + FᵀF = L_C L_Cᵀ,

which loses eps |F|²/δ to cancellation. As |F|² is n at most, in units of the diagonal, δ is kept
above 1000 eps n of them.

Where the noise differs between rows, so does δ. With δ now the smallest of them and W the diagonal
matrix of δ over each, so of numbers from 0 to 1,

    P⁻¹r = W (r - F C⁻¹ FᵀWr) / δ,    C = δ + FᵀWF,

which loses no more.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nngp._arrays import EPS, Array
from nngp.gram import KernelMatrix, Shift
from nngp.linsolve.cholesky.factor import climb
from nngp.linsolve.engines.engine import EngineRun, Handle, compiled
from nngp.linsolve.tiling import Edges, in_groups, spans

TERMS = 4  # that are summed at once


class Landmarks(NamedTuple):
    """Kernel blocks between all points and the landmarks, and of the landmarks themselves."""

    cross: KernelMatrix
    own: KernelMatrix

    @property
    def rank(self) -> int:
        return len(self.own.diagonal)


@dataclass
class LandmarkFactor:
    """F in blocks of rows, and what does not depend on the noise."""

    parts: list[Handle]
    tail: float  # mean diagonal of what the landmarks leave
    _gram: Handle | None = None

    def gram(self, run: EngineRun) -> Handle:
        """FᵀF, computed once."""
        if self._gram is None:
            self._gram = _summed(run, _gram, [(part,) for part in self.parts])
        return self._gram

    def weighted_gram(self, run: EngineRun, weights: Array, edges: Edges) -> Handle:
        """FᵀWF."""
        columns = [run.put(weights[rows, None]) for rows in spans(edges)]
        return _summed(run, _weighted_gram, list(zip(self.parts, columns, strict=True)))


class Nystrom:
    """P for one noise."""

    def __init__(
        self, run: EngineRun, factored: LandmarkFactor, edges: Edges, noise: Shift, diagonal: float
    ) -> None:
        self.edges, self._F = edges, factored.parts
        shifts = np.maximum(noise + factored.tail, 1000 * EPS * edges[-1] * diagonal)
        self.shift = float(shifts.min())
        self._weights = self.shift / shifts if isinstance(noise, np.ndarray) else None
        if self._weights is None:
            gram = factored.gram(run)
        else:
            gram = factored.weighted_gram(run, self._weights, edges)
        shifted = run.apply(_plus_diagonal, gram, run.put(np.array([self.shift])))
        self._L = run.wait(run.chain(partial(run.copy, shifted), last="potrf"))

    def __call__(self, run: EngineRun, vectors: Array) -> Array:
        """(P⁻¹ vectorsᵀ)ᵀ."""
        parts = run.columns(vectors, self.edges)
        weighted = parts
        if self._weights is not None:
            weighted = run.columns(vectors * self._weights, self.edges)
        seen = _summed(run, _times, list(zip(weighted, self._F, strict=True)))
        half = run.chain(partial(run.copy, seen), last=self._L)
        solved = run.wait(run.chain(partial(run.copy, half), last=self._L, transposed=False))
        rest = [run.apply(_without, r, solved, F) for r, F in zip(parts, self._F, strict=True)]
        out = np.concatenate([run.fetch(part) for part in rest], axis=1) / self.shift
        return out if self._weights is None else out * self._weights


def factor_landmarks(
    run: EngineRun, landmarks: Landmarks, edges: Edges, diagonal: Array, *, single: bool = False
) -> LandmarkFactor:
    """F of these landmarks; with `single` it is held in float32, and P is that of the rounded F."""
    all_of_them = slice(0, landmarks.rank)

    def attempt(jitter: float) -> Handle:
        first = partial(landmarks.own.block, all_of_them, all_of_them, shift=jitter)
        return run.wait(run.chain(first, last="potrf"))

    # Duplicates among landmarks leave pivots that are rounding: a little on the diagonal covers it.
    size = float(np.max(landmarks.own.diagonal))
    L, _, _ = climb(attempt, 8 * EPS * landmarks.rank * size, limit=1e-3 * size)
    parts: list[Handle] = []
    for group in in_groups(spans(edges), run.width):
        chains = [
            run.chain(
                partial(landmarks.cross.block, rows, all_of_them),
                last=L,
                then=_rounded if single else None,
            )
            for rows in group
        ]
        parts.extend(run.wait(handle) for handle in chains)
    squares = [run.apply(_squares, part) for part in parts]
    said = sum(float(run.fetch(part)) for part in squares)
    tail = max(float(diagonal.sum()) - said, 0.0) / len(diagonal)
    return LandmarkFactor(parts, tail)


def _summed(run: EngineRun, function: Any, arguments: list[tuple[Handle, ...]]) -> Handle:
    """Σ function(...), as many terms at a time as the engine has hands, and few of them in one
    place."""
    total: list[Handle] = []
    for group in in_groups(arguments, max(2, run.width)):
        terms = [*total, *(run.apply(function, *some) for some in group)]
        while len(terms) > 1:
            terms = [run.apply(_sum, *some) for some in in_groups(terms, TERMS)]
        total = [run.wait(terms[0])]
    return total[0]


@compiled
def _times(part: Any, F: Any) -> Any:
    return part @ F.astype(part.dtype)


@compiled
def _without(part: Any, solved: Any, F: Any) -> Any:
    return part - solved @ F.T.astype(part.dtype)


@compiled
def _gram(F: Any) -> Any:
    return F.T.astype("float64") @ F.astype("float64")


@compiled
def _weighted_gram(F: Any, weights: Any) -> Any:
    F = F.astype("float64")
    return (weights * F).T @ F


@compiled
def _squares(F: Any) -> Any:
    return (F.astype("float64") ** 2).sum()


def _rounded(F: Any) -> Any:
    return F.astype("float32")


def _sum(*terms: Any) -> Any:
    return sum(terms[1:], terms[0])


@compiled
def _plus_diagonal(matrix: Any, shift: Any) -> Any:
    xp = matrix.__array_namespace__()
    return matrix + shift * xp.eye(matrix.shape[0], dtype=matrix.dtype)
