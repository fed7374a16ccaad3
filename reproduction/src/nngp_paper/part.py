"""The type of a table or figure of the paper, and reading parts from a store of runs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Config, Experiment, Result, result_of
from nngp_paper.grids.arrays import AUTHORS, RELATIVE, Grids, read_grids
from nngp_paper.runs import RunStore
from nngp_paper.runs.key import key_of
from nngp_paper.runs.study import Study
from nngp_paper.scope import Scope
from nngp_paper.verdict import ClaimVerdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # names for annotations only: matplotlib is imported by drawings
    Axes = Figure = Any

KINDS = {"table": "Table", "fig": "Figure"}  # by the beginning of a part's name
BEYOND = "Beyond the paper"  # the label of parts without a number
DATASETS = ("mnist", "cifar10")  # of the paper
Style = dict[str, Any]  # keywords of matplotlib's functions
Data = TypeVar("Data")
Shown = TypeVar("Shown", contravariant=True)


@dataclass(frozen=True)
class Results:
    """The runs of a store that are about one scope. Grids take longest to read: they are read on
    first use, and once for all parts."""

    store: RunStore
    scope: Scope

    def finished(self, study: Study) -> list[tuple[Config, Result]]:
        """Configurations and results of the finished runs of a study, in its order; raises
        NothingMeasuredError if there are none."""
        keys = [key_of(study.experiment, config) for config in study.configs]
        runs = {run.key: run for run in self.store.runs(study.experiment, "done", keys=keys)}
        if not runs:
            raise NothingMeasuredError(
                f"{self.store.path} has no finished run of {study.experiment!r} with these "
                "options; run nngp-paper reproduce with this part first"
            )
        return [(runs[key].config, result_of(runs[key])) for key in keys if key in runs]

    @cached_property
    def grids(self) -> Grids:
        """The grids over the two variances."""
        return read_grids(self.store, self.scope)

    @cached_property
    def relative_grids(self) -> Grids:
        """The grids with noise relative to each kernel's scale."""
        return read_grids(self.store, self.scope.relative, RELATIVE)

    @cached_property
    def authors_grids(self) -> Grids:
        """The grids with the kernel of the authors' look-up table."""
        return read_grids(self.store, self.scope, AUTHORS)


class Drawing(Protocol[Shown]):
    """A function that draws data and computes nothing; with a path the figure is saved. `narrow` is
    for telephones: panels stand below each other."""

    def __call__(
        self, data: Shown, path: str | Path | None = None, /, *, narrow: bool = False
    ) -> Figure: ...


@dataclass(frozen=True)
class Claim:
    """The title of a part, what the paper says with it, and what to look for in ours; `beside` is
    what to look for where the paper has numbers of the data set."""

    title: str
    paper: str
    look: str
    beside: str = ""


@dataclass(frozen=True)
class Part(Generic[Data]):
    """One table or figure; a part without a drawing is a table. `datasets` are those that the paper
    shows it for: the paper's two, unless it says otherwise.

    Examples
    --------
    >>> from nngp_paper.parts import parts_named
    >>> (part,) = parts_named(["fig6"])
    >>> part.claim.title, part.about_data
    ('the kernel against the angle', False)
    """

    name: str
    claim: Claim
    experiments: tuple[Experiment, ...]
    read: Callable[[Results], Data]
    finding: Callable[[Data], str]
    verdict: Callable[[Data], ClaimVerdict]
    draw: Drawing[Data] | None = None
    about_data: bool = True  # or about networks alone, the same for every data set
    datasets: tuple[str, ...] = DATASETS

    @property
    def heading(self) -> str:
        """Number in the paper and title; a part without a number goes beyond the paper."""
        return f"{self.label}: {self.claim.title}"

    @property
    def label(self) -> str:
        """Text before the title."""
        numbered = re.fullmatch(r"(table|fig)(\d+)", self.name)
        return f"{KINDS[numbered[1]]} {numbered[2]}" if numbered else BEYOND

    @property
    def is_beyond(self) -> bool:
        """Whether the paper has nothing of the kind, so that its claim is ours."""
        return self.label == BEYOND

    def look(self, scope: Scope) -> str:
        """A hint for the reader."""
        beside = self.claim.beside if scope.dataset in self.datasets else ""
        return f"{self.claim.look} {beside}".strip()

    def named(self, scope: Scope) -> str:
        """The name of its files, and of its place in the report."""
        return f"{self.name}-{scope.dataset}" if self.about_data else self.name


AnyPart = Part[Any]


@dataclass(frozen=True)
class PartResult:
    """The data of a part as a store has them, or a sentence that says why there are none.

    Examples
    --------
    >>> from nngp_paper.part import PartResult
    >>> from nngp_paper.parts import parts_named
    >>> from nngp_paper.scope import Scope
    >>> (part,) = parts_named(["table1"])
    >>> PartResult(part, Scope("digits", sizes=(100,)), problem="nobody ran it").finding
    'Missing: nobody ran it.'
    """

    part: AnyPart
    scope: Scope
    data: Any = None
    problem: str = ""

    @property
    def finding(self) -> str:
        """The sentence of the report, with its numbers."""
        return f"Missing: {self.problem}." if self.problem else self.part.finding(self.data)

    @property
    def verdict(self) -> ClaimVerdict:
        """Verdict on the paper's claim."""
        if self.problem:
            return ClaimVerdict("not measured", f"{self.problem}.")
        return self.part.verdict(self.data)

    @property
    def is_papers(self) -> bool:
        """Whether the paper has this part for the data set, if it has that data set at all."""
        return self.scope.dataset in self.part.datasets or self.scope.dataset not in DATASETS


def read_parts(parts: Sequence[AnyPart], store: RunStore, scope: Scope) -> list[PartResult]:
    """Read parts from a store.

    Examples
    --------
    >>> from nngp_paper.part import read_parts
    >>> from nngp_paper.parts import parts_named
    >>> from nngp_paper.scope import Scope
    >>> from nngp_paper.runs import RunStore
    >>> scope = Scope("digits", sizes=(100,))
    >>> with RunStore("runs.db") as store:
    ...     (table,) = read_parts(parts_named(["table1"]), store, scope)
    >>> table.finding[:8]
    'Missing:'
    """
    results = Results(store, scope)
    return [_read(part, results) for part in parts]


def _read(part: AnyPart, results: Results) -> PartResult:
    """Missing runs or packages become the `problem`; other errors are raised."""
    try:
        return PartResult(part, results.scope, part.read(results))
    except (NothingMeasuredError, ImportError, ValueError) as error:
        # The store may be a temporary file, so its path is not shown.
        sentence = str(error).replace(str(results.store.path), "the store").rstrip(".")
        return PartResult(part, results.scope, problem=sentence)
