"""Four likelihoods of classes on one network: log loss, accuracy and seconds.

    python benchmarks/softmax.py --data DIR --out benchmarks/results/softmax.json

DIR holds `mnist.npz` and `uci_classification`. On each set `NNGPClassifier` chooses the network
by the likelihood "regression"; every likelihood then learns on the training rows what makes
probabilities of that network (its scale and noise by leave-one-out), and is timed and scored on
the test rows. "log-ratio" is the regression on the K - 1 isometric log-ratio coordinates of
smoothed one-hot labels. They are a fixed linear map of one-hot targets, so that the posterior is
that of the regression; only its probabilities differ: the mean of softmax, on a scale chosen by
leave-one-out. Sets that are in the file already are not repeated.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import nngp
from nngp.estimators.class_model import ClassModel
from nngp.predictive.dirichlet import Labels
from nngp.predictive.expected_softmax import expected_softmax
from nngp.predictive.one_hot_link import log_loss
from nngp.predictive.probability import above_zero
from nngp_paper import datasets

TABLES = (
    *("balance-scale", "dermatology", "ecoli", "glass", "heart-cleveland", "iris", "seeds"),
    *("vertebral-column-3clases", "wine", "zoo"),
)
LIKELIHOODS = ("regression", "dirichlet", "softmax")
IMAGES, TESTED = 1000, 2000  # MNIST images to learn from, and to test on
SCALES = np.log(0.1), np.log(100.0)
Array = NDArray[np.float64]
Problem = tuple[Array, NDArray[Any], Array, NDArray[Any], dict[str, Any]]


def table(name: str, data: Path) -> Problem:
    """The first split of a table."""
    with np.load(data / "uci_classification" / f"{name}.npz") as stored:
        X, y, train, test = (stored[key] for key in ("X", "y", "cv_train", "cv_test"))
    own, other = train[0][train[0] >= 0], test[0][test[0] >= 0]
    return X[own], y[own], X[other], y[other], {}


def images(data: Path) -> Problem:
    """MNIST with a network that needs no choice but its noise."""
    found = datasets.split("mnist", IMAGES, data=data)
    network = nngp.Architecture(3, "relu", 1.6, 0.1)
    options = {"network": network, "input_scaling": "none", "relevance": False}
    test = slice(0, TESTED)
    return found.X, found.labels, found.X_test[test], found.labels_test[test], options


def log_ratio(model: ClassModel) -> Callable[[Array], Array]:
    """Probabilities by the regression on log-ratio coordinates."""
    posterior, labels = model.network.posterior, model.labels
    mean, variance = posterior.leave_one_out()

    def of(mean: Array, variance: Array, scale: float) -> Array:
        spread = np.repeat(scale**2 * variance[:, None], labels.classes, axis=1)
        return above_zero(expected_softmax(scale * mean, spread))

    def loss(logarithm: float) -> float:
        return log_loss(of(mean, variance, np.exp(logarithm)), labels.index, labels.weights)

    best = minimize_scalar(loss, bounds=SCALES, method="bounded", options={"xatol": 0.05}).x
    scale = float(np.exp(best))

    def probabilities(X: Array) -> Array:
        return of(*posterior.predict(model.network.inputs(X)), scale)

    return probabilities


def measured(problem: Problem) -> dict[str, dict[str, float]]:
    """Log loss, accuracy and seconds of every likelihood."""
    X, y, X_test, y_test, options = problem
    classifier = nngp.NNGPClassifier(likelihood="regression", **options).fit(X, y)
    classes, index = np.unique(y, return_inverse=True)
    labels = Labels(index, np.ones(len(y)), len(classes))
    truth = np.searchsorted(classes, y_test)
    network, machine = classifier.networks_[0], classifier._machine

    def learned(name: str) -> Callable[[Array], Array]:
        kind = "regression" if name == "log-ratio" else name
        model, _ = ClassModel.learn(network, labels, kind, machine)
        return log_ratio(model) if name == "log-ratio" else model.probabilities

    found = {}
    for name in (*LIKELIHOODS, "log-ratio"):
        begun = time.process_time()
        probabilities = learned(name)(X_test)
        seconds = time.process_time() - begun
        right = probabilities.argmax(axis=1) == truth
        loss = -np.log(probabilities[np.arange(len(truth)), truth]).mean()
        found[name] = {
            "log_loss": round(float(loss), 4),
            "accuracy": round(float(right.mean()), 4),
            "cpu_seconds": round(seconds, 2),
        }
    return {"rows": {"train": len(y), "test": len(truth), "classes": len(classes)}, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    known = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    problems: dict[str, Callable[[], Problem]] = {
        name: partial(table, name, asked.data) for name in TABLES
    }
    problems[f"mnist {IMAGES}"] = partial(images, asked.data)
    for name, problem in problems.items():
        if name not in known:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known[name] = measured(problem())
            asked.out.write_text(json.dumps(known, indent=1) + "\n")
            print(name, known[name], flush=True)


if __name__ == "__main__":
    main()
