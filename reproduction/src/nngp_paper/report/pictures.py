"""Figures inside a page: as SVG, or as PNG where that would be heavy."""

import re
from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zlib import crc32

from nngp_paper.part import Drawing
from nngp_paper.report.html import Html, element, joined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEAVIEST = 600_000  # bytes of SVG
DPI = 180
ENLARGED = 1.8  # pixels for a point, at most: lettering stays about as large as the text around
ID = re.compile(r'\sid="([^"]*)"')
REFERENCE = re.compile(r'(href="#|url\(#)([^")]+)')
PLACES = re.compile(r'(?<=\s)(?:d|x|y)="[^"]*"')
BEYOND = re.compile(r"(\.\d\d)\d+")
BETWEEN = re.compile(r">\s+<")
WRAPPING = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->|<metadata>.*?</metadata>", re.DOTALL)


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
    """An SVG file as part of a page: no head, no fixed size, ids of its own, short."""
    body = WRAPPING.sub("", text).strip()
    head, rest = body.split(">", 1)
    points = re.search(r'\swidth="([\d.]+)pt"', head)
    widest = f' style="max-width: {ENLARGED * float(points[1]):.0f}px"' if points else ""
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = element("title", words)
    body = f'{head} role="img"{widest}>{label}{_shortened(rest)}'
    return Html(_renamed(body, name))


def _shortened(text: str) -> str:
    """The same picture in fewer bytes: hundredths of a point, no space between elements."""
    rounded = PLACES.sub(lambda found: BEYOND.sub(r"\1", " ".join(found[0].split())), text)
    return BETWEEN.sub("><", rounded)


def _renamed(text: str, name: str) -> str:
    """Only ids that are referred to are kept, once, as a short name: equal images have equal ids.
    Those of another `name` differ."""
    used = dict.fromkeys(found[2] for found in REFERENCE.finditer(text))
    short = {own: f"f{crc32(name.encode()):x}-{i:x}" for i, own in enumerate(used)}
    seen: set[str] = set()

    def keep(found: re.Match[str]) -> str:
        own = found[1]
        again = own in seen or own not in short
        seen.add(own)
        return "" if again else f' id="{short[own]}"'

    return ID.sub(keep, REFERENCE.sub(lambda found: found[1] + short[found[2]], text))
