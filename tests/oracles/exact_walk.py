"""Kernels of networks of parts in 120 digits, by walking the parts. The package describes the
networks and is used for nothing else."""

import mpmath as mp

import nngp


def _relu(q1, q2, k):
    """E[relu relu] and E[step step]."""
    size = mp.sqrt(q1 * q2)
    c = _cosine(k / size)
    rest = mp.pi - mp.acos(c)
    return size * (mp.sqrt(1 - c * c) + rest * c) / (2 * mp.pi), rest / (2 * mp.pi)


def _relu2(q1, q2, k):
    size = mp.sqrt(q1 * q2)
    c = _cosine(k / size)
    rest = mp.pi - mp.acos(c)
    value = 3 * c * mp.sqrt(1 - c * c) + rest * (1 + 2 * c * c)
    return size**2 * value / (2 * mp.pi), 4 * _relu(q1, q2, k)[0]


def _abs(q1, q2, k):
    sign = 2 * mp.asin(_cosine(k / mp.sqrt(q1 * q2))) / mp.pi
    return 2 * (_relu(q1, q2, k)[0] + _relu(q1, q2, -k)[0]), sign


def _erf(q1, q2, k):
    size = (1 + 2 * q1) * (1 + 2 * q2)
    return 2 * mp.asin(2 * k / mp.sqrt(size)) / mp.pi, 4 / (mp.pi * mp.sqrt(size - 4 * k * k))


def _cosine(c):
    return min(max(c, mp.mpf(-1)), mp.mpf(1))


# E[phi phi'] of two Gaussians, and the same of the slopes, by their variances and covariance.
LAYERS = {
    "identity": lambda q1, q2, k: (k, mp.mpf(1)),
    "relu": _relu,
    "relu2": _relu2,
    "abs": _abs,
    "erf": _erf,
    "sign": lambda q1, q2, k: (2 * mp.asin(_cosine(k / mp.sqrt(q1 * q2))) / mp.pi, mp.nan),
    "step": lambda q1, q2, k: (_relu(q1, q2, k)[1], mp.nan),
    "square": lambda q1, q2, k: (q1 * q2 + 2 * k * k, 4 * k),
    "sin": lambda q1, q2, k: tuple(mp.exp(-(q1 + q2) / 2) * f(k) for f in (mp.sinh, mp.cosh)),
    "cos": lambda q1, q2, k: tuple(mp.exp(-(q1 + q2) / 2) * f(k) for f in (mp.cosh, mp.sinh)),
}
PAIRS = ((0, 0), (1, 1), (0, 1))  # entries that a state holds: of K, then of the tangent kernel


def walk(part, state):
    """A state behind a part: K(x, x), K(x', x'), K(x, x') and the same of the tangent kernel."""
    k, theta = state[:3], state[3:]
    match part:
        case nngp.Dense(weight_var=w, bias_var=b):
            moved = [b + w * entry for entry in k]
            return moved + [a + w * t for a, t in zip(moved, theta, strict=True)]
        case nngp.Act(activation=phi):
            both = [
                LAYERS[phi.name](k[i], k[j], entry) for (i, j), entry in zip(PAIRS, k, strict=True)
            ]
            return [f for f, _ in both] + [
                slope * t if t else t for (_, slope), t in zip(both, theta, strict=False)
            ]
        case nngp.LayerNorm():
            sizes = [mp.sqrt(k[i] * k[j]) for i, j in PAIRS]
            return [entry / size for entry, size in zip(state, sizes * 2, strict=False)]
        case nngp.Dropout(keep=keep):
            return [entry / d for entry, d in zip(state, (keep, keep, 1) * 2, strict=False)]
        case nngp.Chain(parts=parts):
            for one in parts:
                state = walk(one, state)
            return state
        case nngp.Repeat():
            return walk(nngp.Chain(*[part.part] * part.times), state)
        case nngp.Residual(parts=parts):
            return _plus(state, walk(nngp.Chain(*parts), state))
        case nngp.Sum(branches=branches):
            return _plus(*(walk(one, state) for one in branches))
        case nngp.Concat(branches=branches):
            ends = [walk(one, state) for one in branches]
            return [
                sum(w * x for w, x in zip(part.shares, entry, strict=True))
                for entry in zip(*ends, strict=True)
            ]
        case nngp.Product(branches=branches):
            first, *others = (walk(one, state) for one in branches)
            for other in others:
                parts = zip(first[:3], first[3:], other[:3], other[3:], strict=True)
                products = [(a * c, b * c + a * d) for a, b, c, d in parts]
                first = [p for p, _ in products] + [t for _, t in products]
            return first
        case nngp.ContinuousResidual(parts=parts):
            return _integrated(nngp.Chain(*parts), state, 4 * part.steps)
    raise TypeError(part)


def _plus(*states):
    return [sum(entry) for entry in zip(*states, strict=True)]


def _integrated(block, state, steps):
    """dK/dt is what a block makes of K: the classical Runge-Kutta method, whose error is 4⁻⁴ of
    the package's, which takes a quarter of the steps."""

    def after(slope, part):
        return [a + part * b / steps for a, b in zip(state, slope, strict=True)]

    for _ in range(steps):
        first = walk(block, state)
        second = walk(block, after(first, mp.mpf(1) / 2))
        third = walk(block, after(second, mp.mpf(1) / 2))
        fourth = walk(block, after(third, mp.mpf(1)))
        mean = _plus(first, [2 * s for s in second], [2 * s for s in third], fourth)
        state = after(mean, mp.mpf(1) / 6)
    return state


def exact_entries(part, X, *, tangent=False):
    """The diagonal entries and the entry off the diagonal for the two rows of X."""
    with mp.workdps(120):
        rows = [[mp.mpf(float(x)) for x in row] for row in X]
        k = [mp.fdot(rows[i], rows[j]) / len(rows[0]) for i, j in PAIRS]
        out = walk(part, k + [mp.mpf(0)] * 3)
        return out[3:] if tangent else out[:3]
