"""The numbers that the paper prints: `accuracy.csv`, all 72 rows of its appendix table (table 2).

The file lies in the package, so that an installed nngp has it; there is no other copy.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """One row: the network that the paper chose by validation, and its test accuracy. `width` is
    None for the infinitely wide network."""

    dataset: str
    train: int
    activation: str
    depth: int
    width: int | None
    weight_var: float  # two decimals, as printed
    bias_var: float
    test_accuracy: float

    @property
    def setting(self) -> str:
        """Depth, width if finite, weight and bias variance, as the paper writes them."""
        shape = f"{self.depth}" if self.width is None else f"{self.depth}-{self.width}"
        return f"{shape}-{self.weight_var:.2f}-{self.bias_var:.2f}"


@cache
def published() -> tuple[Published, ...]:
    """All rows, in the order of the paper."""
    with (files(__name__) / "accuracy.csv").open(encoding="utf-8") as file:
        return tuple(_row(row) for row in csv.DictReader(file))


def published_row(
    dataset: str, train: int, activation: str, *, finite: bool = False
) -> Published | None:
    """The row of a training set and activation, of a finite or the infinite network; None if the
    paper has no such row."""
    for row in published():
        same = (row.dataset, row.train, row.activation) == (dataset, train, activation)
        if same and (row.width is not None) == finite:
            return row
    return None


def _row(row: dict[str, str]) -> Published:
    return Published(
        row["dataset"],
        int(row["train"]),
        row["activation"],
        int(row["depth"]),
        int(row["width"]) if row["width"] else None,
        *(float(row[name]) for name in ("weight_var", "bias_var", "test_accuracy")),
    )
