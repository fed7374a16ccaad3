"""One row of the paper repeated in one variant, and the record of all that were."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ablation_dense
import numpy as np
from ablation_variants import VARIANTS, Variant
from numpy.typing import NDArray

import nngp
from nngp._files import replaced
from nngp_paper import datasets
from nngp_paper.published import Published, published_row
from nngp_paper.sweep import Sweep

FIRST = 1000  # test images that are also judged by themselves


@dataclass(frozen=True)
class Task:
    """A variant at a size: the rows of both activations share inputs."""

    variant: Variant
    size: int

    def rows(self) -> list[Published]:
        """What the paper prints for it."""
        found = [published_row("cifar10", self.size, a) for a in self.variant.activations]
        return [row for row in found if row is not None]

    def key(self, row: Published) -> tuple[str, int, str]:
        return self.variant.name, self.size, row.activation


class Record:
    """Results in one JSON file, each (variant, size, activation) once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found = json.loads(path.read_text()) if path.exists() else {}
        self.commands: list[str] = found.get("commands", [])
        self.runs: list[dict[str, Any]] = found.get("runs", [])

    def __contains__(self, key: tuple[str, int, str]) -> bool:
        return key in {_key(run) for run in self.runs}

    def add(self, runs: Iterable[dict[str, Any]], commands: Iterable[str]) -> None:
        """Add what is new, and write the file."""
        self.runs += [run for run in runs if _key(run) not in self]
        self.commands += [command for command in commands if command not in self.commands]
        order = {name: i for i, name in enumerate(VARIANTS)}
        self.runs.sort(key=lambda run: (order.get(run["variant"], 999), *_key(run)[1:]))
        lines = ",\n".join(f"  {json.dumps(run)}" for run in self.runs)
        with replaced(self.path) as file:
            file.write_text(
                f'{{"commands": {json.dumps(self.commands)},\n "runs": [\n{lines}\n]}}\n'
            )


def _key(run: dict[str, Any]) -> tuple[str, int, str]:
    return run["variant"], run["train"], run["activation"]


@cache
def table_of(kernel: str, activation: str) -> nngp.curves.LookupTable | None:
    """The look-up table of a variant; none for the exact kernel."""
    if kernel == "exact":
        return None
    if kernel == "whole range":
        return nngp.curves.LookupTable(activation)
    if kernel == "fine":
        return nngp.curves.LookupTable(activation, 501, 501, 2000, 100.0, 10.0, 0.99999)
    if kernel == "defaults":
        return nngp.curves.LookupTable(activation, 101, 151, 131, 100.0, 100.0, 0.99999)
    return nngp.curves.LookupTable(activation, 501, 501, 500, 100.0, 10.0, 0.99999)


@dataclass(frozen=True)
class Problem:
    """Inputs and labels, as a variant makes them."""

    X: NDArray[np.float64]
    labels: NDArray[np.int64]
    X_test: NDArray[np.float64]
    labels_test: NDArray[np.int64]

    @classmethod
    def of(cls, variant: Variant, images: datasets.Images, size: int) -> "Problem":
        rows = variant.choose(images.train_labels, size)
        train, test = images.train_images[rows], images.test_images
        for step in variant.steps:
            train, test = step(train, test)
        made = variant.inputs(train), variant.inputs(test)
        return cls(made[0], images.train_labels[rows], made[1], images.test_labels)

    def targets(self, labels: NDArray[np.int64], variant: Variant) -> NDArray[np.float64]:
        off, on = variant.targets
        return off + (on - off) * np.eye(10)[labels]


def do(task: Task, images: datasets.Images, engine: str) -> list[dict[str, Any]]:
    """The rows of a task: accuracy on all test images, and on the first of them."""
    start, problem = time.perf_counter(), Problem.of(task.variant, images, task.size)
    score = _dense if task.variant.dense else _swept
    prepared = time.perf_counter() - start
    return [
        {
            "variant": task.variant.name,
            "train": task.size,
            "activation": row.activation,
            "setting": row.setting,
            "paper": row.test_accuracy,
            **found,
            "prepared": round(prepared, 1),
        }
        for row, found in zip(task.rows(), score(task, problem, engine), strict=True)
    ]


def network(row: Published) -> nngp.Architecture:
    return nngp.Architecture(row.depth, row.activation, row.weight_var, row.bias_var)


def _swept(task: Task, problem: Problem, engine: str) -> list[dict[str, Any]]:
    """By a sweep: the first test images are its validation set."""
    variant = task.variant
    Y, Y_test = (
        problem.targets(labels, variant) for labels in (problem.labels, problem.labels_test)
    )
    test = problem.X_test
    sweep = Sweep(
        problem.X,
        Y,
        test[:FIRST],
        Y_test[:FIRST],
        test,
        Y_test,
        noise_var=variant.noise_var,
        engine=engine,
    )
    out = []
    for row in task.rows():
        (found,) = sweep.run([network(row)], table=table_of(variant.kernel, row.activation))
        fields = found.test_accuracy, found.accuracy, found.test_mse, found.noise_var
        out.append(_result(*fields, found.seconds, engine, found.error))
    return out


def _dense(task: Task, problem: Problem, engine: str) -> list[dict[str, Any]]:
    """By one matrix on the host, in the variant's precision."""
    variant, out = task.variant, []
    Y = problem.targets(problem.labels, variant)
    for row in task.rows():
        start, table = time.perf_counter(), table_of(variant.kernel, row.activation)
        assert table is not None
        kernel = ablation_dense.DenseKernel(network(row), table, variant.dtype, variant.clamped)
        try:
            mean, noise_var = kernel.predict(problem.X, Y, problem.X_test, variant.noise_var)
        except ArithmeticError as error:
            out.append({"error": str(error), "engine": "cpu"})
            continue
        right = mean.argmax(axis=1) == problem.labels_test
        mse = np.mean((mean - problem.targets(problem.labels_test, variant)) ** 2)
        scores = float(right.mean()), float(right[:FIRST].mean()), float(mse), noise_var
        out.append(_result(*scores, time.perf_counter() - start, "cpu"))
    return out


def _result(
    accuracy: float,
    first: float,
    mse: float,
    noise_var: float,
    seconds: float,
    engine: str,
    error: str = "",
) -> dict[str, Any]:
    if error:
        return {"error": error, "seconds": round(seconds, 2), "engine": engine}
    return {
        "accuracy": round(accuracy, 4),
        "first_1000": round(first, 4),
        "mse": float(f"{mse:.6g}"),
        "noise_var": float(f"{noise_var:.3g}"),
        "seconds": round(seconds, 2),
        "engine": engine,
    }
