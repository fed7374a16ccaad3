"""Write random_layers.json: E[phi(u) phi(v)] of a thousand random activations and random pairs.

    pip install python-flint
    python tests/oracles/make_random_layers.py

The mean of each term of phi(u), given v, is known in closed form. So the expectation is an integral
over one variable. Arb does it with 128 bits, by a fixed rule on intervals on which the integrand is
smooth and varies slowly. Two rules must agree to 1e-17 of the integral of the integrand's size.
Nothing of the package is used.
"""

import json
from functools import cache
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from flint import arb, ctx
from random_activations import KINDS, RandomActivation

COUNT = 1000
NODES = 24, 32, 48, 64, 96  # of rules, tried until two in a row agree
AGREES, LEAST = arb("1e-17"), arb("1e-300")
ctx.prec = 128


def mean(term, mu, sigma):
    """E of a term at a Gaussian variable."""
    a, w, h = arb(term.place), arb(term.width), arb(term.height)
    d = mu - a
    if term.kind == "bump":
        total = w * w + 2 * sigma * sigma
        return h * w / total.sqrt() * (-d * d / total).exp()
    if term.kind == "ramp":
        return h * (d / (w * w + 2 * sigma * sigma).sqrt()).erf()
    if term.kind == "wave":
        return h * (-sigma * sigma / w / w / 2).exp() * (d / w).cos()
    if sigma == 0:
        above = d > 0
        return h * int(above) if term.kind == "step" else (h * d / w if above else arb(0))
    below = (-d / sigma / arb(2).sqrt()).erfc() / 2
    if term.kind == "step":
        return h * below
    return h / w * (d * below + sigma * density(d / sigma))


def density(z):
    return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()


def expectation(phi, var1, var2, corr, nodes):
    """E[phi(u) phi(v)], and the integral of the integrand's size."""
    s1, s2, c = arb(var1).sqrt(), arb(var2).sqrt(), arb(corr)
    sigma = s1 * ((1 - c) * (1 + c)).sqrt()

    def at(x, deviation):
        return sum((mean(term, x, deviation) for term in phi.terms), arb(0))

    def integrand(y):
        return density(y / s2) / s2 * at(y, arb(0)) * at(c * s1 / s2 * y, sigma)

    ends = pairwise(cuts(phi, s1, s2, c, sigma))
    parts = [part for pair in ends for part in weighted(integrand, *pair, nodes)]
    return sum(parts, arb(0)), sum(map(abs, parts), arb(0))


def cuts(phi, s1, s2, c, sigma):
    """Ends of intervals on which the integrand is smooth and varies slowly."""
    reach = 20 * s2
    points = [k * s2 for k in range(-20, 21)]
    for term in phi.terms:
        for scale, wide in ((arb(1), arb(0)), (c * s1 / s2, sigma)):
            if scale == 0:
                continue
            centre = arb(term.place) / scale
            width = (arb(term.width) * arb(term.width) + wide * wide).sqrt() / abs(scale)
            if term.kind in ("step", "kink"):
                width = max(wide / abs(scale), arb("1e-12") * s2)
            if term.kind == "wave":
                step = 6 * arb(term.width) / abs(scale)
                if wide == 0 and step < s2:
                    count = int(float(reach / step))
                    points += [k * step for k in range(-count, count)]
                continue
            points.append(centre)
            for k in range(60):
                away = width * 2**k
                if away > 2 * reach:
                    break
                points += [centre - away, centre + away]
    within = sorted(p.mid() for p in points if abs(p) < reach)
    return [-reach.mid(), *within, reach.mid()]


@cache
def rule(nodes):
    """Gauss-Legendre nodes and weights on [-1, 1]."""
    return [arb.legendre_p_root(nodes, k, weight=True) for k in range(nodes)]


def weighted(integrand, low, high, nodes):
    """The integrand at nodes between two numbers, times their weights."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [half * w * integrand((middle + half * t).mid()) for t, w in rule(nodes)]


def random_terms(rng):
    """One to four terms of random kinds, places and widths."""
    terms = []
    for _ in range(rng.integers(1, 5)):
        kind = KINDS[rng.integers(len(KINDS))]
        place = float(np.round(rng.normal(), 3)) if rng.random() < 0.5 else float(rng.normal())
        width = float(10 ** rng.uniform(-4, 0.5))
        if kind == "wave":
            width = float(10 ** rng.uniform(-1.3, 0.5))
        if kind == "kink":
            width = float(10 ** rng.uniform(-1, 0.5))
        terms.append((kind, float(rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 1)), place, width))
    return terms


def random_pair(rng):
    """Two variances and a correlation, some at the ends of its range."""
    var1 = float(10 ** rng.uniform(-3, 4))
    var2 = var1 if rng.random() < 0.4 else float(var1 * 10 ** rng.uniform(-2, 2))
    corr = float(rng.uniform(-1, 1))
    kind = rng.integers(4)
    if kind == 0:
        corr = float(np.sign(corr) * (1 - 10 ** rng.uniform(-9, -1)))
    if kind == 1:
        corr = float(rng.choice([-1.0, 0.0, 1.0]))
    return var1, var2, corr


def agreed(phi, pair):
    """E[phi(u) phi(v)] by the first rule that agrees with the one before."""
    values = (expectation(phi, *pair, nodes) for nodes in NODES)
    for (value, _), (other, size) in pairwise(values):
        if abs(value - other) <= AGREES * size + LEAST:
            return other
    raise ValueError(f"no rules agree for {phi.terms} at {pair}")


def row(seed):
    rng = np.random.default_rng(seed)
    terms, pair = random_terms(rng), random_pair(rng)
    phi = RandomActivation(terms)
    value = agreed(phi, pair)
    var1, var2, corr = pair
    exact = value.mid().str(25, radius=False)
    return {"terms": terms, "var1": var1, "var2": var2, "corr": corr, "value": exact}


if __name__ == "__main__":
    with Pool() as pool:
        rows = pool.map(row, range(1000, 1000 + COUNT), chunksize=10)
    lines = ",\n".join(json.dumps(one) for one in rows)
    path = Path(__file__).parent / "random_layers.json"
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
