"""HTML from Python, without templates: elements are texts that are HTML already."""

from html import escape
from typing import Any

VOID = {"img", "meta"}  # elements that have no end


class Html(str):
    """A text that is HTML already; any other is escaped where it is put into an element."""


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """One element. An attribute's name may end in _ (class_) and has - for _ (aria_label); one that
    is None or False is left out, one that is True has no value."""
    head = name + "".join(_attribute(*pair) for pair in attributes.items())
    return Html(f"<{head}>" if name in VOID else f"<{head}>{joined(*children)}</{name}>")


def joined(*children: Any) -> Html:
    """Pieces one after the other."""
    return Html("".join(c if isinstance(c, Html) else escape(str(c)) for c in children))


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    word = name.rstrip("_").replace("_", "-")
    return f" {word}" if value is True else f' {word}="{escape(str(value))}"'
