"""The scale of predicted errors by leave-one-out, against networks fitted without each point."""

import numpy as np
import pytest

import nngp
from nngp_paper import datasets
from nngp_paper.part import Results
from nngp_paper.runs.study import carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared.left_out_scale import read_scales, scale_study

SCOPE = Scope("digits", (30, 60), engine="cpu")


def test_the_scale_is_that_of_points_left_out(store):
    carry_out(store, scale_study(SCOPE))
    found = read_scales(Results(store, SCOPE))
    assert sorted(found) == [("relu", 30), ("relu", 60), ("tanh", 30), ("tanh", 60)]
    data = datasets.split("digits", 30)
    Y, net = data.targets(data.labels), nngp.Architecture(3, "relu", 2.0, 0.2)
    ratios = []
    for i in range(30):
        others = np.arange(30) != i
        posterior = nngp.condition(net, data.X[others], Y[others], engine="cpu")
        mean, variance = posterior.predict(data.X[i : i + 1], noise=True)
        ratios.append((mean[0] - Y[i]) ** 2 / variance[0])
    assert found["relu", 30] == pytest.approx(np.mean(ratios), rel=1e-6)
    (run,) = store.runs("loo_scale", where={"train": 30, "activation": "relu"})
    assert (run.device, run.jitter) == ("cpu", 1e-10)
    assert run.result["left_out_mse"] > 0


def test_only_the_scope_is_read(store):
    carry_out(store, scale_study(SCOPE))
    assert list(read_scales(Results(store, Scope("digits", (60,), activations=("relu",))))) == [
        ("relu", 60)
    ]
    assert read_scales(Results(store, Scope("mnist", (60,)))) == {}
