"""Writes results/shapes_neural_tangents.json: what neural-tangents says of networks of every part.

    python benchmarks/peers/peers_shapes.py

Kernels K and Θ of relu and erf networks, for inputs of equal norms and of different ones, and
infinite ensembles of trained networks at four times. `tests/benchmarks/test_shapes_record.py`
compares nngp with the record; neural-tangents is needed for a new record only. It lives in an
environment of its own, which the command creates.
"""

import json
from typing import Any

import numpy as np
import peers_run

RECORD = peers_run.HERE.parent / "results" / "shapes_neural_tangents.json"
WORKER = peers_run.HERE / "workers" / "worker_shapes.py"
LIBRARY = "neural-tangents"
Part = dict[str, Any]


def dense(weight_var: float, bias_var: float) -> Part:
    return {"part": "dense", "weight_var": weight_var, "bias_var": bias_var}


def chain(*parts: Part) -> Part:
    return {"part": "chain", "parts": list(parts)}


def repeat(part: Part, times: int) -> Part:
    return {"part": "repeat", "of": part, "times": times}


def joined(kind: str, *branches: Part, **more: Any) -> Part:
    return {"part": kind, "branches": list(branches), **more}


NORM: Part = {"part": "layer_norm"}
MASK: Part = {"part": "dropout", "keep": 0.75}
LAST = dense(1.1, 0.05)


def shapes(name: str) -> dict[str, Part]:
    """A network of each part with one activation, and one of all parts."""
    phi: Part = {"part": "act", "activation": name}
    block: Part = {"part": "residual", "parts": [phi, dense(0.7, 0.1)]}
    added = joined("sum", chain(phi, dense(0.8, 0.1)), dense(0.4, 0.05))
    gated = joined("product", chain(dense(1.2, 0.1), phi), dense(0.9, 0.3))
    beside = joined("concat", chain(dense(1.2, 0.1), phi), dense(0.8, 0.1), shares=[0.75, 0.25])
    first = dense(1.4, 0.1)
    return {
        "chain": chain(first, repeat(chain(phi, dense(1.6, 0.1)), 3)),
        "residual": chain(first, repeat(block, 4), LAST),
        "layer norm": chain(first, repeat(chain(NORM, phi, dense(1.6, 0.1)), 3)),
        "dropout": chain(first, repeat(chain(phi, MASK, dense(1.3, 0.1)), 3)),
        "sum": chain(first, repeat(added, 3), LAST),
        "product": chain(first, repeat(chain(gated, dense(0.8, 0.1)), 2)),
        "concat": chain(first, beside, dense(1.3, 0.1), phi, LAST),
        "all": chain(
            first,
            repeat({"part": "residual", "parts": [NORM, phi, MASK, dense(0.7, 0.1)]}, 2),
            gated,
            dense(1.2, 0.1),
            added,
            beside,
            LAST,
        ),
    }


def networks() -> dict[str, Part]:
    names = ("relu", "erf")
    return {f"{name} {kind}": net for name in names for kind, net in shapes(name).items()}


def inputs() -> dict[str, Any]:
    """Rows with x·x/d = 1, and rows as they are drawn; no two of them nearly coincide, where
    neural-tangents has half of its digits only."""
    rows = np.random.default_rng(0).standard_normal((12, 6))
    equal = rows / np.sqrt((rows**2).mean(axis=1, keepdims=True))
    return {"equal norms": equal.tolist(), "different norms": rows.tolist()}


def training() -> Part:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((30, 5))
    rows /= np.sqrt((rows**2).mean(axis=1, keepdims=True))
    targets = np.stack([np.sin(2 * rows[:20, 0]), rows[:20, 1] * rows[:20, 2]], axis=1)
    layer = chain({"part": "act", "activation": "relu"}, dense(1.8, 0.1))
    return {
        "network": chain(dense(1.8, 0.1), repeat(layer, 2)),
        "X": rows[:20].tolist(),
        "Y": targets.tolist(),
        "X_test": rows[20:].tolist(),
        "learning_rate": 0.5,
        "noise_var": 0.0,
        "times": [3.0, 40.0, 1000.0, "inf"],
        "dynamics": "dy/dt = -learning_rate / (rows of Y x columns of Y) Θ (y - Y)",
    }


def ask(task: Part) -> Any:
    """What the worker answers; RuntimeError if it fails."""
    found = peers_run.call([str(peers_run.python_of(LIBRARY)), str(WORKER)], task, 600)
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found


def main() -> None:
    reason = peers_run.install(LIBRARY)
    if reason:
        raise SystemExit(f"neural-tangents could not be installed: {reason}")
    rows, nets, ensemble = inputs(), networks(), training()
    kernels = ask({"what": "kernels", "networks": nets, "inputs": rows})
    record = {
        "command": "python benchmarks/peers/peers_shapes.py",
        "versions": kernels["versions"],
        "inputs": rows,
        "networks": nets,
        "kernels": kernels["result"],
        "training": ensemble,
        "trained": ask({"what": "trained", **ensemble})["result"],
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items())
    RECORD.write_text(f"{{\n{lines}\n}}\n")
    print(f"the record is {RECORD.relative_to(peers_run.ROOT)}")


if __name__ == "__main__":
    main()
