"""Beyond the paper: ensembles of finite networks beside the infinitely wide one, nothing tuned.

One network, that of figure 3, on 1,000 images. For each width some networks are drawn; hidden
layers stay as drawn, and the last layer has its posterior mean given them, in closed form. A single
network is one such mean, an ensemble the average over networks. Each is compared with the mean of
the process, at the same noise: the paper's 1e-10, and 0.01 (the default of
`nngp_paper.finite.last_layer_ensemble`).

Theory. Kernels of networks spread as width^(-1/2), and so do single networks' means. Their average
is off only to second order: its distance to the process falls as 1/width, once the width exceeds
the number of directions in which the noise lets the data speak. Without noise these are as many as
training points, and a network with about as many units as points has an almost singular kernel: its
errors peak there, whatever the average does.

Networks trained in all layers have another limit, the kernel regression of the tangent kernel. They
are not shown here.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache, partial
from pathlib import Path

from nngp import condition
from nngp_paper.datasets import Split, split
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Config, Experiment, Result, network_of, result_of, rounded
from nngp_paper.finite.mean_estimates import Estimate
from nngp_paper.finite.width_limit import LimitCurve, Power, WidthLimit, WidthPoint, measured
from nngp_paper.part import Claim, Figure, Part, Results
from nngp_paper.runs import Run
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import ACTIVATIONS, QUICK, Scope
from nngp_paper.shared.one_network import NETWORK
from nngp_paper.shared.words import percent, sentence
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="ensembles of finite networks and their limit",
    paper="The wider a network, the nearer its predictions are to those of the process (the idea "
    "behind figure 1, where every width has settings of its own).",
    look="Hidden layers as drawn from the prior, last layers by their posterior. Hollow marks are "
    "single networks, filled ones ensembles, dashed levels the infinitely wide network. On the "
    "right the distance to its predictions: for ensembles that of infinitely many networks, as "
    "estimated from pairs where that exceeds its standard error, with the fitted power of the "
    "width.",
)
EXPERIMENT = "width"
NOISE_VARS = (1e-10, 0.01)
TRAIN, TEST = 1000, 2000  # at most
MEMBERS = 16  # networks of an ensemble
WIDTHS, NETWORKS = (16, 32, 64, 128, 256, 512, 1024, 2048), 64
QUICK_WIDTHS, QUICK_NETWORKS = WIDTHS[:-1], 32  # digits are for a first look


def study(
    scope: Scope, widths: Sequence[int] | None = None, networks: int | None = None, seed: int = 0
) -> Study:
    """A run for each width and activation of the paper, narrow ones first."""
    quick = scope.dataset == QUICK
    sizes = widths or (QUICK_WIDTHS if quick else WIDTHS)
    shared = {**_data(scope), **NETWORK, "noise_vars": list(NOISE_VARS), "members": MEMBERS}
    drawn = {"networks": networks or (QUICK_NETWORKS if quick else NETWORKS), "seed": seed}
    configs = [
        {**shared, "activation": activation, "width": width, **drawn}
        for width in sizes
        for activation in ACTIVATIONS
        if activation in scope.activations
    ]
    load = lru_cache(maxsize=1)(partial(split, scope.dataset, data=scope.data))
    return Study(EXPERIMENT, configs, partial(_work, load, scope.engine), load.cache_clear)


def _data(scope: Scope) -> dict[str, str | int]:
    """The data set, the largest of the scope's training sets up to `TRAIN`, and test images."""
    train = max((size for size in scope.sizes if size <= TRAIN), default=min(scope.sizes))
    return {"dataset": scope.dataset, "train": train, "test": min(TEST, scope.images.test)}


WIDTH_RUNS = Experiment(EXPERIMENT, study, extra=True)


def _work(load: Callable[[int], Split], engine: str, config: Config) -> Outcome:
    from nngp import FiniteNetwork
    from nngp_paper.finite.device import device_name
    from nngp_paper.finite.last_layer import last_layer_means

    data, net = load(config["train"]), network_of(config)
    X, Y = data.X, data.targets(data.labels)
    tests, labels = data.X_test[: config["test"]], data.labels_test[: config["test"]]
    network = FiniteNetwork(net, config["width"], Y.shape[1])
    noises = config["noise_vars"]
    means = last_layer_means(network, X, Y, tests, config["networks"], noises, config["seed"])
    rows = []
    for noise_var, own in zip(noises, means.swapaxes(0, 1), strict=True):
        process = condition(net, X, Y, noise_var=noise_var, engine=engine).mean(tests)
        rows.append(measured(own, process, labels, data.targets(labels), config["members"]))
    result = {name: rounded([row[name] for row in rows]) for name in rows[0]}
    return Outcome(result, device_name())


def read(results: Results) -> WidthLimit:
    """All widths that the store has, of each the run with the most networks: a GPU may have done
    more than the study asks for."""
    where = {**_data(results.scope), **NETWORK, "members": MEMBERS}
    runs = results.store.runs(experiment=EXPERIMENT, status="done", where=where)
    runs = [run for run in runs if run.config["noise_vars"] == list(NOISE_VARS)]
    if not runs:
        raise NothingMeasuredError(
            f"the store has no finished run of {EXPERIMENT!r} on {results.scope.dataset}; run nngp "
            "reproduce with this part first"
        )
    names = [n for n in ACTIVATIONS if n in {run.config["activation"] for run in runs}]
    curves = [
        _curve([run for run in runs if run.config["activation"] == name], at)
        for at in range(len(NOISE_VARS))
        for name in names
    ]
    config = runs[0].config
    return WidthLimit(
        config["dataset"], config["train"], config["test"], config["members"], tuple(curves)
    )


def _curve(runs: Sequence[Run], at: int) -> LimitCurve:
    best = {run.config["width"]: run for run in sorted(runs, key=lambda r: r.config["networks"])}
    ordered = [best[width] for width in sorted(best)]
    config, result = ordered[0].config, result_of(ordered[0])
    return LimitCurve(
        config["activation"],
        config["noise_vars"][at],
        config["train"],
        result["process_accuracy"][at][0],
        result["process_mse"][at][0],
        tuple(_point(run.config, result_of(run), at) for run in ordered),
    )


def _point(config: Config, result: Result, at: int) -> WidthPoint:
    names = [field.name for field in fields(WidthPoint)][2:]
    numbers = {name: Estimate(*result[name][at]) for name in names}
    return WidthPoint(config["width"], config["networks"], **numbers)


def finding(data: WidthLimit) -> str:
    """The widest networks beside the process, the power of the distance, and the peak."""
    parts = [
        *(_approach(curve, data.members) for curve in data.regular),
        *(words for curve in data.curves if (words := _peak(curve))),
    ]
    return sentence(parts).replace("-", "−")


def _approach(curve: LimitCurve, members: int) -> str:
    first, last = curve.points[0], curve.widest
    words = (
        f"{curve.activation} with noise {curve.noise_var:g}: mean squared error of ensembles of "
        f"{members} {first.ensemble_mse.value:.4f} at width {first.width:,} and "
        f"{last.ensemble_mse.value:.4f} at width {last.width:,} (single networks "
        f"{last.single_mse.value:.4f}, infinitely many {last.limit_mse.value:.4f}), the process "
        f"{curve.process_mse:.4f}; accuracy {percent(first.ensemble_accuracy.value)} and "
        f"{percent(last.ensemble_accuracy.value)}, the process {percent(curve.process_accuracy)}"
    )
    powers = [curve.power(name) for name in ("limit_square", "single_square")]
    if powers[0] and powers[1]:
        words += (
            f"; the average's distance to the process falls as width^{_slope(powers[0])} and a "
            f"single network's as width^{_slope(powers[1])} at widths {powers[0].widths[0]:,} to "
            f"{powers[0].widths[-1]:,}; theory says -1 and -0.5, far above {curve.train:,}"
        )
    return words


def _slope(power: Power) -> str:
    return f"({power.slope:.3f} ± {power.error:.3f})"


def _peak(curve: LimitCurve) -> str:
    """Where single networks are worst, unless narrow ones are."""
    worst = max(curve.points, key=lambda point: point.single_mse.value)
    if worst == curve.points[0]:
        return ""
    best = min(curve.points, key=lambda point: point.single_mse.value)
    return (
        f"{curve.activation} with noise {curve.noise_var:g}: single networks are worst at width "
        f"{worst.width:,} (mean squared error {worst.single_mse.value:.2g}; "
        f"{best.single_mse.value:.2g} at width {best.width:,}), with {curve.train:,} training "
        "points"
    )


SLOPE, TOLERANCE = -1.0, 0.25  # of the average's distance: theory, and what still agrees with it


def verdict(data: WidthLimit) -> ClaimVerdict:
    """Whether averages of wide networks approach the process as theory says, with the slope of the
    activation that is farthest from it; "partly" where single networks move away on the way."""
    powers = [(curve, curve.power("limit_square")) for curve in data.regular]
    known = [(curve, power) for curve, power in powers if power]
    if len(known) < len(powers):
        return ClaimVerdict("partly", _without_slope(data))
    curve, power = max(known, key=lambda one: abs(one[1].slope - SLOPE))
    agrees = abs(power.slope - SLOPE) <= max(TOLERANCE, 2 * power.error)
    falls = power.slope < -2 * power.error
    away = _detour(data)
    word = share_word([falls, agrees and not away]) if falls else "not supported"
    words = (
        f"At widths {power.widths[0]:,} to {power.widths[-1]:,} the distance of the average "
        f"{curve.activation} network to the process falls as width^{_slope(power)}; theory says -1"
    )
    return ClaimVerdict(word, f"{words}{away}.".replace("-", "−"))


def _detour(data: WidthLimit) -> str:
    """Words about the single networks that are farthest from the process, if narrower ones are
    nearer by more than chance."""
    curve = max(data.curves, key=lambda curve: _farthest(curve).single_square.value)
    first, worst = curve.points[0].single_square, _farthest(curve).single_square
    if worst.value - first.value <= 3 * (worst.error**2 + first.error**2) ** 0.5:
        return ""
    return (
        f"; but with noise {curve.noise_var:g} and {curve.train:,} training points a single "
        f"{curve.activation} network is {worst.value**0.5:.2f} from the process at width "
        f"{_farthest(curve).width:,} and {first.value**0.5:.2f} at width {curve.points[0].width:,}"
    )


def _farthest(curve: LimitCurve) -> WidthPoint:
    return max(curve.points, key=lambda point: point.single_square.value)


def _without_slope(data: WidthLimit) -> str:
    """A sentence for widths that are too few, or networks that leave too large an error."""
    first, last = (data.regular[0].points[at].single_square.value ** 0.5 for at in (0, -1))
    curve = data.regular[0]
    return (
        f"A single {curve.activation} network is {first:.3f} from the process at width "
        f"{curve.points[0].width:,} and {last:.3f} at width {curve.widest.width:,}; the slope of "
        "the average cannot be told with so few networks."
    )


def draw(data: WidthLimit, path: str | Path | None = None, /, *, narrow: bool = False) -> Figure:
    """A row for each noise: error in labels, mean squared error, distance to the process."""
    from nngp_paper.plots.width_limit import draw_width_limit

    return draw_width_limit(data, path, narrow=narrow)


PART = Part(EXPERIMENT, CLAIM, (WIDTH_RUNS,), read, finding, verdict, draw, datasets=("mnist",))
