"""Transformations of tables, for `nngp.Invariant`: permutations of columns, signs, functions."""

from nngp.architecture.invariances.symmetries import functions, permutations, signs

__all__ = ["functions", "permutations", "signs"]
