"""Derivatives of K and Θ in every variance and in the cosine, for every part, against mpmath.

mpmath differentiates the recursion of oracles/make_shapes.py, in 200 digits.
"""

import mpmath as mp
import numpy as np
import pytest
from make_shapes import (
    FORMULAS,
    LAYER_NORM,
    State,
    after,
    chain,
    dense,
    with_spec,
)

import nngp

DIGITS = 200  # whatever other tests have left as mpmath's precision
POINTS = (1 - 1e-6, 0.95, 0.3, -0.6)  # cosines


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(DIGITS):
        yield


def networks(name):
    """A network of each part, without repetition: every affine map has numbers of its own."""
    phi = {"part": "act", "activation": name}
    block = {"part": "residual", "parts": [phi, dense(0.6, 0.05)]}
    gated = {"part": "product", "branches": [chain(dense(1.2, 0.1), phi), dense(0.9, 0.3)]}
    shares = [0.75, 0.25]
    beside = {"part": "concat", "branches": [phi, dense(0.8, 0.15)], "shares": shares}
    mask = {"part": "dropout", "keep": 0.8}
    return {
        "chain": chain(dense(1.1, 0.1), phi, dense(1.5, 0.2), phi, dense(1.3, 0.05)),
        "residual": chain(dense(1.1, 0.1), block, block, dense(1.3, 0.05)),
        "layer_norm": chain(dense(1.1, 0.1), LAYER_NORM, phi, dense(1.5, 0.2), LAYER_NORM),
        "dropout": chain(mask, dense(1.1, 0.1), phi, mask, dense(1.4, 0.2), phi, dense(1.2, 0.1)),
        "sum": chain(
            dense(1.1, 0.1),
            {"part": "sum", "branches": [chain(phi, dense(0.8, 0.1)), dense(0.4, 0.05)]},
            phi,
            dense(1.3, 0.05),
        ),
        "product": chain(dense(1.1, 0.1), gated, dense(1.4, 0.2), phi, dense(1.3, 0.05)),
        "concat": chain(dense(1.1, 0.1), beside, dense(1.4, 0.2), phi, dense(1.3, 0.05)),
    }


def maps(part):
    """The affine maps, in the order of computation."""
    if part["part"] == "dense":
        return [part]
    inside = part.get("parts", part.get("branches", []))
    return [found for one in inside for found in maps(one)]


def copied(part):
    """A copy whose affine maps are all different objects."""
    own = dict(part)
    for key in ("parts", "branches"):
        if key in part:
            own[key] = [copied(one) for one in part[key]]
    return own


def exact(network, cosines):
    """K and Θ at the cosines, and at 1 for an input with itself."""
    start = State(mp.mpf(1), list(cosines), mp.mpf(0), [mp.mpf(0)] * len(cosines))
    found = after(network, start)
    return [*found.k, found.q], [*found.theta_k, found.theta_q]


def central(function, h):
    """The derivative of two lists, by a central difference."""
    up, down = function(h), function(-h)
    return [
        np.array([float((a - b) / (2 * h)) for a, b in zip(*both, strict=True)])
        for both in zip(up, down, strict=True)
    ]


def in_variance(network, index, name, h):
    moved = copied(network)
    part = maps(moved)[index]

    def at(step):
        changed = {**part, name: mp.mpf(part[name]) + step}
        kept = dict(part)
        part.update(changed)
        found = exact(moved, [mp.mpf(c) for c in POINTS])
        part.update(kept)
        return found

    return central(at, h)


def assert_close(found, wanted, rtol):
    size = max(np.abs(wanted).max(), 1e-3)  # of a layer norm some are zero
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * size)


QUICK = "relu", "erf"  # every part with each; the other activations in a chain and a product


def marks(shape, name):
    return () if name in QUICK or shape in ("chain", "product") else pytest.mark.slow


CASES = [
    pytest.param(shape, name, marks=marks(shape, name))
    for name in FORMULAS
    for shape in networks(name)
    if name != "tanh" or shape in ("chain", "residual")
]


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_in_every_variance_and_in_the_cosine(shape, name):
    network = networks(name)[shape]
    net = nngp.Network.from_dict(with_spec(network))
    # tanh is integrated to 20 digits only
    h, rtol = (mp.mpf("1e-7"), 1e-8) if name == "tanh" else (mp.mpf("1e-40"), 1e-10)
    curves = nngp.curves.compile_curve(net), nngp.curves.compile_curve(nngp.NTK(net))
    slopes = central(lambda step: exact(network, [mp.mpf(c) + step for c in POINTS]), h)
    for curve, slope in zip(curves, slopes, strict=True):
        assert_close(curve.derivative(POINTS), slope[:-1], rtol)
    for kind in ("weight_var", "bias_var"):
        found = [curve.sensitivity(POINTS, per_layer=True)[kind] for curve in curves]
        alike = [curve.sensitivity(POINTS)[kind] for curve in curves]
        at_one = [_at_one(curve, kind) for curve in curves]
        wanted = [in_variance(network, i, kind, h) for i in range(len(maps(network)))]
        for which in (0, 1):
            rows = np.array([both[which] for both in wanted])
            assert_close(found[which], rows[:, :-1], rtol)
            assert_close(at_one[which], rows[:, -1], rtol)
            assert_close(alike[which], rows[:, :-1].sum(axis=0), rtol)


def _at_one(curve, kind):
    """Derivatives of the kernel of an input with itself."""
    return [profile.at_one for profile in curve.sensitivities(per_layer=True)[kind]]
