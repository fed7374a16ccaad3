"""Networks of every part: K and Θ within 1e-11 of mpmath, deficits to 1e-8, reported errors true.

The exact values are in oracles/shapes.json (see make_shapes.py there): chains of each part with
seven activations at depths 1 to 500, at cosines to ±1 and where 1 - c is 1e-30.
"""

import json
import warnings
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import nngp

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "shapes.json").read_text())
SHAPES = ("chain", "residual", "layer_norm", "dropout", "sum", "product", "concat")
NAMES = ("relu", "leaky_relu", "abs", "erf", "gelu", "sin", "tanh")
DEPTHS = (1, 10, 50, 500)


def test_the_oracle_covers_what_it_should():
    found = {(row["shape"], row["activation"], row["depth"]) for row in ROWS}
    assert found == {(s, n, d) for s in SHAPES for n in NAMES for d in DEPTHS}
    assert len(ROWS) == len(found)
    full = [row for row in ROWS if row["activation"] != "tanh" or row["depth"] <= 10]
    assert all(len(row["cosines"]) == 9 and len(row["one_minus"]) == 3 for row in full)


def is_quick(row):
    """500 layers take seconds, and without a formula for phi or phi' a layer is fitted for each
    variance: for each depth where variances do not settle, as those of residual networks do not."""
    name, depth = row["activation"], row["depth"]
    few = depth == 50 and name in ("relu", "gelu", "erf")
    return depth <= 10 or few or (row["shape"], name, depth) == ("residual", "relu", 500)


def marks(row):
    deepest = (row["shape"], row["activation"], row["depth"]) == ("residual", "tanh", 500)
    return [pytest.mark.deep if deepest else pytest.mark.slow]


def named(row):
    return f"{row['shape']} {row['activation']} {row['depth']}"


QUICK = {
    shape: [row for row in ROWS if row["shape"] == shape and is_quick(row)] for shape in SHAPES
}
CASES = [
    *(pytest.param(rows, id=shape) for shape, rows in QUICK.items()),
    *(pytest.param([r], id=named(r), marks=marks(r)) for r in ROWS if not is_quick(r)),
]


def compiled(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nngp.errors.ToleranceWarning)
        return nngp.curves.compile_curve(net)


def deficits(curve, row):
    cosines = [float.fromhex(c) for c in row["cosines"]]
    one_minus = [float.fromhex(e) for e in row["one_minus"]]
    at = curve.deficit(cosines), curve.deficit(one_minus=one_minus)
    positive = np.concatenate([np.array(cosines) >= 0, [True] * len(one_minus)])
    return np.concatenate(at), positive


@pytest.mark.parametrize("which", ["nngp", "ntk"])
@pytest.mark.parametrize("rows", CASES)
def test_against_mpmath(rows, which):
    for row in rows:
        check(row, which)


def check(row, which):
    net = nngp.Network.from_dict(row["network"])
    own = net if which == "nngp" else nngp.NTK(net)
    curve = compiled(own)
    found, positive = deficits(curve, row)
    with mp.workdps(60):
        variance = mp.mpf(row[which]["variance"])
        exact = [mp.mpf(d) for d in row[which]["deficits"]]
        gaps = [mp.mpf(float(d)) - e for d, e in zip(found, exact, strict=True)]
        off = (mp.mpf(curve.variance) - variance) / variance
        relative = [abs(float(g / e)) if e else abs(float(g)) for g, e in zip(gaps, exact)]  # noqa: B905
        entries = [abs(float(off - g / variance)) for g in gaps]
    relative = np.array(relative)[positive]
    assert max(abs(float(off)), *entries) <= min(1e-11, curve.error), named(row)
    assert relative.max() <= min(1e-8, curve.deficit_error), named(row)
    assert nngp.kernel_diag(own, [[1.0]])[0] == curve.variance, named(row)


def test_the_tangent_kernel_is_zero_where_there_are_no_weights_yet():
    """As at the first concatenation here, which is no variance that left float64."""
    both = nngp.Concat(nngp.Chain(), nngp.Chain(), shares=(0.5, 0.5))
    net = nngp.NTK(nngp.Chain(both, nngp.Dense(1.5, 0.2)))
    curve, plain = (
        nngp.curves.compile_curve(net),
        nngp.curves.compile_curve(nngp.NTK(nngp.Dense(1.5, 0.2))),
    )
    c = np.array([1.0, 0.3, -0.8])
    np.testing.assert_allclose(curve(c), plain(c), rtol=1e-12)
