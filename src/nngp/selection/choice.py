"""The answer of model selection."""

from dataclasses import dataclass

from nngp.selection.problem import Hyperparameters
from nngp.selection.table import SelectionTable


@dataclass(frozen=True)
class Choice:
    """What was chosen, the finalists (best first, distinct networks), the table of all tried."""

    best: Hyperparameters
    finalists: list[Hyperparameters]
    table: SelectionTable
