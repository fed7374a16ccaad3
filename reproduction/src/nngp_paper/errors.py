"""Errors and warnings of the reproduction; those of the library are in `nngp.errors`."""


class RunStoreError(ValueError):
    """A file is no store of runs, is damaged, or was written by a later version."""


class RunStoreWarning(UserWarning):
    """A store of runs is damaged: what can be read of it was taken, and something was left out."""


class NothingMeasuredError(LookupError):
    """The store has no finished runs for a figure or table."""
