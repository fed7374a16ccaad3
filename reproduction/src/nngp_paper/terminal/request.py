"""Request of `nngp-paper reproduce`: its options, checked, as parts of the paper and a scope."""

from dataclasses import dataclass

from nngp import Architecture, forecast
from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.part import AnyPart
from nngp_paper.parts import parts_named
from nngp_paper.ranges import GRID_SIZE
from nngp_paper.scope import DEPTHS, QUICK, Scope, default_sizes
from nngp_paper.shared.searches import TRIALS, WIDTHS, SearchSize
from nngp_paper.terminal.options import ReproduceOptions
from nngp_paper.terminal.output import UsageError, suggestion, usage_errors
from nngp_paper.terminal.parsing import seconds, whole_numbers

# Digits are for a first look:
QUICK_DEPTHS, QUICK_GRID, QUICK_RELATIVE = (1, 3, 10, 50), 10, 5
QUICK_WIDTHS = (16, 32, 64)


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
            Architecture(1, name)
        forecast(1, 1, engine=engine)  # raises an error for one that is not there
        parts = parts_named(options.parts)
    quick = dataset == QUICK
    depths = _numbers("--depths", options.depths, QUICK_DEPTHS if quick else DEPTHS)
    grid = options.grid or (QUICK_GRID if quick else GRID_SIZE)
    relative = QUICK_RELATIVE if quick and options.grid is None else None
    shape = _sizes(options), depths, names, grid
    scope = Scope(dataset, *shape, options.data, engine, relative)
    return Request(parts, scope, _search(options, scope), seconds(options.budget), options.cluster)


def _search(options: ReproduceOptions, scope: Scope) -> SearchSize:
    """Finite networks on all training sets; by default those of digits on the smallest and the
    largest."""
    quick, ends = scope.dataset == QUICK, (min(scope.sizes), max(scope.sizes))
    sizes = ends if quick and options.sizes is None else scope.sizes
    widths = _numbers("--widths", options.widths, QUICK_WIDTHS if quick else WIDTHS)
    return SearchSize(widths, options.trials or TRIALS, sizes)


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
