"""What an invariance is worth: images with and without it, at every number of training images.

    python benchmarks/invariance.py worth --data DIR --dataset mnist --sizes 100,1000
    python benchmarks/invariance.py worth --data DIR --dataset cifar10 --sizes 45000 --engine gpu
    python benchmarks/invariance.py choose --data DIR --dataset cifar10 --sizes 1000 --candidates
    python benchmarks/invariance.py merge FILE
    python benchmarks/invariance.py publish
    python benchmarks/invariance.py summary

`worth`: test accuracy, log loss, calibration error and seconds of `NNGPClassifier` with one network
and each of some invariances, by name (`nngp_paper.shared.invariances`). `choose`: evidence and
validation accuracy of invariances and strengths of whitening, with `--candidates` of several
networks too, for the choice of what is tested. Both go on where the record ends:
results/invariance.json, or `--record FILE`, which `merge` adds to it. `publish` writes the record
as runs for the report, whose versions are those of the machine that publishes, and the pictures.
Images are centred and scaled as in the paper; whitening is learned on the training images of a row.
More images than the paper trained on are those and its validation images. DIR holds the data in any
of the forms that nngp_paper.datasets reads.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from large import command, machine

import nngp
from nngp_paper import datasets
from nngp_paper.datasets.catalogue import IMAGE_SETS
from nngp_paper.experiment import network_of
from nngp_paper.part import DATASETS, read_parts
from nngp_paper.parts import parts_named
from nngp_paper.parts.invariance import EXPERIMENT, VARIANTS, network_for
from nngp_paper.runs import RunStore, pack
from nngp_paper.scope import Scope
from nngp_paper.shared.invariances import ScaledImages, Variant, scores
from nngp_paper.sweep import Sweep

RECORD = Path(__file__).parent / "results" / "invariance.json"
MEASURED = Path(__file__).parents[1] / "reproduction" / "measured" / "invariance.db.gz"
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
CANDIDATES = {
    "mnist": [nngp.Architecture(L, "relu", 1.6, bias) for L in (1, 3, 5) for bias in (0.0, 0.1)],
    "cifar10": [nngp.Architecture(L, "relu", 2.0, bias) for L in (1, 3, 5) for bias in (0.0, 0.1)],
}
USUAL = {
    "mnist": VARIANTS["mnist"],
    "cifar10": (*VARIANTS["cifar10"], "whitened, flips, shifts 1"),
}
ALL = {name: IMAGE_SETS[name].most_training for name in DATASETS}
GOALS = {  # seconds of fit and predictions on one H200
    ("mnist", "shifts 2"): 15.0,
    ("cifar10", "flips, shifts 1"): 20.0,
    ("cifar10", "whitened, flips, shifts 3"): 110.0,
}
Row = dict[str, Any]


def images(dataset: str, n: int, test: int | None, data: Path | None) -> ScaledImages:
    """Training images, with validation and test images."""
    found = datasets.split(dataset, min(n, ALL[dataset]), data=data, test=test)
    more = n - len(found.X)
    if more > 0:
        X = np.concatenate([found.X, found.X_val[:more]])
        labels = np.concatenate([found.labels, found.labels_val[:more]])
        found = replace(found, X=X, labels=labels)
    return ScaledImages(found)


def main() -> None:
    options = _arguments()
    path = options.record or RECORD
    record = json.loads(path.read_text("utf-8")) if path.exists() else {}
    if options.what in ("worth", "choose"):
        rows = record.setdefault(options.what, [])
        for row in {"worth": worth, "choose": choose}[options.what](options, rows):
            rows.append({"engine": options.engine, **row, "command": command()})
            print(row, flush=True)
            _save(record, path)
    if options.what == "merge":
        merge(record, json.loads(options.file.read_text("utf-8")))
        _save(record, path)
    if options.what == "publish":
        publish(record.get("worth", []))
    print(summary(record))


def merge(record: dict[str, list[Row]], other: dict[str, list[Row]]) -> None:
    """Add the rows of another record; a row that both have is the other's."""
    names = ("dataset", "train", "test", "variant", "strength", "network", "noise")
    for what, rows in other.items():
        new = {tuple(row.get(name) for name in names): row for row in rows}
        kept = [r for r in record.get(what, []) if tuple(r.get(n) for n in names) not in new]
        record[what] = sorted([*kept, *rows], key=lambda row: (row["dataset"], row["train"]))


def worth(options: argparse.Namespace, done: list[Row]) -> Iterator[Row]:
    """Test scores of a fixed network with each invariance."""
    base = network_of(network_for(options.dataset))
    base = base if options.depth is None else replace(base, depth=options.depth)
    for n in options.sizes:
        data = images(options.dataset, n, options.test, options.data)
        for name in options.variants or USUAL[options.dataset]:
            key = {"dataset": options.dataset, "train": n, "variant": name, "network": repr(base)}
            if not _has(done, {**key, "test": len(data.split.X_test)}):
                found = scores(data, Variant.named(name, options.dataset), base, options.engine)
                yield {**key, "machine": machine(options.engine), **found}


def choose(options: argparse.Namespace, done: list[Row]) -> Iterator[Row]:
    """Evidence and validation accuracy of networks, whitenings and invariances."""
    usual = [network_of(network_for(options.dataset))]
    bases = CANDIDATES[options.dataset] if options.candidates else usual
    for n in options.sizes:
        if n > ALL[options.dataset]:
            raise SystemExit(f"with {n} training images none are left for validation")
        data = images(options.dataset, n, 10, options.data)
        for name in options.variants or USUAL[options.dataset]:
            own = Variant.named(name, options.dataset)
            whitened = own.strength is not None and options.strengths
            for strength in whitened or (own.strength,):
                key = {"dataset": options.dataset, "train": n, "variant": name}
                key |= {"strength": strength, "noise": options.noise}
                left = [b for b in bases if not _has(done, {**key, "network": repr(b)})]
                if left:
                    variant = replace(own, strength=strength)
                    yield from ({**key, **row} for row in _validated(options, data, variant, left))


def _validated(
    options: argparse.Namespace,
    data: ScaledImages,
    variant: Variant,
    bases: list[nngp.Architecture],
) -> Iterator[Row]:
    split, scale = data.split, data.scaling(variant.strength)
    sweep = Sweep(
        scale(split.X),
        split.targets(split.labels),
        scale(split.X_val),
        split.targets(split.labels_val),
        noise_var=options.noise,
        relative_noise=True,
        engine=options.engine,
    )
    found = sweep.run([variant.network(base) for base in bases])
    for base, one in zip(bases, found, strict=True):
        yield {
            "network": repr(base),
            "accuracy": one.accuracy,
            "mse": one.mse,
            "log_evidence": one.log_evidence,
            "seconds": round(one.seconds, 2),
        }


def publish(rows: list[Row]) -> None:
    """The rows as runs of the experiment, and a picture of each data set."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "invariance.db"
        with RunStore(path) as store:
            for row in rows:
                _store(store, row)
            for dataset in DATASETS:
                scope = Scope(dataset, (ALL[dataset],))
                (shown,) = read_parts(parts_named([EXPERIMENT]), store, scope)
                if shown.part.draw is not None and not shown.problem:
                    shown.part.draw(shown.data, PICTURES / f"invariance-{dataset}.png")
                print(shown.finding)
        print(pack([path], MEASURED), "runs")


def _store(store: RunStore, row: Row) -> None:
    network = network_for(row["dataset"])
    if row["network"] != repr(network_of(network)):
        return
    config = {name: row[name] for name in ("dataset", "train", "test", "variant")} | network
    seconds = row["fit_seconds"] + row["predict_seconds"]
    result = {k: v for k, v in row.items() if isinstance(v, float | int) and k not in config}
    (key,) = store.declare(EXPERIMENT, [config])
    device = row.get("machine", {}).get("device", row["engine"])
    store.finish(key, result, seconds=seconds, device=device)


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
    parser.add_argument("what", choices=("worth", "choose", "merge", "publish", "summary"))
    parser.add_argument("file", type=Path, nargs="?", help="a record to merge")
    parser.add_argument("--record", type=Path, help="another file for what is measured")
    parser.add_argument("--data", type=Path, help="folder of the data")
    parser.add_argument("--dataset", choices=DATASETS)
    parser.add_argument("--sizes", type=_sizes, default=[])
    parser.add_argument("--variants", type=_names, help="names of invariances, separated by ;")
    parser.add_argument("--strengths", type=_numbers, help="of whitening, for choose")
    parser.add_argument("--depth", type=int, help="of the network, for worth")
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
        try:
            Variant.named(name, DATASETS[0])
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{name!r}: {error}") from None
    return names


if __name__ == "__main__":
    main()
