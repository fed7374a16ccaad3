"""Random activations: sums of steps, kinks, bumps, ramps and oscillations. Exact values of their
E[phi(u) phi(v)] are in random_layers.json (see make_random_layers.py)."""

from dataclasses import dataclass

import numpy as np
from scipy.special import erf

KINDS = ("step", "kink", "bump", "ramp", "wave")


@dataclass(frozen=True)
class Term:
    """height times one feature at a place, of a width."""

    kind: str
    height: float
    place: float
    width: float

    def __call__(self, x):
        t = (x - self.place) / self.width
        if self.kind == "step":
            return self.height * np.where(x > self.place, 1.0, 0.0)
        if self.kind == "kink":
            return self.height * np.maximum(t, 0.0)
        if self.kind == "bump":
            return self.height * np.exp(-(t**2))
        if self.kind == "ramp":
            return self.height * erf(t)
        return self.height * np.cos(t)


class RandomActivation:
    """A sum of terms."""

    def __init__(self, terms):
        self.terms = tuple(Term(*term) for term in terms)

    def __call__(self, x):
        return sum(term(x) for term in self.terms)

    @property
    def features(self):
        """Places to declare."""
        return [t.place for t in self.terms if t.kind in ("bump", "ramp")]
