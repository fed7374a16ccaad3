"""Times of the paper's computations beside ours."""

from collections.abc import Callable, Sequence

from nngp_paper.experiment import Config, Result, result_of
from nngp_paper.report.html import Html, table
from nngp_paper.runs import Run, RunStore
from nngp_paper.scope import Scope
from nngp_paper.shared.words import duration

EXPERIMENT = "compute_times"  # benchmarks/compute_times.py
WHOLE = "one network on the largest training set: kernel of all layers, factor, solve, predictions"


def compute_times(store: RunStore, scopes: Sequence[Scope]) -> Html:
    """The paper's seconds (app. D), those of the same computations here, and those of one of our
    networks on the largest training set of each data set, from the strips of its grids."""
    timed = store.runs(EXPERIMENT, "done")
    rows = [*_same(timed), *_ours(store, scopes)]
    heads = ("what", "the paper", "here")
    return table(heads, rows, "Compute times beside the paper's.", "Compute times")


def _same(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """Operations that the paper has timings of."""
    return [
        (
            "look-up table (501 x 501 x 500)",
            "440 to 460 s on 6 CPUs",
            _listed(runs, lambda result: duration(result["table_seconds"]), sized=False),
        ),
        (
            "K_DD of 50,000 MNIST images",
            "90 to 140 s for each layer, on 64 CPUs",
            _listed(runs, _kernel),
        ),
        (
            "its Cholesky solve, 1,000 test points",
            "180 to 220 s on 64 CPUs",
            _listed(runs, _solve),
        ),
    ]


def _kernel(result: Result) -> str:
    depths = result["kernel_seconds_by_depth"].items()
    return " and ".join(f"{duration(seconds)} for depth {depth}" for depth, seconds in depths)


def _solve(result: Result) -> str:
    return (
        f"{duration(result['condition_seconds'])} with K_DD, then "
        f"{duration(result['predict_seconds'])} for the predictions"
    )


def _listed(runs: Sequence[Run], words: Callable[[Result], str], *, sized: bool = True) -> str:
    """The words for each machine, and its number of points if that matters."""
    return "; ".join(
        f"{words(result_of(run))}{_where(run.config, sized)}"
        for run in sorted(runs, key=lambda run: -int(run.config["train"]))
    )


def _where(config: Config, sized: bool) -> str:
    on = config["device"] if config["engine"] == "gpu" else f"{config['cores']} CPU cores"
    return f", on {on} with {config['train']:,} points" if sized else f" on {on}"


def _ours(store: RunStore, scopes: Sequence[Scope]) -> list[tuple[str, str, str]]:
    found = []
    for scope in scopes:
        runs = store.runs("grid", "done", where={"dataset": scope.dataset})
        if runs:
            largest = max(run.config["train"] for run in runs)
            own = [run for run in runs if run.config["train"] == largest]
            name = f"{WHOLE}: {scope.dataset}, {largest:,} points"
            found.append((name, "", _mean(own)))
    return found


def _mean(runs: Sequence[Run]) -> str:
    """Mean seconds of a network, and its device."""
    devices = {run.device for run in runs}
    parts = []
    for device in sorted(devices):
        own = [run for run in runs if run.device == device]
        seconds = sum(run.seconds or 0.0 for run in own)
        networks = sum(len(run.config["bias_vars"]) for run in own)
        others = own[0].config["validation"] + own[0].config["test"]
        parts.append(f"{duration(seconds / networks)} with {others:,} predictions, on {device}")
    return "; ".join(parts)
