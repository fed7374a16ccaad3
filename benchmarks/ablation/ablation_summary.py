"""Differences to the paper, row by row, and what of them chance explains.

The paper's training images are not known. So a row of its table and one of ours differ by the
choice of images even where all else is equal; the deviation of that, at each size and activation,
is measured by the variants that draw images at random.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = tuple[int, str]  # size and activation
LARGE = 2000  # sizes from here on are summed up by themselves


@dataclass(frozen=True)
class Differences:
    """Points (per cent) above the paper, by row, of one variant."""

    variant: str
    by_row: dict[Row, float]

    def mean(self, least: int = 0, most: int = 10**9) -> float:
        found = [d for (size, _), d in self.by_row.items() if least <= size <= most]
        return float(np.mean(found)) if found else float("nan")

    def rms(self) -> float:
        return float(np.sqrt(np.mean(np.square([*self.by_row.values()]))))


def differences(runs: Iterable[dict[str, Any]], score: str = "accuracy") -> list[Differences]:
    """One for each variant, in the order of the record."""
    found: dict[str, dict[Row, float]] = defaultdict(dict)
    for run in runs:
        if score in run:
            row = run["train"], run["activation"]
            found[run["variant"]][row] = 100 * (run[score] - run["paper"])
    return [Differences(*item) for item in found.items()]


def spread(runs: Iterable[dict[str, Any]], drawn: str = "random ") -> dict[Row, float]:
    """Deviation of the accuracy over random choices of training images, in points."""
    by_row: dict[Row, list[float]] = defaultdict(list)
    for run in runs:
        if run["variant"].startswith(drawn) and "accuracy" in run:
            by_row[run["train"], run["activation"]].append(100 * run["accuracy"])
    return {row: float(np.std(found, ddof=1)) for row, found in by_row.items() if len(found) > 2}


def text(runs: list[dict[str, Any]]) -> str:
    """The table that the program prints."""
    rows = sorted({(run["train"], run["activation"]) for run in runs})
    head = f"{'points above the paper':32}" + "".join(f"{n:>6}{a[0]}" for n, a in rows)
    lines = [head + "   mean    rms"]
    for found in differences(runs):
        cells = "".join(
            f"{found.by_row[row]:7.2f}" if row in found.by_row else " " * 7 for row in rows
        )
        lines.append(f"{found.variant:32}{cells}{found.mean():7.2f}{found.rms():7.2f}")
    noise = spread(runs)
    cells = "".join(f"{noise[row]:7.2f}" if row in noise else " " * 7 for row in rows)
    return "\n".join([*lines, f"{'deviation over random images':32}{cells}"])
