"""Texts of options as values: lists of numbers, times."""

import math
import re

from nngp_paper.terminal.output import UsageError

TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers from 1 on, with commas between them."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be whole numbers such as 64,512, got '{text}'") from None
    if min(values) < 1:
        raise UsageError(f"{option} must be at least 1, got {min(values)}")
    return list(dict.fromkeys(values))


def seconds(text: str | None) -> float:
    """A budget such as 90s, 20m or 1h30m, in seconds; infinite if there is none."""
    if text is None:
        return math.inf
    found = TIME.fullmatch(text.strip().replace(" ", ""))
    parts = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    total = sum(unit * part for unit, part in zip((3600, 60, 1), parts, strict=True))
    if not total > 0:
        raise UsageError(f"--budget must be a time such as 90s, 20m or 1h30m, got '{text}'")
    return total
