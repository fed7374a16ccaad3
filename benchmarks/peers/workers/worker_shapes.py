"""Networks of parts in neural-tangents: kernels, trained ensembles, and times.

Runs in the environment of neural-tangents. A task is JSON on standard input; the last line on
standard output is the result. A network is a dictionary such as `nngp.Network.from_dict` reads.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["JAX_ENABLE_X64"] = "true"

import jax
import neural_tangents as nt
from neural_tangents import stax

Part = dict[str, Any]
WIDTH = 100  # of all branches together, so that shares are whole numbers of units


def layer_of(part: Part, units: int = WIDTH) -> Any:
    """A part as a layer of `stax`; `units` is the width of its affine maps."""
    match part["part"]:
        case "dense":
            deviations = part["weight_var"] ** 0.5, part["bias_var"] ** 0.5
            return stax.Dense(units, W_std=deviations[0], b_std=deviations[1])
        case "act":
            return {"relu": stax.Relu, "erf": stax.Erf}[part["activation"]]()
        case "layer_norm":
            return stax.LayerNorm(eps=0.0)
        case "dropout":
            return stax.Dropout(part["keep"])  # what it calls rate is the probability to keep
        case "chain":
            return stax.serial(*(layer_of(one, units) for one in part["parts"]))
        case "repeat":
            return stax.serial(*(layer_of(part["of"], units) for _ in range(part["times"])))
        case "residual":
            inside = stax.serial(*(layer_of(one, units) for one in part["parts"]))
            return branches([stax.Identity(), inside], stax.FanInSum())
    return joined(part)


def joined(part: Part) -> Any:
    ends = {"sum": stax.FanInSum, "product": stax.FanInProd, "concat": stax.FanInConcat}
    shares = part.get("shares", [1.0] * len(part["branches"]))
    own = [
        layer_of(one, round(share * WIDTH))
        for one, share in zip(part["branches"], shares, strict=True)
    ]
    return branches(own, ends[part["part"]]())


def branches(layers: list[Any], end: Any) -> Any:
    return stax.serial(stax.FanOut(len(layers)), stax.parallel(*layers), end)


def kernels(task: Part) -> Part:
    """K and Θ of every network, for every set of inputs."""
    found: Part = {}
    for name, network in task["networks"].items():
        kernel = layer_of(network)[2]
        for inputs, rows in task["inputs"].items():
            both = kernel(np.array(rows), None, ("nngp", "ntk"))
            both = {which: np.asarray(getattr(both, which)).tolist() for which in ("nngp", "ntk")}
            found.setdefault(name, {})[inputs] = both
    return found


def trained(task: Part) -> Part:
    """Mean and covariance of the ensemble at every time, at test and at training inputs."""
    kernel = layer_of(task["network"])[2]
    X, Y, Xs = (np.array(task[name]) for name in ("X", "Y", "X_test"))
    predict = nt.predict.gradient_descent_mse_ensemble(
        kernel,
        X,
        Y,
        learning_rate=task["learning_rate"],
        diag_reg=task["noise_var"],
        diag_reg_absolute_scale=True,
    )
    found = {}
    for t in task["times"]:
        for where, rows in (("test", Xs), ("train", None)):
            when = None if t == "inf" else t
            out = predict(t=when, x_test=rows, get=("nngp", "ntk"), compute_cov=True)
            found[f"{t} {where}"] = {
                which: {
                    "mean": np.asarray(getattr(out, which).mean).tolist(),
                    "covariance": np.asarray(getattr(out, which).covariance).tolist(),
                }
                for which in ("nngp", "ntk")
            }
    return found


def times(task: Part) -> Part:
    """Seconds of K alone and of K with Θ, jitted: the first call, and the best of the others."""
    X = np.load(task["inputs"])[: task["n"]]
    kernel = jax.jit(layer_of(task["network"])[2], static_argnums=(2,))
    found = {}
    for name, get in (("nngp", ("nngp",)), ("both", ("nngp", "ntk"))):
        call = partial(kernel, X, None, get)
        spent = [seconds(call) for _ in range(1 + task["repeats"])]
        found[name] = {"first": spent[0], "steady": min(spent[1:])}
    return found


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def main() -> None:
    task = json.load(sys.stdin)
    result = {"kernels": kernels, "trained": trained, "times": times}[task["what"]](task)
    versions = {"neural-tangents": nt.__version__, "jax": jax.__version__}
    print(json.dumps({"versions": versions, "result": result}))


if __name__ == "__main__":
    main()
