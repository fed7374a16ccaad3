"""Samplers of Optuna on ten functions of 2 to 60 dimensions: how near to the minimum, how soon.

    pip install optuna torch==2.13.0 nngp      # an environment of its own: GPSampler needs torch
    python benchmarks/optuna_samplers.py --seeds 20

Writes benchmarks/results/optuna_samplers.json after every study, and goes on where it stopped. The
regret (the best value so far less the minimum) is kept at every fifth trial. The same record is
what the page docs/guides/optuna.md shows.
"""

import argparse
import json
import logging
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parent / "results" / "optuna_samplers.json"
EVERY = 5
Vector = Any
A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8],
     [17, 8, 0.05, 10, 0.1, 14]]
)  # fmt: skip
P = 1e-4 * np.array(
    [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991],
     [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
)  # fmt: skip
A3 = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
P3 = 1e-4 * np.array(
    [[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]
)
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])


def branin(x: Vector) -> float:
    parabola = x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return float(parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10 - 0.39788735772973816)


def camel(x: Vector) -> float:
    a, b = x
    return float(
        (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2 + 1.0316284534898774
    )


def hartmann3(x: Vector) -> float:
    return float(3.86278214782076 - ALPHA @ np.exp(-(A3 * (x - P3) ** 2).sum(axis=1)))


def hartmann6(x: Vector) -> float:
    return float(3.32236801141551 - ALPHA @ np.exp(-(A * (x[:6] - P) ** 2).sum(axis=1)))


def rosenbrock(x: Vector) -> float:
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def levy(x: Vector) -> float:
    w = 1 + (x - 1) / 4
    inner = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)).sum()
    ends = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + inner + ends)


def ackley(x: Vector) -> float:
    near = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    return float(near - np.exp(np.mean(np.cos(2 * np.pi * x))) + 20 + np.e)


def styblinski_tang(x: Vector) -> float:
    return float(np.mean(x**4 - 16 * x**2 + 5 * x) / 2 + 39.16616570377142)


FUNCTIONS: dict[str, tuple[Callable[[Vector], float], int, float, float, int]] = {
    # function, dimensions, low, high, trials
    "Branin": (branin, 2, -5.0, 15.0, 50),  # on a square that holds its usual domain
    "Camel": (camel, 2, -2.0, 2.0, 50),
    "Hartmann 3": (hartmann3, 3, 0.0, 1.0, 50),
    "Rosenbrock 5": (rosenbrock, 5, -2.0, 2.0, 50),
    "Hartmann 6": (hartmann6, 6, 0.0, 1.0, 80),
    "Levy 10": (levy, 10, -10.0, 10.0, 80),
    "Ackley 20": (ackley, 20, -24.0, 40.0, 80),  # not centered: no sampler begins at the minimum
    "Styblinski-Tang 30": (styblinski_tang, 30, -5.0, 5.0, 80),
    "Hartmann 6 in 40": (hartmann6, 40, 0.0, 1.0, 80),  # 34 dimensions do nothing
    "Levy 60": (levy, 60, -10.0, 10.0, 80),
}
SAMPLERS = ("NNGP", "GP", "TPE", "random")


def sampler_of(name: str, seed: int) -> Any:
    import optuna

    if name == "NNGP":
        from nngp.optuna import NNGPSampler

        return NNGPSampler(seed=seed)
    if name == "GP":
        return optuna.samplers.GPSampler(seed=seed)
    if name == "TPE":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.RandomSampler(seed=seed)


def regrets(function: str, sampler: str, seed: int) -> tuple[list[float], float]:
    """Regret at every fifth trial, and seconds of CPU time."""
    import optuna

    f, d, low, high, trials = FUNCTIONS[function]

    def objective(trial: Any) -> float:
        return f(np.array([trial.suggest_float(f"x{i}", low, high) for i in range(d)]))

    study, start = optuna.create_study(sampler=sampler_of(sampler, seed)), time.process_time()
    study.optimize(objective, n_trials=trials)
    best = np.minimum.accumulate(np.array([trial.value for trial in study.trials], dtype=float))
    kept = [float(f"{value:.4g}") for value in best[EVERY - 1 :: EVERY]]
    return kept, round(time.process_time() - start, 1)


def main() -> None:
    """Run what the record does not have, and print medians."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--functions", nargs="*", choices=list(FUNCTIONS), default=list(FUNCTIONS))
    arguments = parser.parse_args()
    import optuna

    optuna.logging.set_verbosity(logging.WARNING)
    warnings.simplefilter("ignore")
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    for seed in range(arguments.seeds):
        for function in arguments.functions:
            for sampler in SAMPLERS:
                runs = record.setdefault(function, {}).setdefault(sampler, {})
                if str(seed) in runs:
                    continue
                curve, seconds = regrets(function, sampler, seed)
                runs[str(seed)] = {"regret": curve, "cpu_seconds": seconds}
                print(
                    f"{function:20} {sampler:7} seed {seed}: {curve[-1]:.3g}, {seconds} s",
                    flush=True,
                )
                RECORD.write_text(json.dumps(record) + "\n")
    for function, by_sampler in record.items():
        medians = {
            name: float(np.median([run["regret"][-1] for run in runs.values()]))
            for name, runs in by_sampler.items()
        }
        print(f"{function:20}", *(f"{name} {value:.3g}" for name, value in medians.items()))


if __name__ == "__main__":
    main()
