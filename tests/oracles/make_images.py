"""Writes images.json: K and the tangent kernel of 60 random convolutional networks, by
neural-tangents.

Run by hand in an environment of its own (benchmarks/peers/requirements/neural-tangents.txt):
`python tests/oracles/make_images.py`, some minutes; the result is committed. Networks are
dictionaries as `nngp.Network.from_dict` reads them; nothing here comes from the package. Images are
NumPy's `default_rng(number of the network).standard_normal`.
"""

import json
from pathlib import Path

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from neural_tangents import stax  # noqa: E402  # the precision comes first

COUNT, IMAGES = 60, 2
ACTS = {"relu": stax.Relu(), "erf": stax.Erf()}


def random_network(rng: np.random.Generator) -> list:
    """The parts of a network whose images stay large enough."""
    size = [int(rng.integers(4, 8)) for _ in range(2)]
    parts = [{"part": "image", "shape": [*size, int(rng.integers(1, 4))]}]
    for _ in range(rng.integers(1, 4)):
        parts.append(random_convolution(rng, size))
        if rng.random() < 0.3:
            parts.append({"part": "layer_norm"})
        parts.append({"part": "act", "activation": str(rng.choice(list(ACTS)))})
        if rng.random() < 0.3:
            inner = random_convolution(rng, list(size), stride=False)
            parts.append(random_convolution(rng, size, stride=False))
            act = {"part": "act", "activation": "relu"}
            parts.append({"part": "residual", "parts": [act, inner]})
        if rng.random() < 0.4 and min(size) > 2:
            window = [int(rng.integers(1, 3)) for _ in range(2)]
            stride = [int(rng.integers(1, 3)) for _ in range(2)]
            size[:] = [(n - k) // s + 1 for n, k, s in zip(size, window, stride, strict=True)]
            parts.append({"part": "avg_pool", "window": window, "stride": stride})
    parts.append({"part": str(rng.choice(["flatten", "global_avg_pool"]))})
    parts.append(dense(rng))
    if rng.random() < 0.3:
        parts += [{"part": "act", "activation": "relu"}, dense(rng)]
    return parts


def random_convolution(rng: np.random.Generator, size: list, *, stride: bool = True) -> dict:
    padding = str(rng.choice(["same", "valid", "circular"])) if stride else "same"
    window = [int(min(rng.integers(1, 4), n)) for n in size]
    steps = [int(rng.integers(1, 3)) if stride and min(size) > 3 else 1 for _ in range(2)]
    if padding == "valid":
        size[:] = [(n - k) // s + 1 for n, k, s in zip(size, window, steps, strict=True)]
    else:
        size[:] = [-(-n // s) for n, s in zip(size, steps, strict=True)]
    variances = {
        name: round(float(rng.uniform(0.1, 2.0)), 3) for name in ("weight_var", "bias_var")
    }
    return {"part": "conv", "window": window, "stride": steps, "padding": padding, **variances}


def dense(rng: np.random.Generator) -> dict:
    return {"part": "dense", "weight_var": round(float(rng.uniform(0.5, 2.0)), 3), "bias_var": 0.1}


def layer_of(part: dict):
    """A part in neural-tangents."""
    match part["part"]:
        case "conv":
            return stax.Conv(
                8,
                tuple(part["window"]),
                tuple(part["stride"]),
                part["padding"].upper(),
                W_std=part["weight_var"] ** 0.5,
                b_std=part["bias_var"] ** 0.5,
            )
        case "dense":
            return stax.Dense(8, part["weight_var"] ** 0.5, part["bias_var"] ** 0.5)
        case "act":
            return ACTS[part["activation"]]
        case "layer_norm":
            return stax.LayerNorm(eps=0.0)
        case "avg_pool":
            return stax.AvgPool(tuple(part["window"]), tuple(part["stride"]))
        case "flatten":
            return stax.Flatten()
        case "global_avg_pool":
            return stax.GlobalAvgPool()
    inner = stax.serial(*map(layer_of, part["parts"]))
    return stax.serial(stax.FanOut(2), stax.parallel(stax.Identity(), inner), stax.FanInSum())


def main() -> None:
    rng, out = np.random.default_rng(0), []
    for number in range(COUNT):
        parts = random_network(rng)
        shape = parts[0]["shape"]
        X = np.random.default_rng(number).standard_normal((IMAGES, *shape))
        kernel = stax.serial(*map(layer_of, parts[1:]))[2]
        found = kernel(X, None, get=("nngp", "ntk"))
        values = {name: np.asarray(getattr(found, name)).tolist() for name in ("nngp", "ntk")}
        out.append({"network": {"part": "chain", "parts": parts}, **values})
        print(number, values["nngp"], flush=True)
        Path(__file__).with_name("images.json").write_text(json.dumps(out, indent=0) + "\n")


if __name__ == "__main__":
    main()
