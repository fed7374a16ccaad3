"""Eigenvalues and eigenvectors of M + g 11ᵀ, to the precision of M however large g is.

With depth the constant direction of a kernel outgrows all others (`gram/split.py`): an eigenvalue
near g n, beside which rounding would hide the rest. So its eigenvector v is found first. With
v ∝ 1 + h and h ⟂ 1 the equation (M + g 11ᵀ) v = λ v reads

    λ = g n + 1ᵀM(1 + h) / n,    h = (I - 11ᵀ/n) M (1 + h) / λ,

an iteration that shrinks errors by g each time. On the rest of space the matrix is

    (I - vvᵀ) M (I - vvᵀ) + g rrᵀ,    r = 1 - v vᵀ1 = (|h|² 1 - n h) / (n + |h|²),

where nothing large is subtracted: g rrᵀ is of size 1/g. A multiple of vvᵀ is added to it, so that v
stays the last eigenvector. Of the others u, 1ᵀu = -hᵀu, to relative precision.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from nngp._arrays import EPS, TINY, Array
from nngp.linsolve.tiling import cut, spans

APART = 4.0  # g above which the constant direction is found first
MOST_STEPS = 60
UPDATED_ROWS = 512  # updated at a time
MARGIN = 1.01  # how far v is kept above the other eigenvalues


@dataclass(frozen=True)
class Spectrum:
    """M + g 11ᵀ = Σ λ uuᵀ, in ascending order.

    `ones` are 1ᵀu; `excess` is vᵀMv = λ - g (1ᵀv)² of the last eigenvector v; `error` is about how
    far rounding moves eigenvalues, the last excepted.
    """

    offset: float
    values: Array
    vectors: Array
    ones: Array
    excess: float
    error: float


def decompose(M: Array, offset: float) -> Spectrum:
    """Decompose M + offset 11ᵀ. M is overwritten, and three times its memory is used."""
    if offset > APART:
        return _with_constant_apart(M, offset)
    M += offset
    values, vectors = _eigh(M)
    ones = vectors.sum(axis=0)
    excess = float(values[-1] - offset * ones[-1] ** 2)
    return Spectrum(offset, values, vectors, ones, excess, 8 * EPS * float(values[-1]))


def _with_constant_apart(M: Array, offset: float) -> Spectrum:
    n, h = len(M), _tilt(M, offset)
    length = float(np.sqrt(n + h @ h))
    v = (1.0 + h) / length
    image = M @ v
    excess = float(v @ image)
    top = _deflate(M, v, image, np.sqrt(offset) * (h @ h - n * h) / length**2)
    values, vectors = _eigh(M)
    ones = -(h @ vectors)
    values[-1], vectors[:, -1], ones[-1] = excess + offset * (n / length) ** 2, v, n / length
    return Spectrum(offset, values, vectors, ones, excess, 8 * EPS * top)


def _tilt(M: Array, offset: float) -> Array:
    """h: the part of the last eigenvector that is orthogonal to the constant, which has length 1
    in every entry."""
    n = len(M)
    h, level = np.zeros(n), offset * n
    for _ in range(MOST_STEPS):
        image = M @ (1.0 + h)
        level = offset * n + image.mean()
        before, h = h, (image - image.mean()) / level
        if np.abs(h - before).max() <= EPS * np.abs(h).max():
            break
    return h


def _deflate(M: Array, v: Array, image: Array, small: Array) -> float:
    """Replace M by its part orthogonal to v, plus `small` smallᵀ and a multiple of vvᵀ above all
    other eigenvalues; gives that multiple."""
    right = np.stack([image - (v @ image) * v, v, -small])
    left = np.stack([v, image, small])
    largest = TINY
    for rows in spans(cut(len(M), UPDATED_ROWS)):
        M[rows] -= left[:, rows].T @ right
        largest = max(largest, float(np.abs(M[rows]).sum(axis=1).max()))
    top = MARGIN * largest
    for rows in spans(cut(len(M), UPDATED_ROWS)):
        M[rows] += np.outer(top * v[rows], v)
    return top


def _eigh(A: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors, in place: A is symmetric, so its transpose is in the order
    that LAPACK wants. Divide and conquer gives vectors that are orthogonal to rounding."""
    values, vectors = eigh(A.T, overwrite_a=True, check_finite=False, driver="evd")
    return values, vectors
