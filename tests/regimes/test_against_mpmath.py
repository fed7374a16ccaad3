"""Fixed points, slopes and the critical line of tanh and silu agree with mpmath to 1e-10."""

import json
from pathlib import Path

import numpy as np
import pytest

from nngp import regimes

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "regimes.json").read_text())
TOLERANCE = 1e-10


def name_of(row):
    return f"{row['activation']}-{row['weight_var']}-{row['bias_var']}"


@pytest.mark.parametrize("row", ORACLE["networks"], ids=name_of)
def test_networks(row):
    network = row["activation"], row["weight_var"], row["bias_var"]
    names = ("variance", "chi", "variance_slope", "one_minus_correlation", "chi_at_fixed_point")
    expected = {name: float(row[name]) for name in names}
    scale = regimes.depth_scale(*network)
    found = {
        "variance": regimes.variance_fixed_point(*network),
        "chi": regimes.chi(*network),
        "variance_slope": np.exp(-1 / scale.xi_q),
        "one_minus_correlation": 1 - regimes.correlation_fixed_point(*network),
        "chi_at_fixed_point": regimes.chi(*network, at="fixed point"),
    }
    assert found == pytest.approx(expected, rel=TOLERANCE, abs=1e-15)
    assert np.exp(-1 / scale.xi_c) == pytest.approx(expected["chi_at_fixed_point"], rel=TOLERANCE)


@pytest.mark.parametrize("row", ORACLE["line"], ids=name_of)
def test_critical_line(row):
    name, bias_var = row["activation"], row["bias_var"]
    weight_var, variance = float(row["weight_var"]), float(row["variance"])
    edge = regimes.edge_of_chaos(name, [bias_var])
    assert edge.weight_var[0] == pytest.approx(weight_var, rel=TOLERANCE)
    assert edge.variance[0] == pytest.approx(variance, rel=TOLERANCE)
    assert regimes.critical_line(name, bias_var) == edge.weight_var[0]
    # silu's line falls and rises again, so this may be another bias_var on it
    other = regimes.critical_line(name, weight_var=weight_var)
    assert regimes.critical_line(name, other) == pytest.approx(weight_var, rel=TOLERANCE)
    assert name == "silu" or other == pytest.approx(bias_var, rel=1e-9)
    assert regimes.phase(name, weight_var, bias_var) == "critical"
