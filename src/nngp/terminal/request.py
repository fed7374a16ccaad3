"""Request of `nngp reproduce`: its options, checked, as parts of the paper and a scope."""

from dataclasses import dataclass

from nngp.architecture import as_activation
from nngp.architecture.ranges import GRID_SIZE
from nngp.datasets.catalogue import IMAGE_SETS
from nngp.linsolve import choose_engine
from nngp.paper.part import AnyPart
from nngp.paper.parts import parts_named
from nngp.paper.scope import DEPTHS, Scope, default_sizes
from nngp.paper.searches import TRIALS, WIDTHS, SearchSize
from nngp.terminal.options import ReproduceOptions
from nngp.terminal.output import UsageError, suggestion, usage_errors
from nngp.terminal.parsing import seconds, whole_numbers

QUICK_DEPTHS, QUICK_GRID = (1, 3, 10, 50), 10  # digits are for a first look


@dataclass(frozen=True)
class Request:
    """Parts of the paper, the grid's values, the work on finite networks, a limit of seconds, and
    the scheduler of the cluster that does the runs; without one this process does."""

    parts: list[AnyPart]
    scope: Scope
    finite: SearchSize
    budget: float
    cluster: str | None = None


def request_of(options: ReproduceOptions) -> Request:
    """Read the options; UsageError for those that cannot be used."""
    dataset, engine = options.dataset, _engine(options)
    if dataset not in IMAGE_SETS:
        near = suggestion(dataset, list(IMAGE_SETS))
        raise UsageError(f"--dataset must be one of {', '.join(IMAGE_SETS)}, got '{dataset}'{near}")
    names = tuple(dict.fromkeys(name.strip() for name in options.activations.split(",")))
    with usage_errors():
        for name in names:
            as_activation(name)
        choose_engine(engine, 0)
        parts = parts_named(options.parts)
    usual, side = (QUICK_DEPTHS, QUICK_GRID) if dataset == "digits" else (DEPTHS, GRID_SIZE)
    depths, grid = _numbers("--depths", options.depths, usual), options.grid or side
    scope = Scope(dataset, _sizes(options), depths, names, grid, options.data, engine)
    work = SearchSize(_numbers("--widths", options.widths, WIDTHS), options.trials or TRIALS)
    return Request(parts, scope, work, seconds(options.budget), options.cluster)


def _engine(options: ReproduceOptions) -> str:
    """On a cluster the CPU, unless another engine is named."""
    unset = options.cluster is not None and options.engine == "auto"
    return "cpu" if unset else options.engine


def _numbers(option: str, text: str | None, usual: tuple[int, ...]) -> tuple[int, ...]:
    return usual if text is None else tuple(whole_numbers(option, text))


def _sizes(options: ReproduceOptions) -> tuple[int, ...]:
    """Training sizes that the data set has."""
    usual = default_sizes(options.dataset)
    if options.sizes is None:
        return usual
    sizes = sorted(whole_numbers("--sizes", options.sizes))
    least = len(IMAGE_SETS[options.dataset].class_names)
    if sizes[0] < least or sizes[-1] > usual[-1]:
        raise UsageError(
            f"--sizes must be from {least} (one of each class) to {usual[-1]}, which is all that "
            f"{options.dataset} has"
        )
    return tuple(sizes)
