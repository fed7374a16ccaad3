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

    def beyond_chance(self, spread: dict[int, float]) -> float:
        """Root mean square in units of what two choices of images differ by: about 1 for a variant
        that is what the authors did, over the sizes whose spread is known."""
        known = [(d, spread[size]) for (size, _), d in self.by_row.items() if size in spread]
        ratios = [d / (np.sqrt(2) * deviation) for d, deviation in known]
        return float(np.sqrt(np.mean(np.square(ratios)))) if ratios else float("nan")


def differences(runs: Iterable[dict[str, Any]], score: str = "accuracy") -> list[Differences]:
    """One for each variant, in the order of the record."""
    found: dict[str, dict[Row, float]] = defaultdict(dict)
    for run in runs:
        if score in run:
            row = run["train"], run["activation"]
            found[run["variant"]][row] = 100 * (run[score] - run["paper"])
    return [Differences(*item) for item in found.items()]


def spread(runs: Iterable[dict[str, Any]], drawn: str = "random ") -> dict[int, float]:
    """Deviation of the accuracy over random choices of training images, in points, by size."""
    by_row: dict[Row, list[float]] = defaultdict(list)
    for run in runs:
        if run["variant"].startswith(drawn) and "accuracy" in run:
            by_row[run["train"], run["activation"]].append(100 * run["accuracy"])
    variances: dict[int, list[float]] = defaultdict(list)
    for (size, _), found in by_row.items():
        if len(found) > 2:
            variances[size].append(float(np.var(found, ddof=1)))
    return {size: float(np.sqrt(np.mean(found))) for size, found in sorted(variances.items())}


def text(runs: list[dict[str, Any]]) -> str:
    """The table that the program prints."""
    rows = sorted({(run["train"], run["activation"]) for run in runs})
    head = f"{'points above the paper':32}" + "".join(f"{n:>6}{a[0]}" for n, a in rows)
    lines, noise = [f"{head}   mean    rms beyond chance"], spread(runs)
    for found in differences(runs):
        cells = "".join(_cell(found.by_row.get(row)) for row in rows)
        sums = found.mean(), found.rms(), found.beyond_chance(noise)
        lines.append(f"{found.variant:32}{cells}{''.join(map(_cell, sums))}")
    cells = "".join(_cell(noise.get(size)) for size, _ in rows)
    return "\n".join([*lines, f"{'deviation over random images':32}{cells}"])


def _cell(value: float | None) -> str:
    return " " * 7 if value is None else f"{value:7.2f}"
