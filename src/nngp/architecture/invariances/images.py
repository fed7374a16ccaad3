"""Transformations of images, for `nngp.Invariant`.

An image is one row of numbers. Its `shape` is (height, width), or with channels (height, width,
channels) or (channels, height, width), whichever the order of the numbers is. Without a shape, a
row whose length is a square is a square image with one channel.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._numbers import as_real, whole_number
from nngp.architecture.invariances.family import ColumnOrder, Family, RowFunction, as_probability

Shape = tuple[int, ...]
CHANNELS = 4  # at most; a longer first or last axis is a height or a width
AXES = ("horizontal", "vertical")


def flips(
    shape: Shape | None = None, *, axis: str = "horizontal", probability: float = 0.5
) -> Family:
    """Mirror images, left to right; with `axis="vertical"` upside down.

    Parameters
    ----------
    shape : tuple of int, optional
        Of an image: (height, width), perhaps with channels first or last.
    axis : {"horizontal", "vertical"}
    probability : float
        Of a mirror image, in the average. At 0.5 an image and its mirror image are the same to the
        network; at 0 they are as different as they were.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Invariant(nngp.Architecture(2), nngp.images.flips())
    >>> nngp.kernel(net, [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).std().round(12)
    np.float64(0.0)
    """
    return Flips(_shape(shape), axis, as_probability(probability))


def shifts(most: int, shape: Shape | None = None, *, width: float = math.inf) -> Family:
    """Shift images by at most so many pixels, up, down, left and right; what leaves on one side
    comes back on the other.

    Parameters
    ----------
    most : int
        The largest shift along each axis, in pixels.
    shape : tuple of int, optional
        Of an image: (height, width), perhaps with channels first or last.
    width : float
        A shift by r pixels has the weight exp(-r² / (2 width²)); infinite for equal weights.

    Examples
    --------
    >>> import nngp
    >>> nngp.images.shifts(1, (28, 28)).weights.round(3)[:2].tolist()
    [0.111, 0.111]
    """
    size = as_real(width, "width")
    if not size > 0:
        raise ValueError(f"width must be positive, got {width!r}")
    return Shifts(whole_number("most", most, 1), _shape(shape), size)


def rotations(
    shape: Shape | None = None, *, degrees: float | None = None, count: int = 3
) -> Family:
    """Rotate images: by quarter turns, or by small angles.

    Parameters
    ----------
    shape : tuple of int, optional
        Of an image: (height, width), perhaps with channels first or last; square for quarter
        turns.
    degrees : float, optional
        Rotate by `count` angles from -degrees to degrees, with linear interpolation and the norm
        of every image kept. Such images are computed for both inputs of a pair: count² kernels.
        By default images are turned by 0, 90, 180 and 270 degrees, which takes four.
    count : int
        Number of angles, if `degrees` is given.

    Examples
    --------
    >>> import nngp
    >>> len(nngp.images.rotations((8, 8)).weights), len(nngp.images.rotations(degrees=9).weights)
    (4, 3)
    """
    if degrees is None:
        return QuarterTurns(_shape(shape))
    largest = as_real(degrees, "degrees")
    if not 0 < largest <= 180:
        raise ValueError(f"degrees must be between 0 and 180, got {degrees!r}")
    return SmallTurns(_shape(shape), largest, whole_number("count", count, 2))


def colour_order(shape: Shape, *, probability: float | None = None) -> Family:
    """Exchange the channels of images in all orders.

    Parameters
    ----------
    shape : tuple of int
        Of an image: (height, width, channels) or (channels, height, width).
    probability : float, optional
        Of any order but the one that an image has; all are equally probable by default.

    Examples
    --------
    >>> import nngp
    >>> nngp.images.colour_order((32, 32, 3)).weights.round(3).tolist()
    [0.167, 0.167, 0.167, 0.167, 0.167, 0.167]
    """
    known = _shape(shape)
    channels = None if known is None else image_layout(known).channels
    if channels is None or channels < 2:
        raise ValueError(f"colour_order needs images with two channels or more, got {shape!r}")
    equal = 1 - 1 / math.factorial(channels)
    chosen = equal if probability is None else as_probability(probability)
    return ColourOrder(known, chosen)


@dataclass(frozen=True, repr=False)
class Flips(Family):
    """Mirror images."""

    shape: Shape | None
    axis: str
    probability: float

    name: ClassVar[str] = "flips"
    parameters: ClassVar[dict[str, float]] = {"probability": 0.5}

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise ValueError(f"axis must be one of {', '.join(AXES)}, got {self.axis!r}")

    def elements(self, d: int) -> list[ColumnOrder]:
        pixels = _pixels(self.shape, d, self.name)
        turned = np.flip(pixels, axis=1 if self.axis == "horizontal" else 0)
        return [_order(pixels, pixels), _order(pixels, turned)]

    @property
    def label(self) -> str:
        return self.name if self.axis == "horizontal" else f"{self.axis}_{self.name}"

    @property
    def weights(self) -> Array:
        return _shared(self.probability, 1)

    def slopes(self) -> dict[str, Array]:
        return {"probability": np.array([-1.0, 1.0])}


@dataclass(frozen=True, repr=False)
class Shifts(Family):
    """Cyclic shifts."""

    most: int
    shape: Shape | None
    width: float

    name: ClassVar[str] = "shifts"
    parameters: ClassVar[dict[str, float]] = {"width": math.inf}

    def elements(self, d: int) -> list[ColumnOrder]:
        pixels = _pixels(self.shape, d, self.name)
        if 2 * self.most >= min(pixels.shape[:2]):
            height, width = pixels.shape[:2]
            raise ValueError(
                f"images of {height} x {width} pixels cannot be shifted by {self.most} to all "
                "sides: the same shift would be counted twice; use fewer pixels"
            )
        return [_order(pixels, np.roll(pixels, move, (0, 1))) for move in self._moves]

    @cached_property
    def _moves(self) -> list[tuple[int, int]]:
        along = range(-self.most, self.most + 1)
        return list(product(along, along))

    @property
    def _squares(self) -> Array:
        return np.array([float(down**2 + right**2) for down, right in self._moves])

    @property
    def weights(self) -> Array:
        # Not from 1 / width², which overflows where the weights are a single one.
        out: Array = np.exp(-0.5 * (np.sqrt(self._squares) / self.width) ** 2)
        return out / out.sum()

    def slopes(self) -> dict[str, Array]:
        if math.isinf(self.width):
            return {}
        weights, squares = self.weights, self._squares
        return {"width": weights * (squares - weights @ squares) / self.width**3}


@dataclass(frozen=True, repr=False)
class QuarterTurns(Family):
    """Rotations by multiples of 90 degrees."""

    shape: Shape | None

    name: ClassVar[str] = "rotations"

    def elements(self, d: int) -> list[ColumnOrder]:
        pixels = _pixels(self.shape, d, self.name)
        if pixels.shape[0] != pixels.shape[1]:
            raise ValueError(
                f"images of {pixels.shape[0]} x {pixels.shape[1]} pixels have no quarter turns; "
                "they must be square"
            )
        return [_order(pixels, np.rot90(pixels, k)) for k in range(4)]

    @property
    def weights(self) -> Array:
        return np.full(4, 0.25)


@dataclass(frozen=True, repr=False)
class SmallTurns(Family):
    """Rotations by small angles."""

    shape: Shape | None
    degrees: float
    count: int

    name: ClassVar[str] = "rotations"

    @property
    def of_functions(self) -> bool:
        return True

    def elements(self, d: int) -> list[RowFunction]:
        pixels = _pixels(self.shape, d, self.name)
        angles = np.linspace(-self.degrees, self.degrees, self.count)
        return [Turn(float(angle), pixels.shape, pixels) for angle in angles]

    @property
    def weights(self) -> Array:
        return np.full(self.count, 1.0 / self.count)


@dataclass(frozen=True, repr=False)
class ColourOrder(Family):
    """Exchanged channels."""

    shape: Shape | None
    probability: float

    name: ClassVar[str] = "colour_order"
    parameters: ClassVar[dict[str, float]] = {"probability": 0.5}

    def elements(self, d: int) -> list[ColumnOrder]:
        pixels = _pixels(self.shape, d, self.name)
        orders = permutations(range(pixels.shape[2]))
        return [_order(pixels, pixels[:, :, list(order)]) for order in orders]

    @property
    def weights(self) -> Array:
        return _shared(self.probability, self._others)

    @property
    def _others(self) -> int:
        channels = None if self.shape is None else image_layout(self.shape).channels
        return math.factorial(channels or 1) - 1

    def slopes(self) -> dict[str, Array]:
        return {"probability": _shared(1.0, self._others) - _shared(0.0, self._others)}


@dataclass(frozen=True, eq=False)
class Turn:
    """Rotation by an angle, linearly interpolated; the norm of an image stays as it was."""

    angle: float
    shape: Shape
    pixels: NDArray[np.intp]

    def __call__(self, X: Array) -> Array:
        if self.angle == 0.0:
            return X
        from scipy.ndimage import rotate

        images = X[:, self.pixels]
        turned = rotate(images, self.angle, axes=(2, 1), reshape=False, order=1, mode="nearest")
        out = np.empty_like(X)
        out[:, self.pixels.ravel()] = turned.reshape(len(X), -1)
        before, after = (np.sqrt((rows**2).sum(axis=1)) for rows in (X, out))
        ratio = np.divide(before, after, out=np.zeros_like(before), where=after > 0)
        kept: Array = out * ratio[:, None]
        return kept


@dataclass(frozen=True)
class ImageLayout:
    """Where the numbers of an image are."""

    height: int
    width: int
    channels: int | None  # None without an axis for them
    first: bool  # whether channels are the first axis

    def pixels(self) -> NDArray[np.intp]:
        """The columns of an image, as (height, width, channels)."""
        channels = self.channels or 1
        columns = np.arange(self.height * self.width * channels)
        if self.first:
            return columns.reshape(channels, self.height, self.width).transpose(1, 2, 0)
        return columns.reshape(self.height, self.width, channels)


def image_layout(shape: Shape) -> ImageLayout:
    """Which axes are which; ValueError for a shape that does not say."""
    if len(shape) == 2:
        return ImageLayout(shape[0], shape[1], None, False)
    channels = min(shape[0], shape[2])
    if channels > CHANNELS or shape[0] == shape[2]:
        raise ValueError(
            f"shape {shape} does not say which axis the channels are; it must be (height, width, "
            f"channels) or (channels, height, width), with at most {CHANNELS} channels and more "
            "pixels along an axis"
        )
    if channels == shape[0]:
        return ImageLayout(shape[1], shape[2], shape[0], True)
    return ImageLayout(shape[0], shape[1], shape[2], False)


def square_shape(d: int) -> Shape | None:
    """The shape of a square image of d pixels, if there is one."""
    side = math.isqrt(d)
    return (side, side) if side * side == d else None


def _pixels(shape: Shape | None, d: int, name: str) -> NDArray[np.intp]:
    """The columns of an image, as (height, width, channels)."""
    if shape is None:
        shape = square_shape(d)
        if shape is None:
            raise ValueError(
                f"{name} of inputs with {d} columns need the shape of an image, and {d} is no "
                "square; pass shape=(height, width) or (height, width, channels)"
            )
    if math.prod(shape) != d:
        raise ValueError(f"images of shape {shape} have {math.prod(shape)} numbers, and X has {d}")
    return image_layout(shape).pixels()


def _order(pixels: NDArray[np.intp], moved: NDArray[np.intp]) -> ColumnOrder:
    """The order that puts the numbers of `moved` where those of `pixels` are."""
    index = np.empty(pixels.size, dtype=np.intp)
    index[pixels.ravel()] = moved.ravel()
    return ColumnOrder(index)


def _shape(shape: Any) -> Shape | None:
    if shape is None:
        return None
    try:
        sizes = tuple(whole_number("shape", size, 1) for size in shape)
    except TypeError:
        sizes = ()
    if len(sizes) not in (2, 3):
        raise ValueError(
            "shape must be (height, width), (height, width, channels) or (channels, height, "
            f"width), got {shape!r}"
        )
    if len(sizes) == 3:
        image_layout(sizes)
    return sizes


def _shared(probability: float, others: int) -> Array:
    """Weights of the identity and of others, which share a probability."""
    return np.array([1.0 - probability, *[probability / others] * others])
