"""What `nngp reproduce` is asked for: its options, refused with a sentence where they cannot be."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

from nngp.architecture import as_activation
from nngp.datasets.catalogue import IMAGE_SETS
from nngp.linsolve import choose_engine
from nngp.paper.part import AnyPart
from nngp.paper.parts import parts_named
from nngp.paper.scope import DEPTHS, GRID, Scope, default_sizes
from nngp.paper.searches import TRIALS, WIDTHS, SearchSize
from nngp.terminal.finite import numbers
from nngp.terminal.speech import UsageError, nearest

QUICK_DEPTHS, QUICK_GRID = (1, 3, 10, 50), 10  # digits are for a first look
TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


@dataclass(frozen=True)
class Asked:
    """What is to be reproduced, how much is spent on finite networks, and whose workers do the
    runs; without a cluster this process does."""

    parts: list[AnyPart]
    scope: Scope
    finite: SearchSize
    cluster: str | None = None


def asked(
    parts: list[str],
    dataset: str,
    sizes: str | None,
    depths: str | None,
    activations: str,
    grid: int | None,
    engine: str,
    data: Path | None,
    trials: int | None,
    widths: str | None,
    cluster: str | None = None,
) -> Asked:
    """The options of the command, refused with a sentence where they cannot be."""
    if dataset not in IMAGE_SETS:
        near = nearest(dataset, list(IMAGE_SETS))
        raise UsageError(f"--dataset must be one of {', '.join(IMAGE_SETS)}, got '{dataset}'{near}")
    names = tuple(dict.fromkeys(name.strip() for name in activations.split(",")))
    try:
        for name in names:
            as_activation(name)
        choose_engine(engine, 0)
        wanted = parts_named(parts)
    except (ValueError, TypeError) as error:
        raise UsageError(str(error)) from None
    usual, side = (QUICK_DEPTHS, QUICK_GRID) if dataset == "digits" else (DEPTHS, GRID)
    layers = usual if depths is None else tuple(numbers("--depths", depths))
    scope = Scope(dataset, _sizes(dataset, sizes), layers, names, grid or side, data, engine)
    units = WIDTHS if widths is None else tuple(numbers("--widths", widths))
    return Asked(wanted, scope, SearchSize(units, trials or TRIALS), cluster)


def _sizes(dataset: str, text: str | None) -> tuple[int, ...]:
    """Training sizes that the data set has."""
    usual = default_sizes(dataset)
    if text is None:
        return usual
    sizes, least = sorted(numbers("--sizes", text)), len(IMAGE_SETS[dataset].class_names)
    if sizes[0] < least or sizes[-1] > usual[-1]:
        raise UsageError(
            f"--sizes must be from {least} (one of each class) to {usual[-1]}, which is all that "
            f"{dataset} has"
        )
    return tuple(sizes)


def seconds_of(text: str | None) -> float:
    """A budget such as 90s, 20m or 1h30m, in seconds; without one there is no end."""
    if text is None:
        return math.inf
    found = TIME.fullmatch(text.strip().replace(" ", ""))
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0, 0, 0)
    total = 3600 * hours + 60 * minutes + seconds
    if not total > 0:
        raise UsageError(f"--budget must be a time such as 90s, 20m or 1h30m, got '{text}'")
    return total
