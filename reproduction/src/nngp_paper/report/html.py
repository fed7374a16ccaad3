"""HTML from Python, without templates: elements and tables are texts that are HTML already."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

VOID = {"img", "meta"}  # elements that have no end


class Html(str):
    """A text that is HTML already; any other is escaped where it is put into an element."""


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. An attribute's name may end in _ (class_) and has - for _ (aria_label); one that
    is None or False is left out, one that is True has no value."""
    head = name + "".join(_attribute(*pair) for pair in attributes.items())
    return Html(f"<{head}>" if name in VOID else f"<{head}>{joined(*children)}</{name}>")


def joined(*children: object) -> Html:
    """Pieces one after the other."""
    return Html("".join(c if isinstance(c, Html) else escape(str(c)) for c in children))


def table(
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: str,
    name: str,
    kind: str = "",
) -> Html:
    """Columns with heads; the first cell of a row is its head. It scrolls in a box of its own,
    which has a name and can be reached with a keyboard. The style knows it by its `kind`."""
    top = element("tr", *(element("th", head, scope="col") for head in heads))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", c) for c in rest))
        for first, *rest in rows
    ]
    parts = element("caption", caption), element("thead", top), element("tbody", *body)
    inner = element("table", *parts, class_=kind or None)
    return element("div", inner, class_="scroll", role="region", aria_label=name, tabindex=0)


def definitions(values: Mapping[str, object]) -> Html:
    """Names and their values."""
    pairs = [joined(element("dt", name), element("dd", value)) for name, value in values.items()]
    return element("dl", *pairs)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    word = name.rstrip("_").replace("_", "-")
    return f" {word}" if value is True else f' {word}="{escape(str(value))}"'
