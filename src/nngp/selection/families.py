"""Families of transformations that images may have, and the shapes of images."""

from collections.abc import Iterator
from dataclasses import replace

from nngp import images
from nngp.architecture.invariances import Family
from nngp.architecture.invariances.images import image_layout

LARGEST_SHIFT = 3  # pixels
Families = tuple[Family, ...]
Shape = tuple[int, ...]


def expected_families(shape: Shape) -> list[Families]:
    """Families that a search computes if it adds flips and the largest shifts; the last is what it
    ends with."""
    small = list(small_families(shape))
    alone: list[Families] = [(), *((one,) for one in small)]
    return alone + [(*small[:1], one) for one in growing_shifts(shape)]


def small_families(shape: Shape) -> Iterator[Family]:
    """Families that take few products, in the order in which they are tried."""
    height, width, channels = image_size(shape)
    if width > 1:
        yield images.flips(shape)
    if height > 1:
        yield images.flips(shape, axis="vertical")
    if height == width > 1:
        yield images.rotations(shape)
    if channels > 1:
        yield images.colour_order(shape)


def growing_shifts(shape: Shape) -> Iterator[Family]:
    height, width, _ = image_size(shape)
    for most in range(1, LARGEST_SHIFT + 1):
        if 2 * most < min(height, width):
            yield images.shifts(most, shape)


def image_size(shape: Shape) -> tuple[int, int, int]:
    """Height, width and channels of an image of that shape."""
    layout = image_layout(shape)
    return layout.height, layout.width, layout.channels or 1


def with_shape(families: Families, shape: Shape | None) -> Families:
    """Families of images that say no shape get this one."""
    if shape is None:
        return families
    return tuple(
        replace(one, shape=shape) if getattr(one, "shape", shape) is None else one  # type: ignore[type-var]
        for one in families
    )


def name_of(families: Families) -> str:
    """Families in a few words, for the table."""
    return ", ".join(
        f"{one.label}({one.most})" if hasattr(one, "most") else one.label for one in families
    )
