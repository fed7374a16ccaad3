"""Writes shapes.json: K and the tangent kernel Θ of networks of every part, by mpmath.

Run by hand (`python tests/oracles/make_shapes.py`, some minutes); the result is committed. Nothing
here comes from the package. A network is a dictionary such as `nngp.Network.from_dict` reads, and
`after` walks through it with the covariance k of two inputs, the variance q of either, and the same
of Θ. Expectations of pairs are textbook formulas (Cho and Saul 2009, Williams 1997) in 200 digits,
of which at least 60 are left in a deficit q - k; the formulas of E[phi' phi'] are checked against
Price's theorem. tanh is integrated by the trapezoid rule, in 30 digits, of differences that are
not subtracted, so that small deficits keep theirs.
"""

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import gmpy2
import mpmath as mp

PI = mp.pi
DEPTHS = (1, 10, 50, 500)
SLOPE = 0.2  # of leaky ReLU
COSINES = (1.0, 1 - 1e-9, 0.9, 0.5, 0.0, -0.5, -0.9, -(1 - 1e-9), -1.0)
ONE_MINUS = (1e-9, 1e-4, 1e-30)  # 1 - c
FEW = ((1.0, 0.5, -(1 - 1e-9)), (1e-9,))  # cosines, and 1 - c, for tanh at great depth


# E[phi(u) phi(v)] and E[phi'(u) phi'(v)] of u, v with variance q and covariance k


def relu(q, k):
    c = k / q
    return q / (2 * PI) * (mp.sqrt(1 - c * c) + (PI - mp.acos(c)) * c)


def relu_slope(q, k):
    return (PI - mp.acos(k / q)) / (2 * PI)


def leaky_relu(q, k):
    return (1 + mp.mpf(SLOPE) ** 2) * relu(q, k) - 2 * mp.mpf(SLOPE) * relu(q, -k)


def leaky_relu_slope(q, k):
    return (1 + mp.mpf(SLOPE) ** 2) * relu_slope(q, k) + 2 * mp.mpf(SLOPE) * relu_slope(q, -k)


def absolute(q, k):
    c = k / q
    return 2 * q / PI * (mp.sqrt(1 - c * c) + c * mp.asin(c))


def absolute_slope(q, k):
    return 2 / PI * mp.asin(k / q)


def erf(q, k):
    return 2 / PI * mp.asin(2 * k / (1 + 2 * q))


def erf_slope(q, k):
    return 4 / PI / mp.sqrt((1 + 2 * q) ** 2 - (2 * k) ** 2)


def gelu(q, k):
    s, r = 1 + q, mp.sqrt((1 + q) ** 2 - k * k)
    orthant = mp.mpf(1) / 4 + mp.asin(k / s) / (2 * PI)
    return k * orthant + (q * q + k * k - 2 * q * k * k / s) / (2 * PI * r)


def gelu_slope(q, k):
    s, r = 1 + q, mp.sqrt((1 + q) ** 2 - k * k)
    orthant = mp.mpf(1) / 4 + mp.asin(k / s) / (2 * PI)
    rest = (3 * k - 4 * q * k / s) / r + k * (q * q + k * k - 2 * q * k * k / s) / r**3
    return orthant + rest / (2 * PI)


def sine(q, k):
    return mp.exp(-q) * mp.sinh(k)


def sine_slope(q, k):
    return mp.exp(-q) * mp.cosh(k)


def tanh(q, k):
    moments, gaps = tanh_moments(q), tanh_gaps(q, q - k)
    return moments[0] - gaps[0]


def tanh_slope(q, k):
    moments, gaps = tanh_moments(q), tanh_gaps(q, q - k)
    return moments[1] - gaps[1]


@cache
def grid(step):
    """Nodes that are not negative, and weights of the standard normal; that of 0 is halved."""
    nodes = [gmpy2.mpfr(i) * step for i in range(int(9.6 / step) + 1)]
    root = gmpy2.sqrt(2 * gmpy2.const_pi())
    weights = [step * gmpy2.exp(-z * z / 2) / root for z in nodes]
    return nodes, [weights[0] / 2, *weights[1:]]


def grid_for(q):
    """A step for 21 digits: the poles of tanh are at a distance π / (2 sqrt(q))."""
    step = min(0.125, 3.14 / (2 * float(q) ** 0.5) * 0.129)
    return grid(gmpy2.mpfr(int(step * 256)) / 256)


@cache
def tanh_moments(q):
    """E[tanh²] and E[(1 - tanh²)²]."""
    with gmpy2.context(precision=110):
        root = gmpy2.sqrt(to_gmpy(q))
        squares = [(gmpy2.tanh(root * z) ** 2, w) for z, w in zip(*grid_for(q), strict=True)]
        first = 2 * sum(w * t for t, w in squares)
        return to_mpmath(first), to_mpmath(2 * sum(w * (1 - t) ** 2 for t, w in squares))


@cache
def tanh_gaps(q, deficit):
    """Half of E[(f(u) - f(v))²] for f = tanh and f = 1 - tanh².

    With u and v = sqrt(q - deficit / 2) a ± sqrt(deficit / 2) b both are even in a and in b.
    """
    if deficit == 0:
        return mp.mpf(0), mp.mpf(0)
    with gmpy2.context(precision=110):
        along = gmpy2.sqrt(max(to_gmpy(q - deficit / 2), gmpy2.mpfr(0)))
        across = gmpy2.sqrt(to_gmpy(deficit / 2))
        nodes, weights = grid_for(q)
        first = second = gmpy2.mpfr(0)
        for a, w in zip(nodes, weights, strict=True):
            for b, v in zip(nodes, weights, strict=True):
                if w * v < 1e-25:
                    break
                x, y = gmpy2.tanh(along * a + across * b), gmpy2.tanh(along * a - across * b)
                gap = gmpy2.tanh(2 * across * b) * (1 - x * y)  # x - y
                square = w * v * gap**2
                first += square
                second += square * (x + y) ** 2
        return to_mpmath(2 * first), to_mpmath(2 * second)


def to_gmpy(x):
    return gmpy2.mpfr(mp.nstr(x, 35))


def to_mpmath(x):
    return mp.mpf(str(x))


FORMULAS = {  # name: its formulas, and how JSON has it
    "relu": (relu, relu_slope, "relu"),
    "leaky_relu": (leaky_relu, leaky_relu_slope, ["leaky_relu", SLOPE]),
    "abs": (absolute, absolute_slope, "abs"),
    "erf": (erf, erf_slope, "erf"),
    "gelu": (gelu, gelu_slope, "gelu"),
    "sin": (sine, sine_slope, "sin"),
    "tanh": (tanh, tanh_slope, "tanh"),
}


def check_formulas():
    """E[phi' phi'] is the derivative of E[phi phi] in the covariance."""
    q, k = mp.mpf("1.3"), mp.mpf("0.4")
    with mp.workdps(60):
        for name, (value, slope, _) in FORMULAS.items():
            h = mp.mpf(10) ** (-6 if name == "tanh" else -15)
            difference = (value(q, k + h) - value(q, k - h)) / (2 * h)
            assert abs(difference - slope(q, k)) < 10 * h * h, name


# Networks. Numbers are such that variances stay in range at depth 500.


def dense(weight_var, bias_var):
    return {"part": "dense", "weight_var": weight_var, "bias_var": bias_var}


def chain(*parts):
    return {"part": "chain", "parts": list(parts)}


def repeat(part, times):
    return {"part": "repeat", "of": part, "times": times}


LAYER_NORM = {"part": "layer_norm"}
VARIANCES = {  # of plain layers: ordered ones, critical ones and chaotic ones
    "relu": (1.6, 0.1),
    "leaky_relu": (1.9, 0.05),
    "abs": (0.9, 0.1),
    "erf": (1.4, 0.05),
    "gelu": (1.5, 0.1),
    "sin": (1.5, 0.05),
    "tanh": (1.5, 0.1),
}


def plain(phi, numbers, depth):
    return chain(dense(*numbers), repeat(chain(phi, dense(*numbers)), depth))


def residual(phi, numbers, depth):
    block = {"part": "residual", "parts": [phi, dense(min(1.0, 5 / depth), 0.5 / depth)]}
    return chain(dense(0.9, 0.1), repeat(block, depth), dense(1.2, 0.0))


def layer_norm(phi, numbers, depth):
    return chain(dense(*numbers), repeat(chain(LAYER_NORM, phi, dense(*numbers)), depth))


def dropout(phi, numbers, depth):
    mask = {"part": "dropout", "keep": 0.9}
    return chain(dense(*numbers), repeat(chain(phi, mask, dense(0.9 * numbers[0], 0.1)), depth))


def addition(phi, numbers, depth):
    branches = [chain(phi, dense(0.8, 0.05)), dense(0.3, 0.02)]
    return chain(dense(1.1, 0.1), repeat({"part": "sum", "branches": branches}, depth))


def product(phi, numbers, depth):
    branches = [chain(dense(1.2, 0.1), phi), dense(0.9, 0.2)]
    block = chain({"part": "product", "branches": branches}, dense(1.3, 0.05), LAYER_NORM)
    return chain(dense(1.0, 0.1), repeat(block, depth))


def concat(phi, numbers, depth):
    branches = [phi, dense(0.8, 0.1)]
    joined = {"part": "concat", "branches": branches, "shares": [0.75, 0.25]}
    return chain(dense(*numbers), repeat(chain(joined, dense(numbers[0], 0.05)), depth))


SHAPES = {
    "chain": plain,
    "residual": residual,
    "layer_norm": layer_norm,
    "dropout": dropout,
    "sum": addition,
    "product": product,
    "concat": concat,
}


class State(NamedTuple):
    """Variance and covariances behind a part, and those of Θ."""

    q: mp.mpf
    k: list
    theta_q: mp.mpf
    theta_k: list


def each(rule, *states):
    """A state by a rule for (K, Θ) of all branches, at the variance and at each covariance."""
    at_one = rule(*((s.q, s.theta_q) for s in states))
    found = [rule(*both) for both in zip(*(zip(s.k, s.theta_k) for s in states))]  # noqa: B905
    return State(at_one[0], [x for x, _ in found], at_one[1], [y for _, y in found])


def after(part, state):
    """The state behind a part."""
    match part["part"]:
        case "dense":
            return affine(mp.mpf(part["weight_var"]), mp.mpf(part["bias_var"]), state)
        case "act":
            value, slope, _ = FORMULAS[part["activation"]]
            return each(lambda s: (value(state.q, s[0]), slope(state.q, s[0]) * s[1]), state)
        case "layer_norm":
            return each(lambda s: (s[0] / state.q, s[1] / state.q), state)
        case "dropout":
            keep = mp.mpf(part["keep"])
            return State(state.q / keep, state.k, state.theta_q / keep, state.theta_k)
        case "chain":
            return in_turn(part["parts"], state)
        case "repeat":
            return in_turn([part["of"]] * part["times"], state)
        case "residual":
            return added([state, in_turn(part["parts"], state)])
    return joined(part, [after(branch, state) for branch in part["branches"]])


def joined(part, branches):
    match part["part"]:
        case "sum":
            return added(branches)
        case "product":
            return each(lambda s, t: (s[0] * t[0], s[1] * t[0] + s[0] * t[1]), *branches)
        case "concat":
            return added(branches, [mp.mpf(share) for share in part["shares"]])


def affine(w, b, state):
    return each(lambda s: (b + w * s[0], b + w * s[0] + w * s[1]), state)


def in_turn(parts, state):
    for part in parts:
        state = after(part, state)
    return state


def added(branches, weights=(1, 1)):
    def rule(*pairs):
        return tuple(sum(w * p[i] for w, p in zip(weights, pairs, strict=True)) for i in (0, 1))

    return each(rule, *branches)


def row(shape, name, depth):
    phi = {"part": "act", "activation": name}
    network = SHAPES[shape](phi, VARIANCES[name], depth)
    cosines, one_minus = FEW if name == "tanh" and depth > 10 else (COSINES, ONE_MINUS)
    k = [mp.mpf(c) for c in cosines] + [1 - mp.mpf(e) for e in one_minus]
    found = after(network, State(mp.mpf(1), k, mp.mpf(0), [mp.mpf(0)] * len(k)))
    return {
        "shape": shape,
        "activation": name,
        "depth": depth,
        "network": with_spec(network),
        "cosines": [c.hex() for c in cosines],
        "one_minus": [e.hex() for e in one_minus],
        "nngp": shown(found.q, found.k),
        "ntk": shown(found.theta_q, found.theta_k),
    }


def with_spec(part):
    """Activations as JSON has them."""
    if isinstance(part, list):
        return [with_spec(one) for one in part]
    if not isinstance(part, dict):
        return part
    if part["part"] == "act":
        return {**part, "activation": FORMULAS[part["activation"]][2]}
    return {key: with_spec(value) for key, value in part.items()}


def shown(variance, values):
    deficits = [mp.nstr(variance - value, 30) for value in values]
    return {"variance": mp.nstr(variance, 30), "deficits": deficits}


def main() -> None:
    check_formulas()
    rows = []
    for name in FORMULAS:
        for shape in SHAPES:
            rows += [row(shape, name, depth) for depth in DEPTHS]
        print(name, flush=True)
    path = Path(__file__).with_name("shapes.json")
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    with mp.workdps(200):
        main()
