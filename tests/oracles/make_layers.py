"""Writes layers.json: E[phi(u) phi(v)] of eight activations at extreme variances and correlations.

Run by hand (`python tests/oracles/make_layers.py`, some minutes); the result is committed. Nothing
here comes from the package. Kinked activations: the inner expectation of v given u has an
elementary form, the outer integral is mpmath's, 40 digits. Smooth ones: the trapezoid rule in
rotated coordinates in 80-bit floats (1e-17), compared with mpmath at two points.
"""

import json
from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 40
VARIANCES = ((1e-6, 1e-6), (1.0, 1.0), (0.5, 4.0), (30.0, 30.0), (1e3, 1e3), (1e3, 1e-2))
CORRELATIONS = (0.0, 0.5, -0.5, 0.999, -0.999, 1 - 1e-9, -(1 - 1e-9), 1.0, -1.0)
ALPHA, SCALE = mp.mpf(1.6732632423543772), mp.mpf(1.0507009873554805)


def ramp(mean, deviation):
    """E[max(v, 0)]."""
    if deviation == 0:
        return max(mean, mp.mpf(0))
    t = mean / deviation
    return mean * mp.ncdf(t) + deviation * mp.npdf(t)


def exponential_part(mean, deviation):
    """E[(e^v - 1) 1{v < 0}]."""
    if deviation == 0:
        return mp.expm1(min(mean, mp.mpf(0)))
    t = -mean / deviation
    tilted = mp.exp(mean + deviation**2 / 2) * mp.ncdf(t - deviation)
    return tilted - mp.ncdf(t)


KINKED = {  # name: (phi, E[phi(v)] for v of a mean and a deviation, kinks)
    "elu": (
        lambda x: x if x > 0 else mp.expm1(x),
        lambda m, s: ramp(m, s) + exponential_part(m, s),
        (0,),
    ),
    "selu": (
        lambda x: SCALE * (x if x > 0 else ALPHA * mp.expm1(x)),
        lambda m, s: SCALE * (ramp(m, s) + ALPHA * exponential_part(m, s)),
        (0,),
    ),
    "hard_tanh": (
        lambda x: max(-1, min(1, x)),
        lambda m, s: ramp(m + 1, s) - ramp(m - 1, s) - 1,
        (-1, 1),
    ),
    "relu6": (
        lambda x: max(0, min(6, x)),
        lambda m, s: ramp(m, s) - ramp(m - 6, s),
        (0, 6),
    ),
}


def kinked(name, var1, var2, corr):
    phi, conditional, kinks = KINKED[name]
    s1, s2, c = mp.sqrt(mp.mpf(var1)), mp.sqrt(mp.mpf(var2)), mp.mpf(corr)
    spread = mp.sqrt((1 - c) * (1 + c))
    centres = [mp.mpf(k) / s1 for k in kinks]
    if c != 0:
        centres += [mp.mpf(k) / (s2 * c) for k in kinks]
    scales = [1 / s1, 1 / s2, spread]
    offsets = [s * 4**i for s in scales if s > 0 for i in range(-2, 14)]
    edges = {mp.mpf(-13), mp.mpf(13)} | {mp.mpf(i) for i in range(-12, 13)}
    for x in centres:
        edges |= {x} | {x + o for o in offsets} | {x - o for o in offsets}
    edges = sorted(e for e in edges if abs(e) <= 13)
    kept = [edges[0]]
    for e in edges[1:]:
        if e - kept[-1] > mp.mpf(10) ** -25:
            kept.append(e)
    return mp.quad(
        lambda z: mp.npdf(z) * phi(s1 * z) * conditional(s2 * c * z, s2 * spread), kept, maxdegree=5
    )


SMOOTH = {
    "tanh": (mp.tanh, np.tanh),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), lambda x: 0.5 * (1 + np.tanh(0.5 * x))),
    "silu": (lambda x: x / (1 + mp.exp(-x)), lambda x: 0.5 * x * (1 + np.tanh(0.5 * x))),
    "softplus": (
        lambda x: mp.log1p(mp.exp(x)),
        lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    ),
}


def steps(var1, var2, corr, digits):
    """Step sizes in z1 and z2 that leave less than 10^-digits, poles at ±i pi/2."""
    s = float(max(var1, var2)) ** 0.5
    largest = 2 * np.pi**2 / (2.31 * digits)
    out = []
    for cosine in (np.sqrt((1 + corr) / 2), np.sqrt((1 - corr) / 2)):
        pole = np.pi / 2 / max(s * cosine, 1e-30)
        out.append(min(largest, 2 * np.pi * pole / (2.31 * digits)))
    return out


def smooth_double(name, var1, var2, corr):
    phi = SMOOTH[name][1]
    one, long = np.longdouble(1), np.longdouble
    s1, s2 = np.sqrt(long(var1)), np.sqrt(long(var2))
    c = long(corr)
    alpha, beta = np.sqrt((one + c) / 2), np.sqrt((one - c) / 2)
    h1, h2 = (long(h) for h in steps(var1, var2, corr, 21))
    z1 = np.arange(-int(11 / h1), int(11 / h1) + 1).astype(long) * h1
    w1 = h1 * np.exp(-z1 * z1 / 2)
    total = long(0)
    for i in range(-int(11 / h2), int(11 / h2) + 1):
        z2 = h2 * i
        row = w1 * phi(s1 * (alpha * z1 + beta * z2)) * phi(s2 * (alpha * z1 - beta * z2))
        total += h2 * np.exp(-z2 * z2 / 2) * row.sum()
    value = total / (2 * long(np.pi) + long(2.4492935982947064e-16))
    return np.format_float_scientific(value, precision=21, unique=False)


def smooth_mp(name, var1, var2, corr):
    phi = SMOOTH[name][0]
    s1, s2, c = mp.sqrt(mp.mpf(var1)), mp.sqrt(mp.mpf(var2)), mp.mpf(corr)
    alpha, beta = mp.sqrt((1 + c) / 2), mp.sqrt((1 - c) / 2)
    h1, h2 = (mp.mpf(h) for h in steps(var1, var2, corr, 28))
    total = mp.mpf(0)
    for i in range(-int(12 / h2), int(12 / h2) + 1):
        z2 = h2 * i
        for j in range(-int(12 / h1), int(12 / h1) + 1):
            z1 = h1 * j
            weight = mp.exp(-(z1 * z1 + z2 * z2) / 2)
            if weight > 1e-30:
                u, v = s1 * (alpha * z1 + beta * z2), s2 * (alpha * z1 - beta * z2)
                total += weight * phi(u) * phi(v)
    return mp.nstr(total * h1 * h2 / (2 * mp.pi), 30)


def rows():
    for var1, var2 in VARIANCES:
        for corr in CORRELATIONS:
            for name in KINKED:
                yield name, var1, var2, corr, mp.nstr(kinked(name, var1, var2, corr), 30)
            for name in SMOOTH:
                value = smooth_double(name, var1, var2, corr)
                if (var1, var2) == (1.0, 1.0) and corr in (0.5, -0.999):
                    exact = smooth_mp(name, var1, var2, corr)
                    assert abs(mp.mpf(value) - mp.mpf(exact)) < 1e-17, (name, value, exact)
                    value = exact
                yield name, var1, var2, corr, value
        print(var1, var2, flush=True)


def main() -> None:
    keys = ("activation", "var1", "var2", "corr", "value")
    out = [
        json.dumps(dict(zip(keys, (n, v1, v2, c.hex(), value), strict=True)))
        for n, v1, v2, c, value in rows()
    ]
    Path(__file__).with_name("layers.json").write_text("[\n" + ",\n".join(out) + "\n]\n")


if __name__ == "__main__":
    main()
