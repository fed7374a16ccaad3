"""What a target is."""

from enum import StrEnum


class Task(StrEnum):
    """Numbers, classes, or whichever it looks like."""

    auto = "auto"
    regression = "regression"
    classification = "classification"
