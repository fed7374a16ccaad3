"""Texts of options as values: numbers, networks."""

import json
from pathlib import Path

from nngp.architecture import Architecture, Network, network_from_dict
from nngp.terminal.output import DataError, UsageError, usage_errors


def number(option: str, text: str, whole: bool = False) -> float | str:
    """The value of an option that is a number or auto."""
    if text == "auto":
        return text
    try:
        return int(text) if whole and text != "inf" else float(text)
    except ValueError:
        kind = "a whole number, inf" if whole else "a number"
        raise UsageError(f"{option} must be {kind} or auto, got '{text}'") from None


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
