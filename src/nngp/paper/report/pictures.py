"""Figures inside a page: as SVG, or as PNG where that would be heavy."""

import re
from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING, Any

from nngp.paper.part import Drawing
from nngp.paper.report.html import Html, element, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAVIEST = 600_000  # bytes of SVG
DPI = 180
ENLARGED = 1.8  # pixels for a point, at most: lettering stays about as large as the text around
ID = re.compile(r'\sid="[^"]*"')
REFERENCE = re.compile(r'(\bid="|href="#|url\(#)')
WRAPPING = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)


def both_widths(draw: Drawing[Any], data: object, name: str, words: str) -> Html:
    """A figure for screens and paper, and one for telephones if the drawing has such a form."""
    import matplotlib.pyplot as plt

    wide, narrow = draw(data), draw(data, narrow=True)
    if (wide.get_size_inches() == narrow.get_size_inches()).all():
        plt.close(narrow)
        return inline(wide, name, words)
    return joined(
        element("div", inline(wide, name, words), class_="wide"),
        element("div", inline(narrow, f"{name}-narrow", words), class_="narrow"),
    )


def inline(figure: "Figure", name: str, words: str) -> Html:
    """A matplotlib figure as an element that needs no other file; the figure is closed. `name`
    keeps its ids apart from those of other figures, `words` are for readers who cannot see it."""
    import matplotlib.pyplot as plt

    try:
        text = _written(figure, "svg", name).decode()
        if len(text) <= HEAVIEST:
            return _embedded(text, name, words)
        image = b64encode(_written(figure, "png", name)).decode()
        return element("img", src=f"data:image/png;base64,{image}", alt=words)
    finally:
        plt.close(figure)


def _written(figure: "Figure", kind: str, salt: str) -> bytes:
    """The figure as a file: the same bytes whenever the same figure is drawn."""
    import matplotlib.pyplot as plt

    buffer = BytesIO()
    when = {"Date": None} if kind == "svg" else None
    with plt.rc_context({"svg.hashsalt": salt}):
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=when)
    return buffer.getvalue()


def _embedded(text: str, name: str, words: str) -> Html:
    """An SVG file as part of a page: no head, no fixed size, ids of its own."""
    body = WRAPPING.sub("", text).strip()
    head, rest = body.split(">", 1)
    points = re.search(r'\swidth="([\d.]+)pt"', head)
    widest = f' style="max-width: {ENLARGED * float(points[1]):.0f}px"' if points else ""
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = element("title", words)
    body = _named_once(f'{head} role="img"{widest}>{label}{rest}')
    return Html(REFERENCE.sub(rf"\g<1>{name}-", body))


def _named_once(text: str) -> str:
    """Equal images have equal ids, to which nothing refers: only the first keeps its id."""
    seen: set[str] = set()

    def keep(found: re.Match[str]) -> str:
        again = found[0] in seen
        seen.add(found[0])
        return "" if again else found[0]

    return ID.sub(keep, text)
