"""Numbers as the sentences of the report have them."""

from collections.abc import Mapping, Sequence


def percent(accuracy: float) -> str:
    """An accuracy in per cent, with two decimals."""
    return f"{100 * accuracy:.2f}%"


def sentence(parts: Sequence[str]) -> str:
    """Parts of a sentence, joined by semicolons."""
    return "; ".join(parts) + "."


def by_size(values: Mapping[tuple[str, int], float], form: str) -> str:
    """The training sizes, then for each activation its numbers in that order."""
    sizes = sorted({size for _, size in values})
    parts = []
    for name in dict.fromkeys(name for name, _ in values):
        known = [values.get((name, size)) for size in sizes]
        parts.append(f"{name} {', '.join('–' if v is None else format(v, form) for v in known)}")
    return f"{', '.join(f'{size:,}' for size in sizes)} points: {sentence(parts)}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, with about two digits."""
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
