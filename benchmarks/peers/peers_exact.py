"""Exact kernels by mpmath, for points of a circle, and what the libraries' errors are.

relu and erf have closed forms. For tanh both integrals are sums over an even grid of standard
normal variables: the integrand is analytic, so such a sum converges exponentially.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Task = dict[str, Any]
DIGITS = 50
STEP, LARGEST = 0.125, 9.5  # of the grid; the sum has converged to 20 digits with these


def write(path: Path, nets: list[Task], X: np.ndarray) -> None:
    """Compute what the file lacks. Some tens of seconds for tanh."""
    known = json.loads(path.read_text()) if path.exists() else {}
    for net in nets:
        if name(net) not in known:
            known[name(net)] = exact(net, X)
    path.write_text(json.dumps(known, indent=1) + "\n")


def name(net: Task) -> str:
    return "{activation} {depth} {weight_var} {bias_var}".format(**net)


def exact(net: Task, X: np.ndarray) -> dict[str, Any]:
    """K(x, x), and 1 - K(x, x') / K(x, x) of the first row with all, rounded at the end."""
    import mpmath

    with mpmath.workdps(DIGITS):
        mp = mpmath.mp
        first = [mp.mpf(v) for v in X[0].tolist()]
        found = []
        for row in X.tolist():
            other = [mp.mpf(v) for v in row]
            inner = sum(a * b for a, b in zip(first, other, strict=True))
            length = mp.sqrt(sum(a * a for a in first) * sum(b * b for b in other))
            variance, covariance = recursion(net, inner / length)
            found.append(1 - covariance / variance)
        return {"variance": float(variance), "deficits": [float(v) for v in found]}


def recursion(net: Task, cosine: Any) -> tuple[Any, Any]:
    """Variance and covariance after the last layer, of inputs with x·x/d = 1."""
    import mpmath

    w, b = mpmath.mpf(str(net["weight_var"])), mpmath.mpf(str(net["bias_var"]))
    moment = {"relu": relu, "erf": erf, "tanh": tanh}[net["activation"]]
    q, k = b + w, b + w * cosine
    for _ in range(net["depth"]):
        q, k = b + w * moment(q, q), b + w * moment(q, k)
    return q, k


def relu(q: Any, k: Any) -> Any:
    from mpmath import mp

    c = min(k / q, mp.one)
    return q / (2 * mp.pi) * (mp.sqrt(1 - c * c) + (mp.pi - mp.acos(c)) * c)


def erf(q: Any, k: Any) -> Any:
    from mpmath import mp

    return 2 / mp.pi * mp.asin(2 * k / (1 + 2 * q))


def tanh(q: Any, k: Any) -> Any:
    """E tanh(u)², less half of E (tanh(u) - tanh(v))², which keeps its digits as k nears q.

    With u and v = sqrt((q + k) / 2) a ± sqrt((q - k) / 2) b the sum is even in a and in b.
    """
    from mpmath import mp

    nodes, weights = grid()
    pairs = list(zip(nodes, weights, strict=True))
    second = 2 * mp.fsum(w * mp.tanh(mp.sqrt(q) * z) ** 2 for z, w in pairs)
    along, across = mp.sqrt((q + k) / 2), mp.sqrt((q - k) / 2)
    if across == 0:
        return second
    gaps = mp.zero
    for a, w in pairs:
        steps = ((mp.tanh(along * a + across * b), mp.tanh(along * a - across * b)) for b in nodes)
        gaps += w * mp.fsum(v * (x - y) ** 2 for v, (x, y) in zip(weights, steps, strict=True))
    return second - 2 * gaps


@cache
def grid() -> tuple[list[Any], list[Any]]:
    """Nodes that are not negative, and weights; that of 0 is halved, as it has no mirror image."""
    from mpmath import mp

    nodes = [mp.mpf(i) * mp.mpf(STEP) for i in range(int(LARGEST / STEP) + 1)]
    weights = [mp.mpf(STEP) * mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi) for z in nodes]
    return nodes, [weights[0] / 2, *weights[1:]]


def errors(right: dict[str, Any], found: dict[str, Any]) -> dict[str, float]:
    """Largest error of an entry over K(x, x), and of a deficit over itself (cosines above 0)."""
    variance, deficits = right["variance"], np.array(right["deficits"])
    entries = np.abs(np.array(found["row"]) / variance - (1 - deficits))
    told = np.array(found["deficits"])[1:]
    near = slice(0, len(deficits) // 2)
    relative = np.abs(told - deficits[1:])[near] / deficits[1:][near]
    return {
        "entry": float(entries.max()),
        "entry_median": float(np.median(entries)),
        "deficit": float(relative.max()),
    }
