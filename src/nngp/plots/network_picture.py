"""A network as a picture: boxes and arrows from the input at the top to the output at the bottom.

Takes a network; gives a `NetworkLayout`, the places of all boxes, arrows and frames in inches, and
a figure drawn from that alone. Branches stand side by side, a skip connection on the right; a
repeated part is drawn once, in a frame with its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nngp.architecture import Network
from nngp.architecture.outline import INPUT_NAME, OUTPUT_NAME, Outline, OutlineStep
from nngp.plots import style
from nngp.plots.style import OutputPath, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]  # inches to the right, and below the top
Trail = tuple[Point, ...]  # corners of an arrow
LINE, CHARACTER = 0.155, 0.073  # height of a line of text and width of a character, inches
PADDING = 0.075  # inside a box, above and below the text; twice that beside it
GAP = 0.24  # length of an arrow
APART = 0.3  # between branches
SKIP = 0.22  # half the room of a branch without boxes
RADIUS = 0.11  # of a sum or a product
FRAME = 0.12  # from the boxes to the frame around them
MARGIN = 0.1
SYMBOLS = {"Sum": "+", "Residual": "+", "Product": "×"}
COLOURS = {
    "dense": style.BLUE,
    "activation": style.ORANGE,
    "other": style.GREEN,
    "join": style.BLACK,
    "end": style.BLACK,
}


@dataclass(frozen=True)
class NetworkBox:
    """A box with lines of text; a circle if its text is one symbol of `SYMBOLS`."""

    kind: str
    lines: tuple[str, ...]
    x: float  # of its centre
    top: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        return self.top + self.height


@dataclass(frozen=True)
class NetworkFrame:
    """A frame around a part that is repeated, and how often it is."""

    words: str
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class NetworkLayout:
    """The places of boxes, arrows and frames in inches; y counts from the top."""

    title: str
    width: float
    height: float
    boxes: tuple[NetworkBox, ...]
    arrows: tuple[Trail, ...]  # corners; the head is at the last one
    frames: tuple[NetworkFrame, ...]


def network(network: Network, path: OutputPath = None) -> "Figure":
    """Draw a network: boxes and arrows from input to output, branches side by side.

    A repeated part is drawn once, in a frame with its number.

    Examples
    --------
    The same in two steps:

    >>> import nngp
    >>> from nngp.plots.network_picture import draw_network, network_layout
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Repeat(block, 50))
    >>> layout = network_layout(net)
    >>> [frame.words for frame in layout.frames], len(layout.boxes)
    (['50 times'], 6)
    >>> figure = draw_network(layout, "network.svg")
    """
    return draw_network(network_layout(network), path)


def network_layout(network: Network) -> NetworkLayout:
    """Place the steps of a network."""
    if not isinstance(network, Network):
        raise TypeError(
            "nngp.plots.network takes an nngp.Architecture or another network, got "
            f"{type(network).__name__}"
        )
    ends = [(OutlineStep("other", name),) for name in (INPUT_NAME, OUTPUT_NAME)]
    outline = ends[0] + network.outline() + ends[1]
    left, right = _extents(outline)
    drawing = _Drawing()
    end, _ = drawing.place(outline, (MARGIN + left, MARGIN), ())
    boxes = [
        NetworkBox("end", box.lines, box.x, box.top, box.width, box.height)
        if box.lines[0] in (INPUT_NAME, OUTPUT_NAME)
        else box
        for box in drawing.boxes
    ]
    title = "tangent kernel" if network.is_tangent else ""
    size = left + right + 2 * MARGIN, end[1] + MARGIN
    return NetworkLayout(title, *size, tuple(boxes), tuple(drawing.arrows), tuple(drawing.frames))


def _lines(step: OutlineStep) -> tuple[str, ...]:
    if step.name in SYMBOLS and step.kind == "join":
        return (SYMBOLS[step.name],)
    return (step.name, *step.details)


def _size(step: OutlineStep) -> Point:
    """Width and height of the box of a step."""
    lines = _lines(step)
    if lines[0] in SYMBOLS.values():
        return 2 * RADIUS, 2 * RADIUS
    longest = max(len(line) for line in lines)
    return CHARACTER * longest + 4 * PADDING, LINE * len(lines) + 2 * PADDING


def _extents(outline: Outline) -> Point:
    """How far steps reach to the left and to the right of their line."""
    sides = [_step_extents(step) for step in outline] or [(SKIP, SKIP)]
    return max(left for left, _ in sides), max(right for _, right in sides)


def _step_extents(step: OutlineStep) -> Point:
    if step.kind == "repeat":
        left, right = _extents(step.branches[0])
        words = CHARACTER * len(step.name) + PADDING  # they stand on the left of the line
        return max(left, words) + FRAME, right + FRAME
    half = _size(step)[0] / 2
    if step.kind != "join":
        return half, half
    columns = _columns(step.branches)
    lefts = [_extents(branch)[0] - x for branch, x in zip(step.branches, columns, strict=True)]
    rights = [_extents(branch)[1] + x for branch, x in zip(step.branches, columns, strict=True)]
    return max(half, *lefts), max(half, *rights)


def _columns(branches: Sequence[Outline]) -> list[float]:
    """Where the lines of branches are, relative to the line that they begin at: those with boxes
    around it, those without on the right."""
    order = sorted(range(len(branches)), key=lambda i: not branches[i])
    reach = [_extents(branch) for branch in branches]
    places, edge = {}, 0.0
    for i in order:
        places[i] = edge + reach[i][0]
        edge += sum(reach[i]) + (APART if branches[i] else 0.0)
    drawn = [places[i] for i in order if branches[i]] or [places[i] for i in order]
    middle = (drawn[(len(drawn) - 1) // 2] + drawn[len(drawn) // 2]) / 2
    return [places[i] - middle for i in range(len(branches))]


class _Drawing:
    """Boxes, arrows and frames as they are placed from the top to the bottom.

    A `Trail` is an arrow that has no end yet: its corners, behind the last box that was placed.
    """

    def __init__(self) -> None:
        self.boxes: list[NetworkBox] = []
        self.arrows: list[Trail] = []
        self.frames: list[NetworkFrame] = []

    def place(self, outline: Outline, at: Point, trail: Trail) -> tuple[Point, Trail]:
        """Place steps below a point; the point below them, and the trail to the next step."""
        for step in outline:
            if step.kind == "repeat":
                at, trail = self._repeat(step, at, trail)
            elif step.kind == "join":
                at, trail = self._join(step, at, trail)
            else:
                at, trail = self._box(step, (at[0], at[1] + (GAP if trail else 0)), trail)
        return at, trail

    def _box(self, step: OutlineStep, at: Point, trail: Trail) -> tuple[Point, Trail]:
        if trail:
            self.arrows.append((*trail, at))
        width, height = _size(step)
        self.boxes.append(NetworkBox(step.kind, _lines(step), *at, width, height))
        below = at[0], at[1] + height
        return below, (below,)

    def _repeat(self, step: OutlineStep, at: Point, trail: Trail) -> tuple[Point, Trail]:
        left, right = _step_extents(step)
        top = at[1] + GAP / 2
        end, trail = self.place(step.branches[0], (at[0], top + LINE - FRAME), trail)
        below = at[0], end[1] + FRAME
        self.frames.append(NetworkFrame(step.name, at[0] - left, at[0] + right, top, below[1]))
        return below, trail

    def _join(self, step: OutlineStep, at: Point, trail: Trail) -> tuple[Point, Trail]:
        x, fork = at[0], at[1] + GAP / 2
        ends = []
        for branch, column in zip(step.branches, _columns(step.branches), strict=True):
            start = x + column, fork
            ends.append(self.place(branch, start, (*trail, (x, fork), start)))
        width, height = _size(step)
        top = max(end[1] for end, _ in ends) + GAP
        for (branch_x, _), corners in ends:
            if abs(branch_x - x) < width / 2:
                self.arrows.append((*corners, (branch_x, top)))
            else:
                side, middle = width / 2 if branch_x > x else -width / 2, top + height / 2
                self.arrows.append((*corners, (branch_x, middle), (x + side, middle)))
        return self._box(step, (x, top), ())


def draw_network(layout: NetworkLayout, path: OutputPath = None) -> "Figure":
    """Draw a layout."""
    room = LINE + MARGIN if layout.title else 0.0
    size = layout.width, layout.height + room
    with new_figure(size, path, dpi=style.SCREEN_DPI) as figure:
        figure.set_layout_engine("none")  # places are given in inches
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, size[0]), ylim=(layout.height, -room))
        axes.set_axis_off()
        for frame in layout.frames:
            _draw_frame(axes, frame)
        for corners in layout.arrows:
            _draw_arrow(axes, corners)
        for box in layout.boxes:
            _draw_box(axes, box)
        if layout.title:
            axes.text(layout.width / 2, -room / 2, layout.title, ha="center", va="center")
    return figure


def _draw_frame(axes: "Axes", frame: NetworkFrame) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner, size = (frame.left, frame.top), (frame.right - frame.left, frame.bottom - frame.top)
    look: Any = {"boxstyle": "round,pad=0,rounding_size=0.06", "fc": "none", "ec": "0.5"}
    axes.add_patch(FancyBboxPatch(corner, *size, lw=0.9, ls=(0, (4, 2)), **look))
    axes.text(
        frame.left + PADDING, frame.top + 0.03, frame.words, va="top", color="0.3", clip_on=False
    )


def _draw_arrow(axes: "Axes", corners: Trail) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    different = [p for p, q in zip(corners, (None, *corners), strict=False) if p != q]
    axes.add_patch(
        FancyArrowPatch(
            path=Path(different),
            arrowstyle="-|>",
            mutation_scale=7,
            lw=0.9,
            color="0.25",
            capstyle="butt",
            joinstyle="round",
            shrinkA=0,
            shrinkB=0,
        )
    )


def _draw_box(axes: "Axes", box: NetworkBox) -> None:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Circle, FancyBboxPatch

    colour = COLOURS[box.kind]
    look: Any = {"fc": to_rgba(colour, 0.12), "ec": colour, "lw": 0.9, "zorder": 3}
    if box.lines[0] in SYMBOLS.values():
        look["fc"] = "white"
        axes.add_patch(Circle((box.x, box.top + RADIUS), RADIUS, **look))
    elif box.kind != "end":
        corner = box.x - box.width / 2, box.top
        rounded = "round,pad=0,rounding_size=0.06"
        axes.add_patch(FancyBboxPatch(corner, box.width, box.height, boxstyle=rounded, **look))
    middle = box.top + box.height / 2
    axes.text(box.x, middle, "\n".join(box.lines), ha="center", va="center", zorder=4)
