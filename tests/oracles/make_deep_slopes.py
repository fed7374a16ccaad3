"""Writes deep_slopes.json: variances after 100 layers, and products of slopes, of six activations.

Run by hand (`python tests/oracles/make_deep_slopes.py`, a minute); the result is committed. Nothing
here comes from the package. A small deficit m of the inputs has become m Π w E[phi'²] in the end;
moments are integrals by mpmath in 25 digits.
"""

import json
from pathlib import Path

import mpmath as mp

DEPTH = 100


def moments(phi, derivative):
    """E[phi²] and E[phi'²] at a variance."""

    def at(q):
        root = mp.sqrt(q)
        points = [-mp.inf, *(k / root for k in (-1, 0, 1)), mp.inf]
        normal = [lambda z, f=f: f(root * z) ** 2 * mp.npdf(z) for f in (phi, derivative)]
        return tuple(mp.quad(f, points) for f in normal)

    return at


NETWORKS = {  # name: moments, weight and bias variance
    "relu": (moments(lambda x: max(x, mp.mpf(0)), lambda x: mp.mpf(x > 0)), 0.3, 0.1),
    "erf": (moments(mp.erf, lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)), 0.1, 0.1),
    "gelu": (moments(lambda x: x * mp.ncdf(x), lambda x: mp.ncdf(x) + x * mp.npdf(x)), 0.3, 0.2),
    "tanh": (moments(mp.tanh, lambda x: mp.sech(x) ** 2), 0.1, 0.1),
    "hard_tanh": (moments(lambda x: min(max(x, -1), 1), lambda x: mp.mpf(abs(x) < 1)), 0.2, 0.4),
    "arctan + cos/4": (
        moments(lambda x: mp.atan(x) + mp.cos(x) / 4, lambda x: 1 / (1 + x * x) - mp.sin(x) / 4),
        0.2,
        0.1,
    ),
}


def entry(name):
    at, w, b = NETWORKS[name]
    known = {}
    q, product = mp.mpf(b) + mp.mpf(w), mp.mpf(w)
    for _ in range(DEPTH):
        key = mp.nstr(q, 22)
        if key not in known:
            known[key] = at(q)
        moment, slope = known[key]
        q, product = mp.mpf(b) + mp.mpf(w) * moment, product * mp.mpf(w) * slope
    case = {"activation": name, "depth": DEPTH, "weight_var": w, "bias_var": b}
    return {**case, "variance": mp.nstr(q, 22), "product": mp.nstr(product, 22)}


def main() -> None:
    with mp.workdps(25):
        out = ",\n".join(json.dumps(entry(name)) for name in NETWORKS)
    Path(__file__).with_name("deep_slopes.json").write_text(f"[\n{out}\n]\n")


if __name__ == "__main__":
    main()
