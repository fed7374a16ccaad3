"""Scaling of inputs.

A kernel depends on inputs through x·x'/d, so x·x/d is brought to about one: column by column
("standardize"), or row by row ("unit", as the paper does with images). Where columns share a unit,
as pixels do, their spreads carry information: "auto" tries with and without. "sphere" standardizes,
adds a constant input and normalizes rows: no information is lost, and any activation is fast. The
relevance of an input multiplies its column by a square root: it is the variance of the weights that
leave that input, relative to the others. A column may have a monotone map, which comes first.
"whiten" removes what columns have in common, as neighbouring pixels do, before rows are normalized.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from nngp._arrays import EPS, Array
from nngp._records import Range, Shaped
from nngp._threads import in_threads, row_parts
from nngp.frames.column_moments import moments
from nngp.frames.maps import ColumnMap
from nngp.frames.whitening import (
    DEFAULT_STRENGTH,
    InputSpectrum,
    Whitening,
    check_directions,
)
from nngp.gram import normalize

INPUT_SCALINGS = ("auto", "standardize", "sphere", "unit", "whiten", "none")
RELEVANCE_BOUNDS = (1e-6, 1e4)


@dataclass(frozen=True)
class InputScaling:
    """(map(x) - center) · factor of every column; then `whitening` if there is one, a constant
    column more if `constant`, and each row normalized if `unit`. Without `maps` all are the
    identity."""

    center: Annotated[Array, Shaped("d")]
    factor: Annotated[Array, Shaped("d"), Range(0.0)]  # with the square roots of the relevances
    relevance: Annotated[Array, Shaped("d"), Range(0.0)]
    unit: bool = False
    constant: bool = False
    maps: tuple[ColumnMap, ...] = ()
    whitening: Whitening | None = None

    @classmethod
    def learn(
        cls, X: Array, kind: str, maps: Sequence[ColumnMap] = (), weights: Array | None = None
    ) -> "InputScaling":
        """Learn the scaling of that kind from the training inputs, with weights of the rows."""
        if kind == "whiten":
            return cls.whitened(InputSpectrum.learn(X, weights), DEFAULT_STRENGTH)
        d = X.shape[1]
        chosen = tuple(maps) if any(one.kind != "identity" for one in maps) else ()
        X = _mapped(X, chosen)
        if kind in ("unit", "none"):
            return cls(np.zeros(d), np.ones(d), np.ones(d), kind == "unit", maps=chosen)
        center, spread = moments(X, weights)
        # A column that is constant in training is ignored, whatever it holds later.
        factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        sphere = kind == "sphere"
        return cls(center, factor, np.where(factor > 0, 1.0, 0.0), sphere, sphere, chosen)

    @classmethod
    def whitened(cls, spectrum: InputSpectrum, strength: float) -> "InputScaling":
        """Whiten with that strength, then normalize rows."""
        used, whitening = np.where(spectrum.factor > 0, 1.0, 0.0), spectrum.whitening(strength)
        return cls(spectrum.center, spectrum.factor, used, True, whitening=whitening)

    @property
    def own_spread(self) -> Array:
        """Relevances that give columns their original relative spreads; one on average."""
        some = self.factor > 0
        if not some.any():
            return np.ones_like(self.factor)
        relative = self.factor[some].min() / self.factor[some]  # one at most: no overflow
        out = np.ones_like(self.factor)
        out[some] = np.clip(relative**2 / np.mean(relative**2), *RELEVANCE_BOUNDS)
        return out

    @property
    def raw_factor(self) -> Array:
        """The derivative of each scaled column in its raw value, in the middle of the column."""
        if not self.maps:
            return self.factor
        return self.factor * np.array([one.slope for one in self.maps])

    @property
    def raw_center(self) -> Array:
        """Center of each column in its own units; of a mapped one that of its map."""
        maps = self.maps or (ColumnMap(),) * len(self.center)
        pairs = zip(maps, self.center, strict=True)
        return np.array([c if one.kind == "identity" else one.middle for one, c in pairs])

    def stretched(self, relevance: Array) -> "InputScaling":
        """Multiply the relevance of each input."""
        factor = self.factor * np.sqrt(relevance)
        return replace(self, factor=factor, relevance=self.relevance * relevance)

    def with_relevance(self, relevance: Array) -> "InputScaling":
        """Set the relevance of each input, which was one before."""
        return replace(self.stretched(relevance), relevance=relevance)

    def __call__(self, X: Array) -> Array:
        mapped = _mapped(X, self.maps)
        out = np.empty(mapped.shape)
        in_threads(lambda rows: self._centred(mapped[rows], out[rows]), row_parts(mapped))
        if self.whitening is not None:
            check_directions(out, self.center, self.factor)
            out = self.whitening(out)
        if self.constant:
            out = np.column_stack([out, np.ones(len(out))])
        return normalize(out) if self.unit else out

    def back(self, X: Array, G: Array) -> Array:
        """Derivatives in the inputs, (m, d, ...), of what has the derivatives G in scaled ones."""
        ones = (1,) * (G.ndim - 2)
        if self.unit:
            before = replace(self, unit=False)(X)
            size = np.sqrt(np.mean(before**2, axis=1, keepdims=True))
            unit, size = (one.reshape(*one.shape, *ones) for one in (before / size, size))
            G = (G - unit * np.mean(unit * G, axis=1, keepdims=True)) / size
        if self.constant:
            G = G[:, :-1]
        if self.whitening is not None:  # a symmetric matrix
            G = np.moveaxis(self.whitening(np.moveaxis(G, 1, -1)), -1, 1)
        slopes = np.broadcast_to(self.factor, X.shape).copy()
        for j, one in enumerate(self.maps):
            slopes[:, j] *= one.derivative(X[:, j])
        return np.asarray(G * slopes.reshape(*X.shape, *ones))

    def _centred(self, X: Array, out: Array) -> None:
        np.subtract(X, self.center, out=out)
        out *= self.factor

    def check_saved(self) -> None:
        """Raise ValueError for a scaling that is never learned."""
        factor, relevance, whitening = self.factor, self.relevance, self.whitening
        if self.constant > self.unit:
            raise ValueError("it has a constant column, and rows that are not normalized")
        if self.unit > self.constant and not factor.any():
            raise ValueError("its factors of the inputs are zero, which leaves no row a direction")
        as_they_are = self.unit and not self.constant and whitening is None
        if as_they_are and not np.allclose(factor, np.sqrt(relevance), rtol=1e-9, atol=0.0):
            raise ValueError("its factors of the inputs are not the roots of their relevances")
        # A column's spread is not below the rounding of its mean; whitened columns share a factor.
        most = np.sqrt(relevance) / EPS * (1.0 if whitening is None else np.sqrt(len(factor)))
        if (np.abs(self.center) * factor > most).any():
            raise ValueError("its centers and factors of the inputs contradict each other")
        if self.maps and len(self.maps) != len(factor):
            raise ValueError("its maps are not those of its inputs")
        if whitening is not None:
            self._check_whitening(whitening)

    def _check_whitening(self, whitening: Whitening) -> None:
        """Raise ValueError unless columns have one factor or none, and rows one norm."""
        used = self.factor > 0
        if not used.any() or np.ptp(self.factor[used]) > 0:
            raise ValueError("its columns are whitened and have factors of their own")
        if not np.array_equal(self.relevance, used) or len(whitening.matrix) != len(used):
            raise ValueError("its columns are whitened and have relevances of their own")
        if not self.unit or self.constant or self.maps:
            raise ValueError("it whitens inputs that are not brought to equal norm as they are")


def learn_whitening(
    X: Array, strength: float = DEFAULT_STRENGTH, weights: Array | None = None
) -> InputScaling:
    """Learn regularised whitening (ZCA) of training rows: a function of any rows.

    Whitened rows have x·x/d = 1. `strength` is what is added to the eigenvalues of the covariance,
    over their mean.

    Parameters
    ----------
    X : array (n, d)
        Training rows; fewer than columns are enough.
    strength : float
    weights : array (n,), optional
        Of the rows.

    Returns
    -------
    InputScaling
        Called with an array (m, d) it gives an array (m, d).

    Raises
    ------
    ValueError
        If a row, here or later, equals the mean: it has no direction.

    Examples
    --------
    >>> import numpy as np
    >>> from nngp.frames.scaling import learn_whitening
    >>> X = np.random.default_rng(0).normal(size=(500, 1)) + [[0.0, 1.0, 2.0, 3.0]]
    >>> X += 0.1 * np.random.default_rng(1).normal(size=X.shape)  # four columns, nearly one
    >>> whiten = learn_whitening(X, strength=1e-3)
    >>> bool(np.abs(np.corrcoef(X.T)[0, 1:]).min() > 0.9)
    True
    >>> bool(np.abs(np.corrcoef(whiten(X).T)[0, 1:]).max() < 0.1)
    True
    """
    return InputScaling.whitened(InputSpectrum.learn(X, weights), strength)


def _mapped(X: Array, maps: Sequence[ColumnMap]) -> Array:
    if not maps:
        return X
    out = X.copy()
    for j, one in enumerate(maps):
        if one.kind != "identity":
            out[:, j] = one(X[:, j])
    return out
