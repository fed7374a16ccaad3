"""Convolutional networks: time of a kernel matrix, and what convolution and pooling are worth.

    python benchmarks/convolution.py speed [--images 64] [--engines numpy jax]
    python benchmarks/convolution.py images --data DIR --dataset mnist --sizes 500 1000 2000
    python benchmarks/convolution.py plot

`speed`: nanoseconds of wall time per pixel, pair and layer for relu, 32 x 32 x 3, ten layers and
flatten, on all cores of this machine; and the CPU time of the same on all threads.
`images`: test accuracy of four families of networks on some training images and 1,000 test images,
which are halved in height and width by means of 2 x 2 pixels (`--full`: as they are). Of each
family the network and the noise with the best evidence are taken. DIR holds the data in any form
that nngp_paper.datasets reads. Goes on where the record (results/convolution.json) ends.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from large import command, machine

import nngp
from nngp import Act, AvgPool, Chain, Conv, Dense, Flatten, Image
from nngp_paper import datasets

RECORD = Path(__file__).parent / "results" / "convolution.json"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "convolution.png"
TEST = 1000
NOISES = 10.0 ** np.arange(-6, 1, 0.5)  # variances, in units of the mean of the diagonal
FAMILIES = ("dense", "dense, shifts", "convolution", "convolution, pooling")


def layers(depth: int, padding: str = "same") -> tuple[Any, ...]:
    """Convolutions of 3 x 3 with relu."""
    return tuple(
        part for _ in range(depth) for part in (Conv(3, 2.0, 0.1, padding=padding), Act("relu"))
    )


def candidates(family: str, shape: tuple[int, int, int]) -> dict[str, nngp.Network]:
    """The networks of a family, by name."""
    end = Flatten(), Dense(1.0)
    match family:
        case "dense":
            return {f"depth {d}": nngp.Architecture(d, "relu", 2.0, 0.1) for d in (1, 2, 4)}
        case "dense, shifts":
            shifts = nngp.images.shifts(1, shape if shape[2] > 1 else shape[:2])
            dense = candidates("dense", shape)
            return {name: nngp.Invariant(net, shifts) for name, net in dense.items()}
        case "convolution":
            return {f"depth {d}": Chain(Image(shape), *layers(d), *end) for d in (1, 2, 4, 7)}
    pool = AvgPool(3, 1)
    return {f"depth {d}, 3 x 3 pooled": Chain(Image(shape), *layers(d), pool, *end) for d in (2, 4)}


def as_rows(images: Any, full: bool) -> tuple[np.ndarray, tuple[int, int, int]]:
    """Images in rows, halved in height and width, and their shape."""
    out = np.asarray(images, float).reshape(*images.shape[:3], -1) / 255
    if not full:
        n, h, w, c = out.shape
        out = out.reshape(n, h // 2, 2, w // 2, 2, c).mean(axis=(2, 4))
    return out.reshape(len(out), -1), out.shape[1:]


def fitted(K: np.ndarray, Y: np.ndarray) -> Iterator[tuple[float, float, np.ndarray]]:
    """For each noise its variance, the log evidence at the best scale, and (K + noise)⁻¹ Y."""
    values, vectors = np.linalg.eigh(K)
    turned, n = vectors.T @ Y, len(Y)
    for noise in NOISES * K.trace() / n:
        spectrum = np.maximum(values, 0) + noise
        scale = (turned**2 / spectrum[:, None]).sum() / Y.size
        evidence = (
            -0.5 * Y.shape[1] * (np.log(spectrum).sum() + n * (1 + np.log(2 * np.pi * scale)))
        )
        yield float(noise), float(evidence), vectors @ (turned / spectrum[:, None])


def score(net: nngp.Network, train: Any, test: Any) -> dict[str, float]:
    """Evidence and test accuracy of a network at the noise with the best evidence."""
    start = time.perf_counter()
    (X, labels), (Xs, wanted) = train, test
    Y = np.eye(10)[labels] - 0.1
    noise, evidence, weights = max(fitted(nngp.kernel(net, X), Y), key=lambda one: one[1])
    found = (nngp.kernel(net, Xs, X) @ weights).argmax(axis=1)
    return {
        "noise": noise,
        "log evidence": evidence,
        "accuracy": float((found == wanted).mean()),
        "seconds": time.perf_counter() - start,
    }


def run_images(options: argparse.Namespace) -> None:
    images = datasets.load(options.dataset, options.data)
    assert isinstance(images, datasets.Images)
    both, shape = as_rows(
        np.concatenate([images.train_images[: max(options.sizes)], images.test_images[:TEST]]),
        options.full,
    )
    centre, size = both[:-TEST].mean(axis=0), both[:-TEST].std()
    both = (both - centre) / size
    test = both[-TEST:], images.test_labels[:TEST]
    for n in options.sizes:
        train = both[:n], images.train_labels[:n]
        for family in options.families:
            for name, net in candidates(family, shape).items():
                key = f"{options.dataset}, {shape}, {n}, {family}, {name}"
                record = read()
                if key in record["images"]:
                    continue
                found = score(net, train, test)
                print(key, found, flush=True)
                record = read()
                record["images"][key] = found
                record["images command"] = command()
                write(record)


def speed_network() -> nngp.Network:
    return Chain(Image((32, 32, 3)), *layers(10), Flatten(), Dense(1.0))


def run_speed(options: argparse.Namespace) -> None:
    n, net = options.images, speed_network()
    X = np.random.default_rng(0).normal(size=(2 * n, 3072))
    numbers = n * n * 1024 * 10
    for engine in options.engines:
        for name, network in (("K", net), ("tangent kernel", nngp.NTK(net))):
            times = []
            for _ in range(options.passes):
                wall, cpu = time.perf_counter(), time.process_time()
                matrix(engine, network, X[:n], X[n:])
                times.append((time.perf_counter() - wall, time.process_time() - cpu))
            wall, cpu = (1e9 * min(part) / numbers for part in zip(*times, strict=True))
            print(f"{engine}, {name}: {wall:.2f} ns of wall time, {cpu:.2f} ns of CPU time")
            record = read()
            record["speed"][f"{engine}, {name}"] = {"wall": wall, "cpu": cpu, "images": n}
            record["speed machine"] = machine("cpu")
            record["speed command"] = command()
            write(record)


def matrix(engine: str, network: nngp.Network, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    if engine == "numpy":
        return nngp.kernel(network, X, Y)
    from nngp.gram.device.images import DeviceImageTerm
    from nngp.gram.inputs import Inputs

    term = DeviceImageTerm(network, Inputs.of(X), Inputs.of(Y))
    return term.block(slice(0, len(X)), slice(0, len(Y)))


def best(record: dict[str, Any]) -> dict[tuple[str, str, int], tuple[str, dict[str, float]]]:
    """By data set, family and number of images: the network with the best evidence."""
    out: dict[tuple[str, str, int], tuple[str, dict[str, float]]] = {}
    for key, found in record["images"].items():
        dataset, shape, rest = re.split(r", (?=\()|(?<=\)), ", key)
        n, name = rest.split(", ", 1)
        family = max((one for one in FAMILIES if name.startswith(one + ", ")), key=len)
        place = f"{dataset} {shape}", family, int(n)
        if place not in out or found["log evidence"] > out[place][1]["log evidence"]:
            out[place] = name, found
    return out


def read() -> dict[str, Any]:
    found = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return {"speed": {}, "images": {}, **found}


def write(record: dict[str, Any]) -> None:
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(dest="part", required=True)
    speed = parts.add_parser("speed")
    speed.add_argument("--images", type=int, default=64)
    speed.add_argument("--passes", type=int, default=3)
    speed.add_argument("--engines", nargs="+", default=["numpy", "jax"])
    images = parts.add_parser("images")
    images.add_argument("--data", type=Path, required=True)
    images.add_argument("--dataset", choices=("mnist", "cifar10"), required=True)
    images.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    images.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    images.add_argument("--full", action="store_true")
    parts.add_parser("plot")
    options = parser.parse_args()
    if options.part == "speed":
        run_speed(options)
    elif options.part == "images":
        run_images(options)
    else:
        for (dataset, family, n), (name, found) in sorted(best(read()).items()):
            print(f"{dataset:28} {family:22} {n:5} {found['accuracy']:.3f}  {name}")


if __name__ == "__main__":
    main()
