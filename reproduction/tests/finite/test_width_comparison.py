"""The infinitely wide network beside finite ones: chosen on validation, once."""

import numpy as np
import pytest
from clouds import three_clouds

import nngp
from nngp_paper.finite import width_comparison as module
from nngp_paper.finite.width_comparison import infinite
from nngp_paper.runs import RunStore

DATA = three_clouds(noise=0.6)


def mean(net, X):
    """Eq. 8 in NumPy."""
    K = nngp.kernel(net, DATA.X) + 1e-10 * np.eye(len(DATA.X))
    return nngp.kernel(net, X, DATA.X) @ np.linalg.solve(K, DATA.targets(DATA.labels))


def test_the_best_on_validation_is_judged_on_test(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "WEIGHT_VARS", (0.5, 2.0))
    monkeypatch.setattr(module, "BIAS_VARS", (0.0, 1.0))
    with RunStore(tmp_path / "runs.db") as store:
        run = infinite(store, DATA, "erf", 2, engine="cpu")
        scores = {}
        for pair in ((0.5, 0.0), (0.5, 1.0), (2.0, 0.0), (2.0, 1.0)):
            outputs = mean(nngp.Architecture(2, "erf", *pair), DATA.X_val)
            accuracy = np.mean(outputs.argmax(axis=1) == DATA.labels_val)
            error = np.mean((outputs - DATA.targets(DATA.labels_val)) ** 2)
            scores[pair] = accuracy, -error
        best = max(scores, key=scores.get)
        assert (run.result["weight_var"], run.result["bias_var"]) == best
        assert run.result["val_mse"] == pytest.approx(-scores[best][1], rel=1e-4)
        outputs = mean(nngp.Architecture(2, "erf", *best), DATA.X_test)
        right = np.mean(outputs.argmax(axis=1) == DATA.labels_test)
        assert run.result["test_accuracy"] == pytest.approx(right)
        assert (run.jitter, run.device) == (1e-10, "cpu")

        monkeypatch.setattr(module, "_best", None)  # not computed again
        assert infinite(store, DATA, "erf", 2) == run


def test_a_failure_is_kept_and_said(tmp_path, monkeypatch):
    def fails(*_):
        raise ArithmeticError("no kernel")

    monkeypatch.setattr(module, "_best", fails)
    with RunStore(tmp_path / "runs.db") as store:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no kernel; nngp-paper runs --retry-failed"):
                infinite(store, DATA, "erf", 2)
        assert store.counts()["failed"] == 1


def test_an_interrupted_one_is_given_back(tmp_path, monkeypatch):
    def stops(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_best", stops)
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(KeyboardInterrupt):
            infinite(store, DATA, "erf", 2)
        assert store.counts()["pending"] == 1


def test_another_process_is_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "runs.db"
    with RunStore(path) as store, RunStore(path) as other:
        monkeypatch.setattr(module, "WEIGHT_VARS", (1.0,))
        taken = []

        def finish_there(seconds):
            other.finish(taken[0], {"test_accuracy": 0.5}, seconds=1.0)

        def claimed_there(config):
            (key,) = RunStore.declare(store, "infinite", config)
            taken.append(other.claim(keys=[key]).key)
            return [key]

        monkeypatch.setattr("nngp_paper.runs.study.time.sleep", finish_there)
        monkeypatch.setattr(store, "declare", lambda name, config: claimed_there(config))
        assert infinite(store, DATA, "erf", 2).result == {"test_accuracy": 0.5}


def test_what_cannot_be_is_not_declared(tmp_path):
    with RunStore(tmp_path / "runs.db") as store:
        with pytest.raises(ValueError, match="unknown activation"):
            infinite(store, DATA, "relux", 2)
        assert store.runs() == []
