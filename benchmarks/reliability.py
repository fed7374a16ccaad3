"""Accuracy against confidence of the default classifier on images: docs/pictures/reliability.png.

    python benchmarks/reliability.py --dataset mnist --train 1000

There are 10,000 test images; with a thousand the error bars would hide the line.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from nngp import NNGPClassifier
from nngp.plots.uncertainty import calibrations, draw_reliability
from nngp_paper import datasets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=Path("docs/pictures/reliability.png"))
    options = parser.parse_args()
    data = datasets.split(options.dataset, options.train)
    began = time.perf_counter()
    model = NNGPClassifier().fit(data.X, data.labels)
    print(f"fitted {len(data.X)} images in {time.perf_counter() - began:.0f} s")
    others = data.X_test, data.labels_test
    print(f"accuracy on {len(data.X_test)} others: {model.score(*others):.4f}")
    found = calibrations(model, *others)
    for way in found:
        bar = np.max(way.spread)
        print(f"{way.name}: calibration error {way.error:.4f}, longest error bar {bar:.3f}")
    draw_reliability(found, options.output)


if __name__ == "__main__":
    main()
