"""The five sentences and the picture that the page begins with, all of them from the stores."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from nngp_paper.part import PartResult
from nngp_paper.report.facts import short_title
from nngp_paper.shared.heat_maps import HeatMaps
from nngp_paper.shared.propagation import lost_share
from nngp_paper.shared.tables import Row
from nngp_paper.shared.wins import ERRORS, Wins, measured_wins, published_wins
from nngp_paper.verdict import Word

WORDS: tuple[Word, ...] = ("supported", "partly", "not supported", "not measured")
NEAR = 0.05  # points between the authors' table here and the number that they print
PICTURE = "fig4"


def claims_of(shown: Sequence[PartResult]) -> Counter[Word]:
    """Verdicts on the paper's own claims: parts that go beyond it are none of them."""
    return Counter(one.verdict.word for one in shown if not one.part.is_beyond)


def claims_words(shown: Sequence[PartResult]) -> str:
    """The counts by verdict."""
    counts = claims_of(shown)
    return ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])


def opening_sentences(shown: Sequence[PartResult]) -> list[str]:
    """What a reader should know after a minute; a sentence is missing where its runs are."""
    rows = table_rows(shown)
    found = (
        _claims(shown),
        _table(rows),
        _wins(rows),
        _band(shown),
        _differences(rows),
    )
    return [sentence for sentence in found if sentence]


def table_rows(shown: Sequence[PartResult]) -> dict[str, Sequence[Row]]:
    """The rows of the paper in table 2, by data set."""
    tables = [one for one in shown if one.part.name == "table2" and not one.problem]
    rows = {one.scope.dataset: [row for row in one.data.rows if row.paper] for one in tables}
    return {name: own for name, own in rows.items() if own}


def _claims(shown: Sequence[PartResult]) -> str:
    counts = claims_of(shown)
    words = claims_words(shown)
    return (
        f"Every table and figure was computed again; of {counts.total()} claims, counted once for "
        f"each data set, {words}."
    )


def _table(rows: Mapping[str, Sequence[Row]]) -> str:
    """How well the authors' own kernel gives their own numbers."""
    parts = []
    for name, own in rows.items():
        known = [d for row in own if (d := row.lookup_difference) is not None]
        if known:
            near = sum(abs(d) <= NEAR + 1e-9 for d in known)
            parts.append(f"{near} of {len(known)} rows of {short_title(name)}")
    if not parts:
        return ""
    return (
        f"With the authors' look-up table at their settings, {' and '.join(parts)} come back "
        f"within {NEAR:g} points."
    )


def wins_by_both_rules(rows: Mapping[str, Sequence[Row]]) -> dict[str, tuple[Wins, Wins]]:
    """Rows that infinite width wins, of ours and of the paper's, as printed and by a margin."""
    every = [row for own in rows.values() for row in own]
    paper = [[published_wins(name, errors) for name in rows] for errors in (0.0, ERRORS)]
    return {
        "printed": (measured_wins(every), _sum(paper[0])),
        "margin": (measured_wins(every, ERRORS), _sum(paper[1])),
    }


def _sum(found: Sequence[Wins]) -> Wins:
    return Wins(
        sum(one.wins for one in found),
        sum(one.ties for one in found),
        sum(one.losses for one in found),
    )


def _wins(rows: Mapping[str, Sequence[Row]]) -> str:
    found = wins_by_both_rules(rows)
    (ours, paper), (clear, papers_clear) = found["printed"], found["margin"]
    if not ours.rows:
        return ""
    return (
        f"Infinite width is better than the best trained network in {ours.wins} of {ours.rows} "
        f"rows here and in {paper.wins} of {paper.rows} in the paper; by more than two standard "
        f"errors it is better in {clear.wins} here and {papers_clear.wins} there, and worse in "
        f"{clear.losses} and {papers_clear.losses}."
    )


def _band(shown: Sequence[PartResult]) -> str:
    """What hides deep networks away from the critical line."""
    for one in shown:
        if one.part.name == PICTURE and not one.problem:
            data: HeatMaps = one.data
            lost = [
                lost_share([f for name in data.activations for f in data.followings(name, maps)])
                for _, maps in data.kinds
            ]
            if len(lost) == 3:
                return (
                    f"The band of good networks along the critical line is mostly the look-up "
                    f"table's: of networks with {data.depths[0]} layers on {data.train:,} images "
                    f"of {short_title(data.dataset)}, {lost[0]:.0%} are near chance with it, "
                    f"{lost[1]:.0%} with the exact kernel and the paper's noise of 1e-10, and "
                    f"{lost[2]:.0%} with noise relative to the kernel."
                )
    return ""


def _differences(rows: Mapping[str, Sequence[Row]]) -> str:
    """The exact kernel chosen by validation, beside the paper's numbers."""
    parts = []
    for name, own in rows.items():
        known = [d for row in own if (d := row.difference) is not None]
        if known:
            mean = f"{np.mean(known):+.2f}".replace("-", "−")
            parts.append(f"{mean} points on {short_title(name)}")
    if not parts:
        return ""
    return (
        f"The exact kernel, tuned by validation, differs from the paper's accuracy by "
        f"{' and '.join(parts)} in the mean."
    )
