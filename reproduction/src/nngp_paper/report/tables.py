"""Tables 1 and 2 in the page: the paper's numbers beside ours, with signs and colours."""

from collections.abc import Sequence

from nngp_paper.report.html import Html, element, joined, table
from nngp_paper.shared.tables import Row, accuracy_of, as_columns, points

NOTHING = element("span", "–", class_="none", aria_label="none")
SIGNS = {
    **{"met": ("good", "✓ "), "missed": ("bad", "✗ "), "supported": ("good", "✓ ")},
    **{"partly": ("half", "± "), "not supported": ("bad", "✗ ")},
}


def accuracies(rows: Sequence[Row], name: str) -> Html:
    """The paper's table with ours beside it; empty columns are left out."""
    cells = [_cells(row) for row in rows]
    heads = [head for head in cells[0] if any(line[head] is not None for line in cells)]
    lines = [[NOTHING if line[head] is None else line[head] for head in heads] for line in cells]
    return table(heads, lines, f"{name}: test accuracy in per cent.", name, "accuracies")


def verdict(word: str) -> Html:
    """A verdict's sign, colour and word."""
    kind, sign = SIGNS.get(word, ("none", ""))
    return element("span", sign, word, class_=f"{kind} short")


def difference(points: float | None) -> Html | None:
    """Points with their sign, an arrow and a colour."""
    if points is None:
        return None
    shown = f"{abs(points):.2f}"
    if not float(shown):
        return element("span", "= 0.00", class_="none")
    kind, sign = ("good", "▲ +") if points > 0 else ("bad", "▼ −")
    return element("span", f"{sign}{shown}", class_=kind)


def _cells(row: Row) -> dict[str, Html | str | None]:
    plain = as_columns(row)

    def ours(
        name: str, setting: str = "", change: float | None = None, error: float | None = None
    ) -> Html | None:
        """An accuracy, its difference from the paper's, and the setting of its network."""
        if plain[name] is None:
            return None
        margin = f" ± {error:.2f}" if error is not None else ""
        parts = [joined(f"{100 * plain[name]:.2f}{margin}"), difference(change)]
        if setting and plain[setting]:
            parts.append(element("span", plain[setting], class_="none"))
        return _lines(parts)

    exact = points(accuracy_of(row.exact), row.paper)
    return {
        "points": f"{row.train:,}",
        "activation": row.activation,
        "paper, finite": ours("paper_nn", "paper_nn_setting"),
        "ours, finite": ours("nn", "nn_setting"),
        "paper, infinite": ours("paper_nngp", "paper_nngp_setting"),
        "authors' table": ours("table_at_paper_setting", change=row.lookup_difference),
        "exact kernel": ours("exact_at_paper_setting", change=exact),
        "by validation": ours("nngp", "nngp_setting", row.difference, row.standard_error),
        "by evidence": ours("evidence", "evidence_setting"),
        "networks": _count(row.networks, row.candidates, row.wanted),
    }


def other_activations(rows: Sequence[Row], name: str) -> Html:
    """Activations that the paper does not have, as columns: the choice by validation, its setting,
    and how many networks it was made from."""
    names = list(dict.fromkeys(row.activation for row in rows))
    by_size: dict[int, dict[str, Html | str | None]] = {}
    for row in rows:
        tried = _lines([f"{row.networks:,} networks, {row.pairs} pairs"])
        found = joined(_cells(row)["by validation"] or NOTHING, tried)
        by_size.setdefault(row.train, {})[row.activation] = found
    lines = [
        [f"{train:,}", *(cells.get(one) or NOTHING for one in names)]
        for train, cells in sorted(by_size.items())
    ]
    caption = (
        f"{name}: not in the paper, chosen by validation. Below each accuracy stands how many "
        "networks it was chosen from, and how many pairs of depth and weight variance these have. "
        "Rows and columns differ in that, so small differences between them say little."
    )
    place = f"{name}, other activations"
    return table(("points", *names), lines, caption, place, "accuracies others")


def _count(tried: int, candidates: int | None, wanted: int) -> Html | None:
    """Number of networks that a choice had, of the candidates, and of all if some are missing."""
    if not tried:
        return None
    bound = f"of {candidates:,} candidates" if candidates else None
    return _lines([f"{tried:,}", bound, None if tried == wanted else f"of {wanted:,}"])


def _lines(parts: Sequence[Html | str | None]) -> Html:
    return joined(*(element("div", part, class_="short") for part in parts if part is not None))
