"""Writes regimes.json: fixed points, slopes and critical line of tanh and silu, 30 digits.

Run by hand (`python tests/oracles/make_regimes.py`, some minutes); the result is committed.
Nothing here comes from the package. Gaussian integrals are trapezoid sums, which converge
exponentially for analytic functions; derivatives of phi are written out; roots are mpmath's.
"""

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 32
STEP, REACH = mp.mpf(1) / 14, 13
NODES = [STEP * i for i in range(-int(REACH / STEP), int(REACH / STEP) + 1)]
WEIGHTS = [STEP * mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi) for z in NODES]
FLOOR = mp.mpf(10) ** -31


def sech2(x):
    return 1 / mp.cosh(x) ** 2


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


ACTIVATIONS = {
    "tanh": (mp.tanh, sech2),
    "silu": (lambda x: x * sigmoid(x), lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x)))),
}
# chaotic, ordered and nearly critical; (weight_var, bias_var, a start near q*)
NETWORKS = {
    "tanh": [(3.0, 0.1, 1.6), (1.0, 0.5, 0.7), (1.5, 0.0, 0.4), (2.5, 0.28, 1.4), (4.0, 2.0, 4.2)],
    "silu": [(1.5, 0.3, 0.6), (0.7, 1.0, 1.3)],
}
LINE = {"tanh": [(0.01, 0.4), (0.05, 0.6), (0.5, 1.9), (2.0, 4.8)], "silu": [(1.2, 55.0)]}


def mean(f, q):
    s = mp.sqrt(q)
    finer = int(mp.ceil(s))  # poles come nearer as q grows
    step = STEP / finer
    nodes = (step * i for i in range(-int(REACH / step), int(REACH / step) + 1))
    return step / mp.sqrt(2 * mp.pi) * sum(mp.exp(-z * z / 2) * f(s * z) for z in nodes)


def mean_of_pair(f, q, e):
    """E[f(u) f(v)] at correlation 1 - e, in coordinates rotated by 45 degrees."""
    alpha, beta = mp.sqrt(q * (1 - e / 2)), mp.sqrt(q * e / 2)
    total, middle = mp.mpf(0), len(NODES) // 2
    for j in range(middle, len(NODES)):  # z2 -> -z2 exchanges u and v
        fold, shift = WEIGHTS[j] * (1 if j == middle else 2), beta * NODES[j]
        for z, w in zip(NODES, WEIGHTS, strict=True):
            if w * fold > FLOOR:
                total += w * fold * f(alpha * z + shift) * f(alpha * z - shift)
    return total


def network(name, weight_var, bias_var, start):
    phi, slope = ACTIVATIONS[name]
    w, b = mp.mpf(weight_var), mp.mpf(bias_var)
    q = mp.findroot(lambda q: b + w * mean(lambda x: phi(x) ** 2, q) - q, mp.mpf(start))
    chi = w * mean(lambda x: slope(x) ** 2, q)
    rise = w * mean(lambda x: x * phi(x) * slope(x), q) / q
    e, chi_there = mp.mpf(0), chi
    if chi > 1 and bias_var > 0:
        second = mean(lambda x: phi(x) ** 2, q)
        e = mp.findroot(
            lambda e: w * (second - mean_of_pair(phi, q, e)) / (q * e) - 1,
            (mp.mpf(0.001), mp.mpf(1)),
            solver="illinois",
        )
    elif chi > 1:  # odd, without bias: zero correlation
        e = mp.mpf(1)
    if chi > 1:
        chi_there = w * mean_of_pair(slope, q, e)
    values = {"variance": q, "chi": chi, "variance_slope": rise}
    values |= {"one_minus_correlation": e, "chi_at_fixed_point": chi_there}
    return {"activation": name, "weight_var": weight_var, "bias_var": bias_var} | text(values)


def line(name, bias_var, start):
    phi, slope = ACTIVATIONS[name]

    def bias_at(q):
        return q - mean(lambda x: phi(x) ** 2, q) / mean(lambda x: slope(x) ** 2, q)

    q = mp.findroot(lambda q: bias_at(q) - mp.mpf(bias_var), mp.mpf(start))
    values = {"variance": q, "weight_var": 1 / mean(lambda x: slope(x) ** 2, q)}
    return {"activation": name, "bias_var": bias_var} | text(values)


def text(values):
    return {name: mp.nstr(value, 30) for name, value in values.items()}


def main() -> None:
    networks = [network(name, *row) for name, rows in NETWORKS.items() for row in rows]
    print("networks", flush=True)
    lines = [line(name, *row) for name, rows in LINE.items() for row in rows]
    parts = [("networks", networks), ("line", lines)]
    body = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]"
        for name, rows in parts
    )
    Path(__file__).with_name("regimes.json").write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
