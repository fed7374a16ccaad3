"""Writes kernels.json: K^L(c) of twelve networks in mpmath, 60 digits, for the table-driven test.

Run by hand (`python tests/oracles/make_kernels.py`, about half an hour); the result is committed.
Nothing here comes from the package. Activations with a textbook formula (Cho and Saul 2009,
Williams 1997) use it; tanh and silu are integrated by the trapezoid rule in two dimensions, in
coordinates rotated by 45 degrees, where it converges exponentially.
"""

import json
from pathlib import Path

import mpmath as mp

mp.mp.dps = 60
DEPTHS = (1, 3, 10, 50)
CORRELATIONS = (1.0, 1 - 1e-9, 0.999, 0.5, 0.0, -0.5, -0.999, -(1 - 1e-9), -1.0)
STEP, REACH = mp.mpf(1) / 12, 15  # good to 1e-40 for tanh and silu at variances up to 2

PI = mp.pi


def relu(q, c):
    return q / (2 * PI) * (mp.sqrt(1 - c * c) + (PI - mp.acos(c)) * c)


def absolute(q, c):
    return 2 * q / PI * (mp.sqrt(1 - c * c) + c * mp.asin(c))


def leaky_relu(q, c):
    # x+ + slope * x-, expanded into the four half-plane moments
    slope = mp.mpf(0.01)
    same, opposite = relu(q, c), relu(q, -c)
    return (1 + slope**2) * same - 2 * slope * opposite


def step(q, c):
    return (PI - mp.acos(c)) / (2 * PI)


def sign(q, c):
    return 1 - 2 * mp.acos(c) / PI


def erf(q, c):
    return 2 / PI * mp.asin(2 * q * c / (1 + 2 * q))


def gelu(q, c):
    # E[u v Phi(u) Phi(v)] by differentiating E[exp(au + bv) Phi(u) Phi(v)] at a = b = 0,
    # that is P(X <= u, Y <= v) tilted: written out with the arcsine law and its derivatives
    r = mp.sqrt((1 + q) ** 2 - (q * c) ** 2)
    orthant = mp.mpf(1) / 4 + mp.asin(q * c / (1 + q)) / (2 * PI)
    return q * c * orthant + q * q / (2 * PI * r) * (1 + c * c - 2 * q * c * c / (1 + q))


def sine(q, c):
    return (mp.exp(-q * (1 - c)) - mp.exp(-q * (1 + c))) / 2


def cosine(q, c):
    return (mp.exp(-q * (1 - c)) + mp.exp(-q * (1 + c))) / 2


def gaussian(q, c):
    return 1 / mp.sqrt((1 + 2 * q) ** 2 - (2 * q * c) ** 2)


def integrated(phi):
    nodes = [STEP * i for i in range(-int(REACH / STEP), int(REACH / STEP) + 1)]
    weight = [STEP * mp.exp(-z * z / 2) / mp.sqrt(2 * PI) for z in nodes]
    floor = mp.mpf(10) ** -58

    def value(q, c):
        s = mp.sqrt(q)
        if abs(c) == 1:
            return sum(w * phi(s * z) * phi(s * c * z) for z, w in zip(nodes, weight, strict=True))
        alpha, beta = s * mp.sqrt((1 + c) / 2), s * mp.sqrt((1 - c) / 2)
        total = mp.mpf(0)
        middle = len(nodes) // 2
        for j in range(middle, len(nodes)):  # z2 -> -z2 exchanges u and v
            fold = weight[j] * (1 if j == middle else 2)
            shift = beta * nodes[j]
            for z, w in zip(nodes, weight, strict=True):
                if w * fold > floor:
                    total += w * fold * phi(alpha * z + shift) * phi(alpha * z - shift)
        return total

    return value


NETWORKS = {  # activation: (formula, weight_var, bias_var); ordered, critical and chaotic ones
    "relu": (relu, 1.6, 0.1),
    "leaky_relu": (leaky_relu, 2.0, 0.0),
    "abs": (absolute, 1.0, 0.05),
    "step": (step, 2.0, 0.1),
    "sign": (sign, 1.5, 0.0),
    "erf": (erf, 4.0, 0.05),
    "gelu": (gelu, 1.9, 0.1),
    "sin": (sine, 2.5, 0.0),
    "cos": (cosine, 3.0, 0.1),
    "gaussian": (gaussian, 4.0, 0.0),
    "tanh": (integrated(mp.tanh), 1.76, 0.05),
    "silu": (integrated(lambda x: x / (1 + mp.exp(-x))), 2.0, 0.3),
}


def kernels(formula, weight_var, bias_var, corr):
    w, b = mp.mpf(weight_var), mp.mpf(bias_var)
    variance, cov = w + b, w * mp.mpf(corr) + b
    for depth in range(1, max(DEPTHS) + 1):
        c = cov / variance
        cov, variance = b + w * formula(variance, c), b + w * _second_moment(formula, variance)
        if depth in DEPTHS:
            yield depth, cov, variance


_MOMENTS: dict = {}


def _second_moment(formula, q):
    key = (id(formula), q)
    if key not in _MOMENTS:
        _MOMENTS[key] = formula(q, mp.mpf(1))
    return _MOMENTS[key]


def main() -> None:
    rows = []
    for name, (formula, weight_var, bias_var) in NETWORKS.items():
        for corr in CORRELATIONS:
            for depth, value, variance in kernels(formula, weight_var, bias_var, corr):
                rows.append(
                    {
                        "activation": name,
                        "weight_var": weight_var,
                        "bias_var": bias_var,
                        "depth": depth,
                        "corr": corr.hex(),
                        "value": mp.nstr(value, 40),
                        "variance": mp.nstr(variance, 40),
                    }
                )
        print(name, flush=True)
    path = Path(__file__).with_name("kernels.json")
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
