"""nngp's estimators behind the interfaces of `tabular_peers.py`.

A method is "nngp" (everything at its default), or "nngp" with a word for `effort` or with
parameters: "nngp fast", "nngp thorough", "nngp n_networks=5 target_transform=log".
NNGP_ENGINE names the engine (default "auto").
"""

import json
import os
import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tabular_peers import Array, Forecast, Votes, gaussian, spread

EFFORTS = ("fast", "normal", "thorough")


def parameters(method: str) -> dict[str, Any]:
    """The parameters of the estimator that a method's name stands for."""
    chosen: dict[str, Any] = {"engine": os.environ.get("NNGP_ENGINE", "auto")}
    for word in method.split()[1:]:
        name, equals, value = word.partition("=")
        if equals:
            chosen[name] = _value(value)
        elif word in EFFORTS:
            chosen["effort"] = word
        else:
            raise ValueError(f"{method!r}: {word!r} is neither name=value nor one of {EFFORTS}")
    return chosen


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def regressor(method: str, X: Array, y: Array, Xs: Array) -> Forecast:
    """Fit and predict; the log density is the model's own if it has one, else Gaussian."""
    import nngp

    model, start = nngp.NNGPRegressor(**parameters(method)), time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    mean, std = model.predict(Xs, return_std=True)
    lower, upper = model.predict_interval(Xs, 0.95)
    density = gaussian(mean, std, seconds).log_density
    if hasattr(model, "log_density"):
        density = partial(model.log_density, Xs)
    return Forecast(mean, std, lower, upper, density, seconds)


def classifier(method: str, X: Array, y: NDArray[Any], Xs: Array) -> Votes:
    """Fit and predict."""
    import nngp

    model, start = nngp.NNGPClassifier(**parameters(method)), time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    probability = spread(model.predict_proba(Xs), np.asarray(model.classes_))
    return Votes(probability.argmax(axis=1), probability, seconds)
