"""What an invariance is worth: images with and without it, at every number of training images.

    python benchmarks/invariance.py worth --data DIR --dataset mnist --sizes 100,1000
    python benchmarks/invariance.py worth --data DIR --dataset cifar10 --sizes 45000 --engine gpu
    python benchmarks/invariance.py choose --data DIR --dataset cifar10 --sizes 1000 --candidates
    python benchmarks/invariance.py merge FILE
    python benchmarks/invariance.py draw
    python benchmarks/invariance.py summary

`worth`: test accuracy, log loss, calibration error and seconds of `NNGPClassifier` with one network
and each of some invariances. `choose`: evidence and validation accuracy of invariances and
strengths of whitening, with `--candidates` of several networks too, for the choice of what is
tested. Both go on where the record ends: results/invariance.json, or `--record FILE`, which `merge`
adds to it. Images are centred and scaled as in the paper; whitening is learned on the training
images of a row. More images than the paper trained on are those and its validation images. DIR
holds the data in any of the forms that nngp.datasets reads.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from large import command, machine
from numpy.typing import NDArray
from sklearn.metrics import log_loss

import nngp
from nngp import images
from nngp.predictors.calibration import expected_calibration_error
from nngp.predictors.whitening import InputSpectrum

RECORD = Path(__file__).parent / "results" / "invariance.json"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "invariance.png"
SHAPES = {"mnist": (28, 28), "cifar10": (32, 32, 3)}
NETWORKS = {  # fixed before anything was measured here
    "mnist": nngp.Architecture(3, "relu", 1.6, 0.1),
    "cifar10": nngp.Architecture(5, "relu", 2.0, 0.1),
}
HEAD = nngp.Architecture(8, "relu", 2.0, 0.0)  # on top of an average
CANDIDATES = {
    "mnist": [nngp.Architecture(L, "relu", 1.6, bias) for L in (1, 3, 5) for bias in (0.0, 0.1)],
    "cifar10": [nngp.Architecture(L, "relu", 2.0, bias) for L in (1, 3, 5) for bias in (0.0, 0.1)],
}
TICKS = (0.5, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80)  # per cent
Array = NDArray[np.float64]
Row = dict[str, Any]


def flips(shape: tuple[int, ...]) -> Any:
    return images.flips(shape)


def shifts(most: int) -> Callable[[tuple[int, ...]], Any]:
    return lambda shape: images.shifts(most, shape)


def rotations(shape: tuple[int, ...]) -> Any:
    return images.rotations(shape, degrees=10, count=3)


@dataclass(frozen=True)
class Variant:
    """Families of transformations, a strength of whitening, and whether there is a head."""

    families: tuple[Callable[[tuple[int, ...]], Any], ...] = ()
    strength: float | None = None
    has_head: bool = False

    def network(self, base: nngp.Network, shape: tuple[int, ...]) -> nngp.Network:
        if not self.families:
            return base
        average = nngp.Invariant(base, [family(shape) for family in self.families])
        return nngp.Headed(average, HEAD) if self.has_head else average


VARIANTS = {
    "plain": Variant(),
    "shifts 1": Variant((shifts(1),)),
    "shifts 2": Variant((shifts(2),)),
    "shifts 3": Variant((shifts(3),)),
    "rotations, shifts 1": Variant((rotations, shifts(1))),
    "rotations, shifts 2": Variant((rotations, shifts(2))),
    "flips": Variant((flips,)),
    "flips, shifts 1": Variant((flips, shifts(1))),
    "flips, shifts 2": Variant((flips, shifts(2))),
    "flips, shifts 3": Variant((flips, shifts(3))),
    "whitened": Variant((), 0.1),
    "whitened, flips": Variant((flips,), 0.1),
    "whitened, flips, shifts 1": Variant((flips, shifts(1)), 0.1),
    "whitened, flips, shifts 2": Variant((flips, shifts(2)), 0.1),
    "whitened, flips, shifts 3": Variant((flips, shifts(3)), 0.1),
    "whitened, flips, shifts 4": Variant((flips, shifts(4)), 0.1),
    "shifts 2, head": Variant((shifts(2),), None, True),
    "rotations, shifts 2, head": Variant((rotations, shifts(2)), None, True),
    "flips, shifts 1, head": Variant((flips, shifts(1)), None, True),
    "whitened, flips, shifts 2, head": Variant((flips, shifts(2)), 0.1, True),
    "whitened, flips, shifts 4, head": Variant((flips, shifts(4)), 0.1, True),
}
USUAL = {
    "mnist": ("plain", "shifts 1", "shifts 2"),
    "cifar10": ("plain", "flips", "flips, shifts 1", "whitened, flips, shifts 1"),
}
ALL = {"mnist": 50_000, "cifar10": 45_000}  # without validation images
GOALS = {  # seconds of fit and predictions on one H200
    ("mnist", "shifts 2"): 15.0,
    ("cifar10", "flips, shifts 1"): 20.0,
    ("cifar10", "whitened, flips, shifts 3"): 110.0,
}
LOOK = {  # colour and style of a line in the picture
    "plain": ("0.45", "-"),
    "flips": ("tab:orange", "-"),
    "shifts 1": ("tab:blue", "-"),
    "shifts 2": ("tab:green", "-"),
    "flips, shifts 1": ("tab:blue", "-"),
    "whitened, flips, shifts 1": ("tab:purple", "--"),
    "whitened, flips, shifts 4": ("tab:red", "--"),
    "rotations, shifts 2": ("tab:red", "--"),
}


@dataclass(frozen=True)
class Images:
    """One training set, with validation and test images."""

    dataset: str
    split: Any

    @classmethod
    def load(cls, dataset: str, n: int, test: int | None, data: Path | None) -> "Images":
        found = nngp.datasets.split(dataset, min(n, ALL[dataset]), data=data, test=test)
        more = n - len(found.X)
        if more > 0:
            X = np.concatenate([found.X, found.X_val[:more]])
            labels = np.concatenate([found.labels, found.labels_val[:more]])
            found = replace(found, X=X, labels=labels)
        return cls(dataset, found)

    @cached_property
    def _spectrum(self) -> InputSpectrum:
        return InputSpectrum.learn(self.split.X)

    def scaled(self, strength: float | None) -> Callable[[Array], Array]:
        """The scaling of images: as they are, or whitened."""
        if strength is None:
            return lambda X: X
        spectrum, whiten = self._spectrum, self._spectrum.whitening(strength)
        return lambda X: nngp.normalize(whiten((X - spectrum.center) * spectrum.factor))


def main() -> None:
    options = _arguments()
    path = options.record or RECORD
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if options.what in ("worth", "choose"):
        rows = record.setdefault(options.what, [])
        for row in {"worth": worth, "choose": choose}[options.what](options, rows):
            rows.append({**row, "engine": options.engine, "command": command()})
            print(row, flush=True)
            _save(record, path)
    if options.what == "merge":
        merge(record, json.loads(options.file.read_text("utf-8")))
        _save(record, path)
    if options.what == "draw":
        draw(record["worth"])
    print(summary(record))


def merge(record: dict[str, list[Row]], other: dict[str, list[Row]]) -> None:
    """Add the rows of another record; a row that both have is the other's."""
    names = ("dataset", "train", "variant", "strength", "network")
    for what, rows in other.items():
        new = {tuple(row.get(name) for name in names): row for row in rows}
        kept = [r for r in record.get(what, []) if tuple(r.get(n) for n in names) not in new]
        record[what] = sorted([*kept, *rows], key=lambda row: (row["dataset"], row["train"]))


def worth(options: argparse.Namespace, done: list[Row]) -> Iterator[Row]:
    """Test scores of a fixed network with each invariance."""
    shape, base = SHAPES[options.dataset], NETWORKS[options.dataset]
    for n in options.sizes:
        data = Images.load(options.dataset, n, options.test, options.data)
        for name in options.variants or USUAL[options.dataset]:
            key = {"dataset": options.dataset, "train": n, "variant": name}
            if _has(done, key):
                continue
            variant = VARIANTS[name]
            yield {**key, **_scores(data, variant, variant.network(base, shape), options.engine)}


def _scores(data: Images, variant: Variant, network: nngp.Network, engine: str) -> Row:
    scale, split = data.scaled(variant.strength), data.split
    start = time.perf_counter()
    model = nngp.NNGPClassifier(
        network=network,
        input_scaling="none",
        likelihood="regression",
        effort="fast",  # nothing is compared with trees
        engine=engine,
        progress=False,
    ).fit(scale(split.X), split.labels)
    fitted = time.perf_counter()
    table = model.predict_proba(scale(split.X_test))
    end = time.perf_counter()
    right = table.argmax(axis=1) == split.labels_test
    return {
        "machine": machine(engine),
        "network": repr(network.base),
        "products": network.products(split.X.shape[1]),
        "test": len(right),
        "accuracy": float(right.mean()),
        "log_loss": float(log_loss(split.labels_test, table, labels=range(10))),
        "calibration_error": float(expected_calibration_error(table.max(axis=1), right)),
        "log_evidence": model.log_evidence_,
        "noise_var": model.noise_var_,
        "fit_seconds": round(fitted - start, 2),
        "predict_seconds": round(end - fitted, 2),
    }


def choose(options: argparse.Namespace, done: list[Row]) -> Iterator[Row]:
    """Evidence and validation accuracy of networks, whitenings and invariances."""
    shape = SHAPES[options.dataset]
    for n in options.sizes:
        data = Images.load(options.dataset, n, 10, options.data)
        split = data.split
        Y, Y_val = split.targets(split.labels), split.targets(split.labels_val)
        for name in options.variants or USUAL[options.dataset]:
            families, own = VARIANTS[name].families, VARIANTS[name].strength
            for strength in (own,) if own is None else options.strengths or (own,):
                key = {"dataset": options.dataset, "train": n, "variant": name}
                key |= {"strength": strength}
                if _has(done, key):
                    continue
                scale = data.scaled(strength)
                variant = Variant(families, strength, VARIANTS[name].has_head)
                base = NETWORKS[options.dataset]
                several = CANDIDATES[options.dataset] if options.candidates else [base]
                nets = [variant.network(net, shape) for net in several]
                sweep = nngp.Sweep(
                    scale(split.X),
                    Y,
                    scale(split.X_val),
                    Y_val,
                    noise_var=options.noise,
                    relative_noise=True,
                    engine=options.engine,
                )
                for net, found in zip(nets, sweep.run(nets), strict=True):
                    yield {
                        **key,
                        "network": repr(net.base),
                        "noise": options.noise,
                        "accuracy": found.accuracy,
                        "mse": found.mse,
                        "log_evidence": found.log_evidence,
                        "seconds": round(found.seconds, 2),
                    }


def draw(rows: list[Row]) -> None:
    """Test error against the number of training images."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    sets = [name for name in SHAPES if any(row["dataset"] == name for row in rows)]
    figure, axes = plt.subplots(1, len(sets), figsize=(5.0 * len(sets), 3.9), squeeze=False)
    titles = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
    for ax, dataset in zip(axes[0], sets, strict=True):
        own = [row for row in rows if row["dataset"] == dataset]
        for name in dict.fromkeys(row["variant"] for row in own):
            line = sorted(
                (r["train"], 100 - 100 * r["accuracy"]) for r in own if r["variant"] == name
            )
            colour, style = LOOK.get(name, ("tab:brown", ":"))
            ax.plot(*zip(*line, strict=True), style, color=colour, marker="o", ms=3.5, label=name)
        ax.set(xscale="log", xlabel="training images", title=titles[dataset])
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_yticks([tick for tick in TICKS if low <= tick <= high])
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.grid(alpha=0.3, which="both", lw=0.5)
        ax.legend(frameon=False, fontsize=8)
    axes[0, 0].set_ylabel("test error, per cent")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


def summary(record: dict[str, list[Row]]) -> str:
    """The tables in words."""
    lines = []
    for row in record.get("worth", []):
        seconds = row["fit_seconds"] + row["predict_seconds"]
        goal = GOALS.get((row["dataset"], row["variant"]))
        is_full = row["engine"] == "gpu" and row["train"] == ALL[row["dataset"]]
        lines.append(
            f"{row['dataset']} {row['train']:6} {row['variant']:26} accuracy "
            f"{100 * row['accuracy']:.2f}, log loss {row['log_loss']:.3f}, calibration error "
            f"{row['calibration_error']:.3f}, {row['products']} products, {seconds:.1f} s"
            + (f" (goal {goal:g})" if is_full and goal else "")
        )
    for row in record.get("choose", []):
        lines.append(
            f"{row['dataset']} {row['train']:6} {row['variant']:26} {row['strength'] or '':5} "
            f"{row['network']}: validation accuracy {100 * row['accuracy']:.2f}, log evidence "
            f"{row['log_evidence']:.0f}"
        )
    return "\n".join(lines)


def _has(rows: list[Row], key: Row) -> bool:
    return any(all(row.get(name) == value for name, value in key.items()) for row in rows)


def _save(record: dict[str, list[Row]], path: Path) -> None:
    parts = [
        f'"{what}": [\n  ' + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]"
        for what, rows in record.items()
    ]
    path.write_text("{\n " + ",\n ".join(parts) + "\n}\n", "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("what", choices=("worth", "choose", "merge", "draw", "summary"))
    parser.add_argument("file", type=Path, nargs="?", help="a record to merge")
    parser.add_argument("--record", type=Path, help="another file for what is measured")
    parser.add_argument("--data", type=Path, help="folder of the data")
    parser.add_argument("--dataset", choices=tuple(SHAPES))
    parser.add_argument("--sizes", type=_sizes, default=[])
    parser.add_argument("--variants", type=_names, help="separated by ;")
    parser.add_argument("--strengths", type=_numbers, help="of whitening, for choose")
    parser.add_argument("--candidates", action="store_true", help="several networks, for choose")
    parser.add_argument("--test", type=int, help="number of test images; all by default")
    parser.add_argument("--noise", type=float, default=1e-2, help="over the kernel's scale")
    parser.add_argument("--engine", choices=("cpu", "gpu", "auto"), default="cpu")
    options = parser.parse_args()
    if options.what in ("worth", "choose") and (options.dataset is None or not options.sizes):
        parser.error(f"{options.what} needs --dataset and --sizes")
    if (options.what == "merge") != (options.file is not None):
        parser.error("merge needs a file, and nothing else takes one")
    return options


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(one) for one in text.split(",")]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(";")]
    for name in names:
        if name not in VARIANTS:
            raise argparse.ArgumentTypeError(
                f"no variant {name!r}; there are {'; '.join(VARIANTS)}"
            )
    return names


if __name__ == "__main__":
    main()
