"""Tables in a page: the paper's numbers beside ours, the goals, and what runs took."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nngp.paper.report.html import Html, element, joined

if TYPE_CHECKING:
    from nngp.paper.readings.tables import Row

NOTHING = element("span", "–", class_="none", aria_label="none")
SIGNS = {"met": ("good", "✓ "), "missed": ("bad", "✗ ")}


def table(
    heads: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str, name: str, kind: str = ""
) -> Html:
    """Columns with heads; the first cell of a row is its head. It scrolls in a box of its own,
    which has a name and can be reached with a keyboard. The style knows it by its `kind`."""
    top = element("tr", *(element("th", head, scope="col") for head in heads))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", c) for c in rest))
        for first, *rest in rows
    ]
    inner = element(
        "table",
        element("caption", caption),
        element("thead", top),
        element("tbody", *body),
        class_=kind or None,
    )
    return element("div", inner, class_="scroll", role="region", aria_label=name, tabindex=0)


def accuracies(rows: Sequence["Row"], name: str) -> Html:
    """The paper's table with ours beside it; columns in which nothing stands are left out."""
    cells = [_cells(row) for row in rows]
    heads = [head for head in cells[0] if any(line[head] is not None for line in cells)]
    lines = [[NOTHING if line[head] is None else line[head] for head in heads] for line in cells]
    return table(heads, lines, f"{name}: test accuracy in per cent.", name, "accuracies")


def verdict(word: str) -> Html:
    """Met, missed or neither: a sign, a colour and the word."""
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


def definitions(values: Mapping[str, Any]) -> Html:
    """Names and what they are."""
    pairs = [joined(element("dt", name), element("dd", value)) for name, value in values.items()]
    return element("dl", *pairs)


def _cells(row: "Row") -> dict[str, Any]:
    from nngp.paper.readings.columns import as_columns

    plain = as_columns(row)

    def ours(
        name: str, setting: str = "", change: float | None = None, error: float | None = None
    ) -> Any:
        """An accuracy, how it compares, and the network it is of."""
        if plain[name] is None:
            return None
        open_ = f" ± {error:.2f}" if error is not None else ""
        parts = [joined(f"{100 * plain[name]:.2f}{open_}"), difference(change)]
        if setting and plain[setting]:
            parts.append(element("span", plain[setting], class_="none"))
        return _lines(parts)

    return {
        "points": f"{row.train:,}",
        "activation": row.activation,
        "paper, finite": ours("paper_nn", "paper_nn_setting"),
        "ours, finite": ours("nn", "nn_setting"),
        "paper, infinite": ours("paper_nngp", "paper_nngp_setting"),
        "authors' table": ours("table_at_paper_setting", change=row.lookup_difference),
        "exact kernel": ours(
            "exact_at_paper_setting", change=_points(plain, "exact_at_paper_setting")
        ),
        "by validation": ours("nngp", "nngp_setting", row.difference, row.standard_error),
        "by evidence": ours("evidence", "evidence_setting"),
        "networks": _count(row.networks, row.wanted),
    }


def _count(tried: int, wanted: int) -> Html | None:
    """How many networks a choice had, and of how many if not of all."""
    if not tried:
        return None
    return _lines([f"{tried:,}", None if tried == wanted else f"of {wanted:,}"])


def _points(plain: Mapping[str, Any], name: str) -> float | None:
    """A column minus the paper's, in hundredths."""
    if plain[name] is None or plain["paper_nngp"] is None:
        return None
    return 100.0 * float(plain[name] - plain["paper_nngp"])


def _lines(parts: Sequence[Any]) -> Html:
    return joined(*(element("div", part, class_="short") for part in parts if part is not None))
