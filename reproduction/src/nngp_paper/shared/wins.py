"""Finite against infinite width, row by row (tables 1 and 2): wins, ties and losses.

Two test accuracies are a tie if they differ by less than two standard errors of their difference.
That error takes them for independent. Both networks are judged on the same images, so it is rather
too large than too small. The paper prints no errors: its rows are counted as printed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from nngp_paper.published import published, published_row
from nngp_paper.shared.tables import AccuracyTable, Row
from nngp_paper.verdict import ClaimVerdict, Word

ERRORS = 2.0  # standard errors that a win needs


@dataclass(frozen=True)
class Wins:
    """Rows in which infinite width is better, equal within the error, and worse."""

    wins: int
    ties: int
    losses: int

    @property
    def rows(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def chance(self) -> float:
        """The probability of so many wins, or more, if a coin decided those that are no ties."""
        if not (decided := self.wins + self.losses):
            return 1.0
        return float(binomtest(self.wins, decided, alternative="greater").pvalue)


def measured_wins(rows: Sequence[Row]) -> Wins:
    """Our networks that validation chose, where both kinds were measured."""
    return _counted([_compared(row) for row in rows if row.finite and row.chosen and row.test])


def published_wins(dataset: str | None = None) -> Wins:
    """The paper's rows as printed, of one data set or of all."""
    signs = []
    for row in published():
        if row.width is None and dataset in (None, row.dataset):
            other = published_row(row.dataset, row.train, row.activation, finite=True)
            if other is not None:
                signs.append(_sign(row.test_accuracy - other.test_accuracy))
    return _counted(signs)


def verdict(data: AccuracyTable) -> ClaimVerdict:
    """Whether infinite width often wins: in most rows, or at least more often than it loses."""
    ours, paper = measured_wins(data.rows), published_wins(data.dataset)
    whole = published_wins()
    printed = (
        f"in the paper it wins {paper.wins} of {paper.rows} rows of this data set and {whole.wins} "
        f"of {whole.rows} in all"
        if paper.rows
        else "the paper has no such rows"
    )
    if not ours.rows:
        return ClaimVerdict("not measured", f"No row has finite networks of ours; {printed}.")
    return ClaimVerdict(
        _word(ours),
        f"Infinite width wins {ours.wins} of {ours.rows} rows with both measured, ties {ours.ties} "
        f"(within {ERRORS:g} standard errors) and loses {ours.losses}{_chance(ours)}; {printed}.",
    )


def _chance(wins: Wins) -> str:
    if not wins.wins + wins.losses:
        return ""
    return (
        f" (a coin would win so many of those that are no ties with probability {wins.chance:.2g})"
    )


def _word(wins: Wins) -> Word:
    if 2 * wins.wins > wins.rows:
        return "supported"
    return "partly" if wins.wins > wins.losses else "not supported"


def _compared(row: Row) -> int:
    assert row.finite is not None
    assert row.chosen is not None
    infinite, finite = row.chosen.test_accuracy, float(row.finite.result["test_accuracy"])
    points = row.test or 1
    variance = sum(accuracy * (1 - accuracy) / points for accuracy in (infinite, finite))
    return _sign(infinite - finite, ERRORS * math.sqrt(variance))


def _sign(difference: float, within: float = 0.0) -> int:
    return 0 if abs(difference) <= within else 1 if difference > 0 else -1


def _counted(signs: Sequence[int]) -> Wins:
    return Wins(signs.count(1), signs.count(0), signs.count(-1))
