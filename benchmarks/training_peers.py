"""Training and empirical kernels beside neural-tangents, which runs in an environment of its own.

    python benchmarks/training_peers.py --python ENVIRONMENT/bin/python

The environment is that of benchmarks/peers/requirements/neural-tangents.txt. Prints the largest
difference of each result and writes benchmarks/results/training_peers.json.
"""

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

import jax
import numpy as np

import nngp

FOLDER = Path(__file__).parent
PROGRAM = FOLDER / "peers" / "snippets" / "neural_tangents_training.py"
RECORD = FOLDER / "results" / "training_peers.json"


def gap(found: Any, wanted: Any) -> float:
    return float(np.abs(np.asarray(found) - np.asarray(wanted)).max())


def differences(peer: dict[str, Any]) -> dict[str, float]:
    """The largest difference of each result."""
    rng, out = np.random.default_rng(0), {}
    X, Y, test = (rng.standard_normal(shape) for shape in ((20, 4), (20, 2), (5, 4)))
    net = nngp.Architecture(2, "erf", 1.6, 0.1)
    K, theta = nngp.kernels([net, nngp.NTK(net)], X)
    cross, theta_cross = nngp.kernels([net, nngp.NTK(net)], test, X)
    for get in ("ntk", "nngp"):
        tangent, tangent_cross = (theta, theta_cross) if get == "ntk" else (None, cross)
        networks = nngp.training.train_matrix_ensemble(
            K, tangent, Y, time=0.0, learning_rate=0.7, noise_var=1e-2, relative_noise=True
        )
        for time in (3.0, 200.0, None):
            mean, covariance = peer[f"{get} {time}"]
            at = networks.at(time)
            own = at.covariance(cross, tangent_cross, nngp.kernel(net, test))
            out[f"ensemble {get}, time {time}: mean"] = gap(at.mean(tangent_cross), mean)
            out[f"ensemble {get}, time {time}: covariance"] = gap(own, covariance)
    classes = np.eye(2)[(X[:, 0] > 0).astype(int)]
    for momentum in (None, 0.8):
        found = nngp.training.descend_in_function_space(
            theta, classes, "cross_entropy", time=[1.0, 8.0, 40.0], momentum=momentum
        )
        train, tested = peer[f"descent {momentum}"]
        both = gap(found.outputs, train), gap(found.predict(theta_cross), tested)
        out[f"cross entropy, momentum {momentum}"] = max(both)
    params = [[np.array(a) for a in layer] for layer in peer["params"]]
    for full, wanted in zip((True, False), peer["empirical"], strict=True):
        own = nngp.finite.empirical_ntk(network, params, X[:6], test, full=full)
        out[f"empirical tangent kernel, full={full}"] = gap(own, wanted)
    moved = jax.tree.map(lambda a: 1.1 * a + 0.1, params)
    with jax.enable_x64(True):
        straight = nngp.finite.linearize(network, params)(moved, X[:6])
    out["linearisation"] = gap(straight, peer["linear"])
    return out


def network(params: Any, X: Any) -> Any:
    """The network of finite width of the other program, in its parametrisation."""
    (first, bias), _, (last, shift) = params
    h = jax.scipy.special.erf(X @ first * (1.6 / 4) ** 0.5 + bias * 0.1**0.5)
    return h @ last * (1.6 / 30) ** 0.5 + shift * 0.1**0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="Python of the other environment")
    ran = subprocess.run(
        [parser.parse_args().python, PROGRAM], capture_output=True, text=True, check=True
    )
    found = differences(json.loads(ran.stdout.splitlines()[-1]))
    for name, value in found.items():
        print(f"{name:45} {value:.0e}")
    record = {name: float(f"{value:.1e}") for name, value in found.items()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
