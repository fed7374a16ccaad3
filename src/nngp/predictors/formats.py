"""Headers of model files of older formats, as the present one has them: a step for each format.

What is wrong with a value is left as it is, for the reader to refuse.

| format | since |
|---|---|
| 5 | noise by row: an array `noise`, a floor, and what the report says of it; the likelihood and
the weights of a classifier |
"""

from collections.abc import Callable
from typing import Any

from nngp._fields import as_number

OLDEST = 4


def upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """The header with the values of the present format; `version` stays what it was."""
    for version in range(header["version"], OLDEST + len(STEPS)):
        header = STEPS[version](header)
    return header


def _from_4(header: dict[str, Any]) -> dict[str, Any]:
    """The noise that was stated was the one that was used, and the report alone had what was asked
    for; now both are stated, and the floor says how far the ladder was climbed."""
    posterior = header["posterior"]
    noise, report = posterior["noise"], posterior["report"]
    used, asked = as_number(noise["stated"]), as_number(report["noise_var_asked"])
    raised = asked < used
    noise = {**noise, "floor": used if raised else 0.0, "stated": asked if raised else used}
    rows = posterior["n"] if raised else 0
    more = {"noise_var_largest": report["noise_var"], "rows_raised": rows}
    if header["kind"] == "NNGPClassifier":
        header = _with_likelihood(header)
    return {**header, "posterior": {**posterior, "noise": noise, "report": {**report, **more}}}


def _with_likelihood(header: dict[str, Any]) -> dict[str, Any]:
    """There was one likelihood, with one number, and rows had no weights."""
    params = {**header["params"], "likelihood": "regression", "class_weight": None}
    link = {"scale": header["fitted"]["output_scale"], "exponent": 0.0, "mixing": 0.0}
    more = {"link": link, "left_out_loss": {}, "dirichlet": None, "weighted_noise_var": None}
    return {**header, "params": params, "fitted": {**header["fitted"], **more}}


STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {4: _from_4}
