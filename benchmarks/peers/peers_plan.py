"""Which measurements are made, of which library, and how long each may take.

A measurement is a dictionary that a worker understands, and the name of a library. Those of one
kind stand side by side, so that a slow minute of the machine does not fall on one library alone.
"""

import json
from dataclasses import dataclass
from typing import Any

Task = dict[str, Any]

NNGP, TANGENTS, TORCH, LEARN, SCIPY = (
    "nngp",
    "neural-tangents",
    "gpytorch",
    "scikit-learn",
    "scipy",
)
LABELS = {
    NNGP: "nngp",
    TANGENTS: "neural-tangents",
    TORCH: "GPyTorch + BoTorch",
    LEARN: "scikit-learn (RBF)",
    SCIPY: "SciPy by hand",
}
LIBRARIES = tuple(LABELS)
LIMIT = 240  # seconds for one measurement


@dataclass(frozen=True)
class Sizes:
    """How large the measurements are."""

    growth: tuple[int, ...]  # n of the kernel at depth 3
    largest: int
    large_depths: tuple[int, ...]  # of the kernel with the largest n
    depths: tuple[int, ...]
    middle: int  # n of the kernel at these depths
    tanh: tuple[int, ...]  # n that neural-tangents' quadrature can hold
    inference: tuple[int, ...]
    test: int
    behaviour: int  # n of the questions about behaviour
    deep: tuple[int, ...]  # depths of deep networks there
    seconds: float  # to repeat one call


FULL = Sizes(
    growth=(500, 1000, 2000, 5000),
    largest=5000,
    large_depths=(3, 10, 50),
    depths=(1, 3, 10, 30, 50, 100),
    middle=2000,
    tanh=(250, 500),
    inference=(1000, 2000, 5000),
    test=1000,
    behaviour=500,
    deep=(3, 30, 100),
    seconds=4.0,
)
QUICK = Sizes(
    growth=(60,),
    largest=90,
    large_depths=(3,),
    depths=(1,),
    middle=60,
    tanh=(30,),
    inference=(60, 90),
    test=40,
    behaviour=80,
    deep=(3,),
    seconds=0.0,
)


@dataclass(frozen=True)
class Measurement:
    library: str
    task: Task

    @property
    def key(self) -> str:
        return f"{self.library} {json.dumps(self.task, sort_keys=True)}"

    def __str__(self) -> str:
        net = self.task["net"]
        words = [self.task["what"], f"{net['activation']} depth {net['depth']}"]
        names = ("n", "outputs", "noise_var", "norms", "relative")
        words += [f"{name} {self.task[name]}" for name in names if name in self.task]
        return f"{LABELS[self.library]:<19} {', '.join(words)}"


def network(activation: str, depth: int, weight_var: float = 1.6, bias_var: float = 0.1) -> Task:
    return {
        "activation": activation,
        "depth": depth,
        "weight_var": weight_var,
        "bias_var": bias_var,
    }


def measurements(sizes: Sizes) -> list[Measurement]:
    """All of them, in the order in which they are made."""
    found = kernels(sizes) + accuracies(sizes) + inferences(sizes) + behaviours(sizes)
    return list({m.key: m for m in found}.values())


def kernels(sizes: Sizes) -> list[Measurement]:
    relu = [(network("relu", 3), n) for n in sizes.growth]
    relu += [(network("relu", depth), sizes.middle) for depth in sizes.depths]
    relu += [(network("relu", depth), sizes.largest) for depth in sizes.large_depths]
    found = []
    for net, n in relu:
        found += _kernel(net, n, sizes, NNGP, TANGENTS, TORCH)
    for n in (*sizes.growth, sizes.largest):
        found += _kernel(network("product", 0), n, sizes, SCIPY)
    for n in (sizes.growth[0], sizes.largest):
        found += _kernel(network("erf", 3), n, sizes, NNGP, TANGENTS)
    for n in sizes.tanh:
        found += _kernel(network("tanh", 3), n, sizes, NNGP, TANGENTS)
    found += _kernel(network("tanh", 3), sizes.largest, sizes, NNGP)
    for depth in sizes.large_depths[:2]:
        net = network("relu", depth)
        found += _kernel(net, sizes.middle, sizes, NNGP, TANGENTS, TORCH, norms="different")
    return found


def _kernel(net: Task, n: int, sizes: Sizes, *libraries: str, **more: Any) -> list[Measurement]:
    task = {"what": "kernel", "net": net, "n": n, "seconds": sizes.seconds, **more}
    return [Measurement(library, task) for library in libraries]


def accuracies(sizes: Sizes = FULL) -> list[Measurement]:
    deepest = sizes.deep[-1]
    nets = [
        network("relu", 3),
        network("erf", 3),
        network("tanh", 3),
        network("relu", deepest, 1.0, 0.1),
        network("relu", deepest, 2.0, 0.0),
    ]
    found = []
    for net in nets:
        for library in (NNGP, TANGENTS, TORCH):
            if library != TORCH or (net["activation"] == "relu" and net["bias_var"] > 0):
                found.append(Measurement(library, {"what": "accuracy", "net": net}))
    return found


def inferences(sizes: Sizes) -> list[Measurement]:
    found, largest = [], max(sizes.inference)
    for n in sizes.inference:
        for library in LIBRARIES:
            # Ten outputs are ten kernel matrices in GPyTorch, and one output is no news elsewhere.
            counts = [10] if library != TORCH else [1] if n == largest else [1, 10]
            found += [_inference(library, n, outputs, sizes) for outputs in counts]
    return found


def _inference(library: str, n: int, outputs: int, sizes: Sizes) -> Measurement:
    task = {
        "what": "inference",
        "net": network("relu", 3),
        "n": n,
        "test": sizes.test,
        "outputs": outputs,
        "noise_var": 1e-2,
        "seconds": sizes.seconds,
    }
    return Measurement(library, task)


def behaviours(sizes: Sizes) -> list[Measurement]:
    n, found = sizes.behaviour, []
    for depth in sizes.deep:
        task = {"what": "depth", "net": network("relu", depth, 1.0, 0.1), "n": n}
        task |= {"test": 500, "noise_var": 1e-10}
        found += [Measurement(library, task) for library in (NNGP, TANGENTS, TORCH, SCIPY)]
        found.append(Measurement(NNGP, {**task, "relative": True}))
    for noise_var in (0.0, 1e-10):
        task = {"what": "duplicates", "net": network("relu", 3), "n": n}
        task |= {"copies": n // 10, "noise_var": noise_var}
        found += [Measurement(library, task) for library in LIBRARIES]
    task = {"what": "singular", "net": network("relu", 0), "noise_var": 0.0}
    return found + [Measurement(library, task) for library in LIBRARIES]


# Seconds to start and import, and seconds of a layer for 1e6 entries: rough, to forecast with.
_START = {NNGP: 1.5, TANGENTS: 6.0, TORCH: 4.0, LEARN: 2.0, SCIPY: 1.0}
_LAYER = {NNGP: 0.0, TANGENTS: 0.019, TORCH: 0.034, LEARN: 0.1, SCIPY: 0.015}


def forecast(measurement: Measurement, sizes: Sizes) -> float:
    """Seconds that it will take on two cores, roughly."""
    task, library = measurement.task, measurement.library
    n = task.get("n", 50)
    layers = max(task["net"]["depth"], 1) * (task.get("outputs", 1) if library == TORCH else 1)
    call = (0.016 + _LAYER[library] * layers) * (n / 1000) ** 2
    if task["net"]["activation"] == "tanh" and library == TANGENTS:
        call *= 250
    if task["what"] == "inference":
        call += 1.5 * (n / 5000) ** 3
    calls = 2.0 if task["what"] in ("kernel", "inference") else 1.0
    repeated = min(4 * call, sizes.seconds) if calls == 2.0 else 0.0
    return _START[library] + calls * call + repeated
