"""Texts of options as values: numbers, lists of numbers, times, networks."""

import json
import math
import re
from pathlib import Path

from nngp.architecture import Architecture, Network, network_from_dict
from nngp.terminal.output import DataError, UsageError, usage_errors

TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def number(option: str, text: str, whole: bool = False) -> float | str:
    """The value of an option that is a number or auto."""
    if text == "auto":
        return text
    try:
        return int(text) if whole and text != "inf" else float(text)
    except ValueError:
        kind = "a whole number, inf" if whole else "a number"
        raise UsageError(f"{option} must be {kind} or auto, got '{text}'") from None


def whole_numbers(option: str, text: str) -> list[int]:
    """Whole numbers from 1 on, with commas between them."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} must be whole numbers such as 64,512, got '{text}'") from None
    if min(values) < 1:
        raise UsageError(f"{option} must be at least 1, got {min(values)}")
    return list(dict.fromkeys(values))


def seconds(text: str | None) -> float:
    """A budget such as 90s, 20m or 1h30m, in seconds; infinite if there is none."""
    if text is None:
        return math.inf
    found = TIME.fullmatch(text.strip().replace(" ", ""))
    parts = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    total = sum(unit * part for unit, part in zip((3600, 60, 1), parts, strict=True))
    if not total > 0:
        raise UsageError(f"--budget must be a time such as 90s, 20m or 1h30m, got '{text}'")
    return total


def network(
    depth: float | str, activation: str, weight_var: float, bias_var: float
) -> Architecture:
    """The network that options describe."""
    with usage_errors():
        return Architecture(depth, activation, weight_var, bias_var)  # type: ignore[arg-type]


def network_file(path: Path) -> Network:
    """The network that a file describes: the JSON of its `as_dict()`."""
    try:
        values = json.loads(path.read_text("utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no object")
        found = network_from_dict(values)
        _ = found.is_infinite or found.graph  # ValueError unless it is a whole network
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError, TypeError, KeyError) as cause:
        raise DataError(
            f"{path} describes no network ({cause}); write it in Python by "
            "json.dump(network.as_dict(), file)"
        ) from None
    return found
