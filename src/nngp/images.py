"""Transformations of images, for `nngp.Invariant`: flips, shifts, rotations, orders of colours."""

from nngp.architecture.invariances.images import colour_order, flips, rotations, shifts

__all__ = ["colour_order", "flips", "rotations", "shifts"]
