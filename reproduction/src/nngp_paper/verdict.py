"""Verdicts on the paper's claims: a word, and one sentence with the number that decides it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Word = Literal["supported", "partly", "not supported", "not measured"]


@dataclass(frozen=True)
class ClaimVerdict:
    """Verdict of our runs on a claim, and the number that decides it, beside that of chance where
    chance has one.

    Examples
    --------
    >>> from nngp_paper.verdict import ClaimVerdict, share_word
    >>> ClaimVerdict(share_word([True, False]), "one of two panels has it.").word
    'partly'
    """

    word: Word
    reason: str


def share_word(held: Sequence[bool]) -> Word:
    """Supported if all cases have it, partly if some do, not measured without cases."""
    if not held:
        return "not measured"
    return "supported" if all(held) else "partly" if any(held) else "not supported"


def span(values: Sequence[float], form: str) -> str:
    """The smallest and the largest of some numbers, or the one that there is."""
    low, high = (format(value, form).replace("-", "−") for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
