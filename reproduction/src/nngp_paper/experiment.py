"""Experiments: kinds of runs in the store, and the helpers that their studies share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp import Architecture
from nngp_paper.runs import Run, RunStore
from nngp_paper.runs.study import Study
from nngp_paper.scope import Scope

Config = Mapping[str, Any]  # of a run: JSON values by name
Result = Mapping[str, Any]  # likewise
DIGITS = 8  # significant, of stored numbers


@dataclass(frozen=True)
class Experiment:
    """A kind of runs, by its name in the store.

    `study` gives the runs of a scope; a random search over finite networks has none
    (`shared/searches.py`). Where later runs depend on the results of earlier ones, `stages` gives a
    study after the other, and `later` estimates the configurations that cannot be known yet.
    """

    name: str
    study: Callable[[Scope], Study] | None = None
    stages: Callable[[RunStore, Scope], Iterable[Study]] | None = None
    later: Callable[[Scope], Sequence[Config]] = lambda scope: ()
    extra: bool = False  # needs the packages of the extra `finite`


def network_of(config: Config) -> Architecture:
    """The network that a configuration names by its depth, activation and two variances."""
    names = ("depth", "activation", "weight_var", "bias_var")
    return Architecture(*(config[name] for name in names))


def rounded(values: ArrayLike) -> Any:
    """Nested lists of floats (or one float) with eight significant digits; infinities stay."""
    array = np.asarray(values, dtype=float)
    short = np.array([float(f"{value:.{DIGITS}g}") for value in array.ravel()])
    return short.reshape(array.shape).tolist()


def result_of(run: Run) -> Result:
    """The result of a finished run."""
    assert run.result is not None
    return run.result
