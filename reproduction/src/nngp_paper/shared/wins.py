"""Finite against infinite width, row by row (tables 1 and 2): wins, ties and losses by two rules.

As printed, the higher test accuracy wins, however near the other is. By the margin a win needs two
standard errors of the difference; that error takes both accuracies for independent, and as both
networks are judged on the same 10,000 images it is rather too large than too small. Both rules
count our networks and the paper's alike.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from nngp_paper.published import published, published_row
from nngp_paper.shared.tables import AccuracyTable, Row
from nngp_paper.verdict import ClaimVerdict, Word

ERRORS = 2.0  # standard errors that a win by the margin needs
PUBLISHED_TEST = 10_000  # images of the paper's test sets


@dataclass(frozen=True)
class Wins:
    """Rows in which infinite width is better, equal, and worse, by some rule.

    Examples
    --------
    >>> from nngp_paper.shared.wins import Wins
    >>> wins = Wins(5, 2, 0)
    >>> wins.rows, round(wins.chance, 3)
    (7, 0.031)
    """

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


def measured_wins(rows: Sequence[Row], errors: float = 0.0) -> Wins:
    """Our networks that validation chose, where both kinds were measured: as printed, or with a
    margin of so many standard errors."""
    signs = []
    for row in rows:
        if row.finite and row.chosen and row.test:
            finite = float(row.finite.result["test_accuracy"])
            signs.append(_compared(row.chosen.test_accuracy, finite, row.test, errors))
    return _counted(signs)


def published_wins(
    dataset: str | None = None, errors: float = 0.0, trains: Collection[int] | None = None
) -> Wins:
    """The paper's rows, of one data set or of all, or of some training sizes, by the same rules."""
    signs = []
    for row in published():
        if trains is not None and row.train not in trains:
            continue
        if row.width is None and dataset in (None, row.dataset):
            other = published_row(row.dataset, row.train, row.activation, finite=True)
            if other is not None:
                pair = row.test_accuracy, other.test_accuracy
                signs.append(_compared(*pair, PUBLISHED_TEST, errors))
    return _counted(signs)


def verdict(data: AccuracyTable) -> ClaimVerdict:
    """Whether infinite width often wins: in most rows as printed, which is how the paper counts.
    Partly if it only wins more often than it loses."""
    trains = {row.train for row in data.rows}
    ours, paper = (
        measured_wins(data.rows),
        published_wins(data.dataset, trains=trains),
    )
    printed = f"the paper {paper.wins} of {paper.rows}" if paper.rows else "the paper has none"
    if not ours.rows:
        return ClaimVerdict("not measured", f"No row has finite networks of ours; {printed}.")
    clear = measured_wins(data.rows, ERRORS), published_wins(data.dataset, ERRORS, trains)
    margin = f"; the paper's wins {clear[1].wins} and loses {clear[1].losses}" * bool(paper.rows)
    return ClaimVerdict(
        _word(ours),
        f"As printed, infinite width wins {ours.wins} of {ours.rows} rows (a coin: probability "
        f"{ours.chance:.2g}), {printed}. By a margin of {ERRORS:g} standard errors ours wins "
        f"{clear[0].wins} and loses {clear[0].losses}{margin}.",
    )


def _word(wins: Wins) -> Word:
    if 2 * wins.wins > wins.rows:
        return "supported"
    return "partly" if wins.wins > wins.losses else "not supported"


def _compared(infinite: float, finite: float, test: int, errors: float) -> int:
    variance = sum(accuracy * (1 - accuracy) / test for accuracy in (infinite, finite))
    # Accuracies are counts of images: what is below half an image is rounding.
    return _sign(infinite - finite, max(errors * math.sqrt(variance), 0.5 / test))


def _sign(difference: float, within: float) -> int:
    return 0 if abs(difference) <= within else 1 if difference > 0 else -1


def _counted(signs: Sequence[int]) -> Wins:
    return Wins(signs.count(1), signs.count(0), signs.count(-1))
