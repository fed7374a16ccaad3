"""Expected and realised errors: binned by hand, and from a kernel written out here."""

from pathlib import Path

import numpy as np
import pytest

from nngp import datasets
from nngp.paper.scope import Scope
from nngp.paper.studies import doubt as module
from nngp.paper.studies.doubt import binned, correlation, doubt_study
from nngp.runs import RunStore
from nngp.runs.study import carry_out

DIGITS = Scope("digits", (200, 100), engine="cpu")


def relu_kernel(X, Z, depth, weight_var, bias_var):
    """Eq. 5 with the arc-cosine formula of app. B, for inputs of x·x/d = 1."""
    d = X.shape[1]
    K, q = bias_var + weight_var * X @ Z.T / d, bias_var + weight_var
    for _ in range(depth):
        theta = np.arccos(np.clip(K / q, -1, 1))
        K = bias_var + weight_var * q / (2 * np.pi) * (
            np.sin(theta) + (np.pi - theta) * np.cos(theta)
        )
        q = bias_var + weight_var * q / 2
    return K, q


def test_the_runs_are_the_papers_network_on_every_size():
    study = doubt_study(DIGITS)
    assert study.experiment == "doubt"
    assert [(c["train"], c["activation"]) for c in study.configs] == [
        (100, "relu"),
        (100, "tanh"),
        (200, "relu"),
        (200, "tanh"),
    ]
    network = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}
    assert study.configs[0] == {
        "dataset": "digits",
        "train": 100,
        "test": 500,
        "activation": "relu",
        **network,
        "bin": 20,
    }
    (one,) = doubt_study(Scope("mnist", (50_000,), activations=("gelu", "tanh"))).configs
    assert (one["activation"], one["test"], one["bin"]) == ("tanh", 10_000, 100)


def test_the_numbers_are_those_of_linear_algebra():
    data = datasets.split("digits", 100)
    study = doubt_study(DIGITS)
    outcome = study.work(study.configs[0])
    K, q = relu_kernel(data.X, data.X, 3, 2.0, 0.2)
    K[np.diag_indices(100)] = q + 1e-10
    cross, _ = relu_kernel(data.X_test, data.X, 3, 2.0, 0.2)
    mean = cross @ np.linalg.solve(K, data.targets(data.labels))
    variance = q - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
    squares = (mean - data.targets(data.labels_test)) ** 2
    rows = np.argsort(variance).reshape(25, 20)
    expected, realised = variance[rows].mean(axis=1), squares[rows].mean(axis=(1, 2))
    result = outcome.result
    np.testing.assert_allclose(result["predicted"], expected, rtol=1e-5)
    np.testing.assert_allclose(result["realised"], realised, rtol=1e-5)
    assert result["correlation"] == pytest.approx(np.corrcoef(expected, realised)[0, 1], abs=1e-5)
    assert result["points"] == 500
    assert (outcome.device, outcome.jitter) == ("cpu", 1e-10)


def test_noise_is_part_of_what_is_expected(monkeypatch):
    noisy = module.condition
    monkeypatch.setattr(
        module, "condition", lambda *args, **more: noisy(*args, noise_var=100.0, **more)
    )
    study = doubt_study(DIGITS)
    outcome = study.work(study.configs[0])
    assert min(outcome.result["predicted"]) > 100
    assert outcome.jitter == 100.0


def test_data_are_read_once_a_size_from_where_they_are(tmp_path, monkeypatch):
    asked, real = [], module.split

    def split(name, train, *, data):
        asked.append((name, train, data))
        return real(name, train)

    monkeypatch.setattr(module, "split", split)
    scope = Scope("digits", (100, 200), data=Path("elsewhere"), engine="cpu")
    with RunStore(tmp_path / "runs.db") as store:
        keys = carry_out(store, doubt_study(scope))
        assert all(store.get(key).status == "done" for key in keys)
    assert asked == [("digits", 100, Path("elsewhere")), ("digits", 200, Path("elsewhere"))]


def test_the_engine_is_the_scopes():
    study = doubt_study(Scope("digits", (100,), engine="abacus"))
    with pytest.raises(ValueError, match="abacus"):
        study.work(study.configs[0])


def test_bins_go_up_in_what_is_expected_and_hold_all_points():
    expected, errors = np.array([5.0, 1.0, 4.0, 2.0, 3.0]), np.array([50.0, 10.0, 0.0, 30.0, 20.0])
    predicted, realised = binned(expected, errors, 2)
    assert predicted.tolist() == [2.0, 4.5]  # of 1, 2, 3 and of 4, 5
    assert realised.tolist() == [20.0, 25.0]
    assert binned(expected, errors, 9)[0].tolist() == [3.0]


def test_what_does_not_vary_does_not_correlate():
    up = np.array([1.0, 2.0, 4.0])
    assert correlation(up, 3 - 2 * up) == pytest.approx(-1)
    for pair in ((up, np.ones(3)), (np.ones(3), up)):
        with pytest.raises(ArithmeticError, match="nothing correlates"):
            correlation(*pair)
