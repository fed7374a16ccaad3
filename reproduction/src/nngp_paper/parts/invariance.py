"""Beyond the paper: what it is worth to know that a moved or mirrored image is the same image.

One network with and without averages over transformations (`nngp.Invariant`), at every number of
training images; nothing but the noise is chosen, by evidence on training images. Whitening is
learned on them. The study has small training sets, for two cores. `benchmarks/invariance.py` does
larger ones, and the part shows all that a store has.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from nngp_paper.datasets import Split, split
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Config, Experiment, Result, network_of, result_of, rounded
from nngp_paper.part import Axes, Claim, Figure, Part, Results
from nngp_paper.plots import style
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.shared.invariances import ScaledImages, Variant, scores
from nngp_paper.shared.words import percent, sentence
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="what an invariance is worth",
    paper="Networks are compared on permutation invariant MNIST and CIFAR-10: the order of "
    "pixels means nothing to a fully connected network, so it does not know that a moved or "
    "mirrored image is the same image. What that costs is not said.",
    look="The same network, plain and averaged over transformations: shifts by at most so many "
    "pixels, mirror images, rotations by 10 degrees. The verdict is about these. Whitened images, "
    "and a head, which is made of layers on top of the average, go further. On the left errors in "
    "labels, on the right the log loss of the probabilities.",
)
EXPERIMENT, PLAIN = "invariance", "plain"
MOST = 2000  # training images of the study
NETWORKS = {"cifar10": {"depth": 5, "activation": "relu", "weight_var": 2.0, "bias_var": 0.1}}
NETWORK = {"depth": 3, "activation": "relu", "weight_var": 1.6, "bias_var": 0.1}  # of the others
VARIANTS = {
    "digits": (PLAIN, "shifts 1"),
    "mnist": (PLAIN, "shifts 1", "shifts 2"),
    "cifar10": (PLAIN, "flips", "flips, shifts 1"),
    "fashion_mnist": (PLAIN, "flips", "flips, shifts 1"),
}
SIZE, NARROW = (7.2, 3.9), (style.NARROW, 7.4)  # inches
GREY, MARKS = "0.4", ("o", "s", "^", "D", "v")
TICKS = [digit * 10.0**power for power in (-2, -1, 0, 1) for digit in (1, 1.5, 2, 3, 4, 5, 7)]


@dataclass(frozen=True)
class InvariancePoint:
    """Test scores of a network with so many training images."""

    train: int
    test: int
    accuracy: float
    log_loss: float
    calibration_error: float

    @property
    def error(self) -> float:
        return 1.0 - self.accuracy

    @property
    def variance(self) -> float:
        """Of the error, by the choice of test images."""
        return self.error * self.accuracy / self.test


@dataclass(frozen=True)
class InvarianceCurve:
    """One variant of the network, by number of training images."""

    name: str
    is_average: bool  # and differs from the plain network by nothing else
    points: tuple[InvariancePoint, ...]

    def at(self, train: int) -> InvariancePoint | None:
        return next((point for point in self.points if point.train == train), None)


@dataclass(frozen=True)
class InvarianceWorth:
    """All variants that were measured on a data set, the plain network first."""

    dataset: str
    curves: tuple[InvarianceCurve, ...]

    @property
    def plain(self) -> InvarianceCurve:
        return self.curves[0]

    @property
    def best(self) -> tuple[InvarianceCurve, InvariancePoint]:
        """The variant and the training set with the highest accuracy."""
        pairs = [(curve, point) for curve in self.curves for point in curve.points]
        return max(pairs, key=lambda pair: pair[1].accuracy)


def study(scope: Scope) -> Study:
    """A run for each variant and each of the small training sets."""
    sizes = [size for size in sorted(scope.sizes) if size <= MOST] or [min(scope.sizes)]
    shared = {"dataset": scope.dataset, "test": scope.images.test, **network_for(scope.dataset)}
    configs = [
        {**shared, "train": train, "variant": name}
        for train in sizes
        for name in VARIANTS[scope.dataset]
    ]
    load = lru_cache(maxsize=1)(partial(split, scope.dataset, data=scope.data))
    return Study(EXPERIMENT, configs, partial(_work, load, scope.engine), load.cache_clear)


def network_for(dataset: str) -> dict[str, Any]:
    """Depth, activation and variances, fixed before anything was measured."""
    return NETWORKS.get(dataset, NETWORK)


def _work(load: Callable[[int], Split], engine: str, config: Config) -> Outcome:
    data, variant = load(config["train"]), Variant.named(config["variant"], config["dataset"])
    found = scores(ScaledImages(data), variant, network_of(config), engine)
    device = found.pop("engine")
    return Outcome({name: rounded(value) for name, value in found.items()}, device)


INVARIANCE_RUNS = Experiment(EXPERIMENT, study)


def read(results: Results) -> InvarianceWorth:
    """All variants and training sets that the store has of the data set, of each the run with the
    most test images."""
    dataset = results.scope.dataset
    where = {"dataset": dataset, **network_for(dataset)}
    runs = results.store.runs(experiment=EXPERIMENT, status="done", where=where)
    points: dict[str, dict[int, InvariancePoint]] = {name: {} for name in VARIANTS[dataset]}
    for run in sorted(runs, key=lambda run: (run.config["variant"], run.config["test"])):
        point = _point(run.config, result_of(run))
        points.setdefault(run.config["variant"], {})[point.train] = point
    if not points[PLAIN]:
        raise NothingMeasuredError(
            f"the store has no finished run of {EXPERIMENT!r} with the plain network on {dataset}; "
            "run nngp-paper reproduce with this part first"
        )
    curves = (_curve(name, dataset, own) for name, own in points.items() if own)
    return InvarianceWorth(dataset, tuple(curves))


def _curve(name: str, dataset: str, points: Mapping[int, InvariancePoint]) -> InvarianceCurve:
    is_average = Variant.named(name, dataset).is_average
    return InvarianceCurve(name, is_average, tuple(points[train] for train in sorted(points)))


def _point(config: Config, result: Result) -> InvariancePoint:
    numbers = (result[name] for name in ("accuracy", "log_loss", "calibration_error"))
    return InvariancePoint(config["train"], config["test"], *numbers)


def finding(data: InvarianceWorth) -> str:
    """Accuracy and calibration without and with an invariance, at the ends and at the best."""
    trains = [point.train for point in data.plain.points]
    ends = dict.fromkeys((trains[0], trains[-1]))
    parts = [words for train in ends if (words := _beside(data, train))]
    curve, point = data.best
    parts.append(
        f"the best is {curve.name} with {point.train:,} images: {percent(point.accuracy)}, log "
        f"loss {point.log_loss:.3f}, calibration error {percent(point.calibration_error)}"
    )
    return sentence(parts)


def _beside(data: InvarianceWorth, train: int) -> str:
    """The plain network and the best average with so many images."""
    plain, (name, best) = data.plain.at(train), _best_at(data, train)
    if plain is None or best is None:
        return ""
    return (
        f"{train:,} images: accuracy {percent(plain.accuracy)} plain and {percent(best.accuracy)} "
        f"with {name}, log loss {plain.log_loss:.3f} and {best.log_loss:.3f}, calibration error "
        f"{percent(plain.calibration_error)} and {percent(best.calibration_error)}"
    )


def _best_at(data: InvarianceWorth, train: int) -> tuple[str, InvariancePoint | None]:
    """The most accurate average with so many images."""
    averages = [curve for curve in data.curves if curve.is_average]
    found = [(curve.name, point) for curve in averages if (point := curve.at(train))]
    return max(found, key=lambda pair: pair[1].accuracy, default=("", None))


def verdict(data: InvarianceWorth) -> ClaimVerdict:
    """Whether an average lowers the error at every size by more than two standard errors of the
    difference, as if both were counted on different images."""
    held, gains = [], []
    for plain in data.plain.points:
        _, best = _best_at(data, plain.train)
        if best is not None:
            deviation = (plain.variance + best.variance) ** 0.5
            held.append(plain.error - best.error > 2 * deviation)
            gains.append((1 - best.error / max(plain.error, 1 / plain.test), plain.train))
    if not held:
        return ClaimVerdict("not measured", "no average was measured beside the plain network.")
    ends = dict.fromkeys((min(gains), max(gains)))
    removed = " to ".join(f"{percent(gain)} ({train:,} images)" for gain, train in ends)
    return ClaimVerdict(
        share_word(held),
        f"The best average over transformations removes {removed} of the errors; at {sum(held)} of "
        f"{len(held)} sizes that is more than two standard errors.",
    )


def draw(
    data: InvarianceWorth, path: str | Path | None = None, /, *, narrow: bool = False
) -> Figure:
    """Errors in labels and log loss against the number of training images."""
    with style.new_figure(NARROW if narrow else SIZE, path) as figure:
        panels = figure.subplots(*((2, 1) if narrow else (1, 2)))
        for axes, per_cent in zip(panels, (True, False), strict=True):
            for number, curve in enumerate(data.curves):
                _draw_line(axes, curve, number, per_cent=per_cent)
            axes.set(xscale="log", yscale="log", xlabel="training images")
            axes.set_title("test error, per cent" if per_cent else "log loss", loc="left")
            _draw_ticks(axes)
            style.plain(axes)
        handles = panels[0].get_legend_handles_labels()[0]
        columns = 1 if narrow else 3
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _draw_line(axes: Axes, curve: InvarianceCurve, number: int, *, per_cent: bool) -> None:
    values = [100 * one.error if per_cent else one.log_loss for one in curve.points]
    colour = GREY if curve.name == PLAIN else style.COLOURS[(number - 1) % len(style.COLOURS)]
    trains, mark = [one.train for one in curve.points], MARKS[number % len(MARKS)]
    axes.plot(trains, values, color=colour, marker=mark, ms=4, lw=1.2, label=curve.name)


def _draw_ticks(axes: Axes) -> None:
    low, high = axes.get_ylim()
    axes.set_yticks([tick for tick in TICKS if low <= tick <= high])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.grid(alpha=0.3, lw=0.5)


PART = Part(
    EXPERIMENT, CLAIM, (INVARIANCE_RUNS,), read, finding, verdict, draw, datasets=tuple(VARIANTS)
)
