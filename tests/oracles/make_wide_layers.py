"""Write wide_layers.json: E[phi(u) phi(v)] of numeric activations at variances from 1e-12 to 1e12.

    python tests/oracles/make_wide_layers.py

v is integrated over intervals that shrink towards 0, u given v likewise, by Gauss-Legendre rules in
80-bit floats. Nothing of the package is used. Two rules must agree to 1e-16 of the variances' root.
"""

import json
from pathlib import Path

import numpy as np

LONG = np.longdouble
ALPHA, SCALE = LONG("1.6732632423543772848170429916717"), LONG("1.0507009873554804934193349852946")


def expit(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


PHI = {
    "tanh": np.tanh,
    "sigmoid": expit,
    "silu": lambda x: x * expit(x),
    "softplus": softplus,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "relu6": lambda x: np.clip(x, 0, 6),
}
VARIANCES = [(1e-12, 1e-12), (1e-5, 1e-3), (30.0, 4e3), (1e5, 1e5), (1e6, 1e12)]
CORRELATIONS = [0.6, -0.97, 1 - 2.0**-13, 2.0**-20 - 1, 1.0, -1.0]
EVERYWHERE = [(q1, q2, c) for q1, q2 in VARIANCES for c in CORRELATIONS]
POINTS = [*EVERYWHERE, *((1e12, 1e12, c) for c in (1 - 2.0**-30, 1.0, -1.0))]
REACH = LONG(13)


def rule(order):
    """Gauss-Legendre in 80 bits: NumPy's nodes and one Newton step."""
    t = np.polynomial.legendre.leggauss(order)[0].astype(LONG)
    for _ in range(3):
        before, here = np.ones_like(t), t
        for k in range(1, order):
            before, here = here, ((2 * k + 1) * t * here - k * before) / LONG(k + 1)
        slope = order * (t * here - before) / (t * t - 1)
        t = t - here / slope
    return t, 2 / ((1 - t * t) * slope**2)


def composite(edges, order):
    """Nodes and weights between the edges along the last axis."""
    t, w = rule(order)
    half, middle = np.diff(edges) / 2, (edges[..., 1:] + edges[..., :-1]) / 2
    x = middle[..., None] + half[..., None] * t
    shape = (*edges.shape[:-1], -1)
    return x.reshape(shape), (half[..., None] * w).reshape(shape)


def special(s):
    """Where the activations bend, and distances that double from there on."""
    steps = 2.0 ** np.arange(-4, 1 + max(0, int(np.log2(float(REACH * s)) + 1)))
    linear = np.arange(1.0, 40)
    points = np.unique(np.concatenate([[0.0, 1, 6], steps, linear]))
    return np.unique(np.concatenate([-points, points])).astype(LONG)


def density(x, s):
    return np.exp(-((x / s) ** 2) / 2) / (s * np.sqrt(2 * LONG(np.pi)))


def expectation(phi, q1, q2, c, order):
    s1, s2, c = np.sqrt(LONG(q1)), np.sqrt(LONG(q2)), LONG(c)
    bends = special(max(s1, s2))
    grid = np.linspace(-REACH, REACH, 27).astype(LONG)
    edges = np.unique(np.clip(np.concatenate([bends, grid * s2]), -REACH * s2, REACH * s2))
    if abs(c) == 1:
        edges = np.unique(
            np.clip(np.concatenate([edges, bends * s2 / s1]), -REACH * s2, REACH * s2)
        )
        y, w = composite(edges, order)
        return np.sum(w * density(y, s2) * phi(y) * phi(c * s1 / s2 * y))
    sigma = s1 * np.sqrt((1 - c) * (1 + c))
    # In y the mean of phi(u) bends where c s1/s2 y does, at the scale of sigma
    if c != 0:
        wide = sigma * 2.0 ** np.arange(-3, 8)
        extra = np.concatenate([(bends[:, None] + np.append(-wide, wide)).ravel(), bends])
        extra = extra[np.abs(extra) < REACH * s1]
        if sigma < 1e-2:  # bends stay as they are
            extra = np.concatenate(
                [(np.array([0.0, -1, 1, 6])[:, None] + np.append(-wide, wide)).ravel(), bends]
            )
        edges = np.unique(
            np.clip(np.concatenate([edges, extra * s2 / (s1 * c)]), -REACH * s2, REACH * s2)
        )
    y, w = composite(edges, order)
    total = LONG(0)
    for start in range(0, len(y), 200):
        part = slice(start, start + 200)
        mean = c * s1 / s2 * y[part]
        inner = mean[:, None] + sigma * grid
        low, high = inner[:, :1], inner[:, -1:]
        near = np.clip(np.broadcast_to(bends, (len(mean), len(bends))), low, high)
        x, v = composite(np.sort(np.concatenate([inner, near], axis=1), axis=1), order)
        given = np.sum(v * density(x - mean[:, None], sigma) * phi(x), axis=1)
        total += np.sum(w[part] * density(y[part], s2) * phi(y[part]) * given)
    return total


def main():
    rows = []
    for name, phi in PHI.items():
        for q1, q2, c in POINTS:
            size = np.sqrt(expectation(phi, q1, q1, 1, 24) * expectation(phi, q2, q2, 1, 24))
            values = [expectation(phi, q1, q2, c, order) for order in (9, 12)]
            gap = abs(values[1] - values[0]) / size
            if gap > 1e-15:
                print(name, q1, q2, c, "left out: two rules differ by", float(gap), flush=True)
                continue
            row = {"activation": name, "var1": q1, "var2": q2, "corr": c}
            rows.append(row | {"value": str(values[1]), "scale": float(size)})
        print(name, len(rows), flush=True)
        text = ",\n".join(json.dumps(row) for row in rows)
        Path(__file__).with_name("wide_layers.json").write_text(f"[{text}]\n")


if __name__ == "__main__":
    main()
