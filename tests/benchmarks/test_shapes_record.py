"""Networks of every part agree with neural-tangents to 1e-8, as its record has them.

The record is benchmarks/results/shapes_neural_tangents.json (benchmarks/peers/peers_shapes.py):
kernels K and Θ of 16 networks, and ensembles of trained networks at four times.
"""

import json
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose

import nngp

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
RECORD = json.loads((RESULTS / "shapes_neural_tangents.json").read_text())


def test_the_record_covers_every_part():
    kinds = {name.partition(" ")[2] for name in RECORD["networks"]}
    parts = {"chain", "residual", "layer norm", "dropout", "sum", "product", "concat"}
    assert kinds == {*parts, "all"}
    assert len(RECORD["networks"]) == 16


def test_the_record_is_of_the_networks_that_the_script_describes():
    from peers_shapes import inputs, networks, training

    assert RECORD["networks"] == networks()
    assert RECORD["inputs"] == inputs()
    assert RECORD["training"] == training()


def test_kernels():
    for inputs in RECORD["inputs"]:
        for name in RECORD["networks"]:
            net = nngp.Network.from_dict(RECORD["networks"][name])
            X, theirs = np.array(RECORD["inputs"][inputs]), RECORD["kernels"][name][inputs]
            for own, which in ((net, "nngp"), (nngp.NTK(net), "ntk")):
                assert_allclose(nngp.kernel(own, X), theirs[which], rtol=1e-8, atol=0)
                assert_allclose(nngp.kernel_diag(own, X), np.diagonal(theirs[which]), rtol=1e-8)


def test_trained_ensembles():
    for time in RECORD["training"]["times"]:
        case = RECORD["training"]
        net = nngp.Network.from_dict(case["network"])
        X, Y, Xs = (np.array(case[name]) for name in ("X", "Y", "X_test"))
        rate = case["learning_rate"]
        ensemble = nngp.training.train_ensemble(net, X, Y, time=float(time), learning_rate=rate)
        found = RECORD["trained"][f"{time} test"]["ntk"]
        assert_allclose(ensemble.mean(Xs), found["mean"], rtol=0, atol=1e-8)
        assert_allclose(ensemble.covariance(Xs), found["covariance"], rtol=0, atol=1e-8)
