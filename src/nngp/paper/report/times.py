"""Times of the paper's computations beside ours."""

from collections.abc import Sequence

from nngp.paper.report.html import Html, table
from nngp.paper.scope import Scope
from nngp.paper.words import duration
from nngp.runs import Run, RunStore

PAPER = (  # app. D
    ("look-up table (501 x 501 x 500)", "440 to 460 s on 6 CPUs"),
    ("K_DD of 50,000 MNIST images, a layer", "90 to 140 s on 64 CPUs"),
    ("its Cholesky solve, 1,000 test points", "180 to 220 s on 64 CPUs"),
)
WHOLE = "one network on the largest training set: kernel of all layers, factor, solve, predictions"


def compute_times(store: RunStore, scopes: Sequence[Scope]) -> Html:
    """The paper's seconds, and those of one of our networks on the largest training set of each
    data set, from the strips of its grids."""
    rows = [*((what, took, "") for what, took in PAPER), *_ours(store, scopes)]
    heads = ("what", "the paper", "here")
    return table(heads, rows, "Compute times beside the paper's.", "Compute times")


def _ours(store: RunStore, scopes: Sequence[Scope]) -> list[tuple[str, str, str]]:
    found = []
    for scope in scopes:
        runs = store.runs("grid", "done", where={"dataset": scope.dataset}, lists=False)
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
