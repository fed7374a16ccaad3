"""Errors of the reproduction; those of the library are in `nngp.errors`."""


class RunStoreError(ValueError):
    """A store of runs cannot be used: it is locked, damaged, read-only, or no store at all."""


class NothingMeasuredError(LookupError):
    """The store has no finished runs for a figure or table."""
