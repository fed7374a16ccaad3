"""Writes deep_posteriors.json: posteriors of deep networks, and derivatives of their evidence.

Run by hand (`python tests/oracles/make_deep_posteriors.py`, a minute); the result is committed.
Nothing here comes from the package. Each entry is a network, its noise and its targets, with what
`deep_posterior` finds for them in 300 or 400 digits, rounded to float64.
"""

import json
from pathlib import Path

import deep_posterior as oracle
import mpmath as mp
import numpy as np

RNG = np.random.default_rng(3)


def draw(count: int) -> np.ndarray:
    """Points on the sphere of mean square one."""
    points = RNG.standard_normal((count, 3))
    return points / np.sqrt(np.mean(points**2, axis=1, keepdims=True))


X, XS = draw(7), draw(3)
Y = RNG.standard_normal(7)
NOISE = 1e-2
DEEP = [
    ("relu", 300, 1.0, 0.1),
    ("erf", 300, 0.6, 0.2),
    ("relu", 300, 2.0, 0.0),
    ("erf", 40, 3.0, 0.1),
    ("relu", 3, 1.6, 0.1),
]


def entry(net, relative, count=7, constant=False, digits=300):
    y = np.full(count, 3.0) if constant else Y[:count]
    with mp.workdps(digits):
        found = oracle.posterior(*net, X[:count], y, XS, NOISE, relative)
        values = {name: oracle.as_floats(np.atleast_1d(v)).tolist() for name, v in found.items()}
        if net[3] > 0:  # the derivative in a bias variance of 0 is not taken
            values["gradients"] = oracle.gradients(*net, X[:count], y, NOISE, relative)
    return {"net": net, "relative": relative, "count": count, "constant": constant, **values}


def entries():
    for net in DEEP:
        for relative in (True, False):
            yield entry(net, relative)
    for count in (1, 2, 7):
        for constant in (True, False):
            yield entry(DEEP[0], True, count, constant)
    yield entry(("relu", 600, 1.0, 0.1), False, count=3, digits=400)


def main() -> None:
    out = ",\n".join(json.dumps(found) for found in entries())
    Path(__file__).with_name("deep_posteriors.json").write_text(f"[\n{out}\n]\n")


if __name__ == "__main__":
    main()
