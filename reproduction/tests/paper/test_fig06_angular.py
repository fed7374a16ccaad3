"""Figure 6: the study gives the arc-cosine formula; its curves are read and drawn."""

from functools import partial

import numpy as np
import pytest

import nngp
from nngp.plots.angular import compute_angular_structure
from nngp_paper.part import Results
from nngp_paper.parts import fig06_angular
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.scope import Scope

SCOPE = Scope("digits", (100,))


def put(store, study, result):
    carry_out(store, Study(study.experiment, study.configs, lambda _: Outcome(result)))


def test_angular_structure_is_the_arc_cosine_formula(monkeypatch):
    table = nngp.curves.LookupTable("relu", n_g=101, n_v=101, n_c=100, s_max=10.0)
    coarse = partial(compute_angular_structure, table=table)  # the real one takes long
    monkeypatch.setattr(fig06_angular, "compute_angular_structure", coarse)
    (config,) = fig06_angular.study(SCOPE).configs
    assert config == {"activation": "relu", "depth": 9, "weight_var": 1.6, "bias_var": 0.1}
    result = fig06_angular.study(SCOPE).work(config).result
    theta = np.array(result["theta"])
    assert (theta[0], theta[-1]) == (0.0, pytest.approx(np.pi, abs=1e-7))
    K, q = 0.1 + 1.6 * np.cos(theta), 1.7
    for row in result["exact"]:
        np.testing.assert_allclose(row, K, atol=1e-6)
        angle = np.arccos(np.clip(K / q, -1, 1))
        K = 0.1 + 0.8 * q / np.pi * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
        q = 0.1 + 0.8 * q
    assert np.shape(result["exact"]) == (10, 400)
    at = [np.interp(result["sparse_theta"], theta, row) for row in result["exact"]]
    np.testing.assert_allclose(result["lookup"], at, atol=0.02)


def test_angular_structure_is_read_and_drawn(store, pyplot):
    curves = {
        "theta": [0.0, 1.0, 3.0],
        "exact": [[3.0, 2.0, 1.0], [2.5, 2.0, 1.5]],
        "sparse_theta": [0.0, 3.0],
        "lookup": [[3.1, 1.1], [2.6, 1.6]],
    }
    put(store, fig06_angular.study(SCOPE), curves)
    data = fig06_angular.read(Results(store, SCOPE))
    assert data.architecture.activation.name == "relu"
    assert (data.architecture.depth, data.architecture.bias_var) == (9, 0.1)
    for name, values in curves.items():
        np.testing.assert_array_equal(getattr(data, name), values)
    (axes,) = fig06_angular.draw(data).axes
    np.testing.assert_array_equal(axes.lines[3].get_ydata(), [2.6, 1.6])
