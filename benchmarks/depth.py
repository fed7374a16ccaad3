"""Accuracy against depth on MNIST: plain float64, the constant kept apart, the infinitely deep.

    python benchmarks/depth.py [--data DIR] [--out FILE] [--picture FILE]

DIR holds MNIST in any of the forms that nngp_paper.datasets reads; without it the digits of
scikit-learn are used. As in the trial that the method comes from: 1,000 images (the first 100 of
each class beyond the validation images), 3,000 test images, a relu network with weight_var 1.0 and
bias_var 0.1.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from nngp.plots.depth import depth_study, digits, draw_depth
from nngp_paper import datasets

TRAIN, TEST = 1000, 3000


def mnist(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    images = datasets.split("mnist", TRAIN, data=folder, test=TEST)
    return images.X, images.labels, images.X_test, images.labels_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    name = "digits" if options.data is None else "MNIST"
    start = time.perf_counter()
    study = depth_study(digits() if options.data is None else mnist(options.data), name)
    record: dict[str, Any] = {
        "data": name,
        "train": study.train,
        "test": study.test,
        "network": repr(study.architecture),
        "seconds": round(time.perf_counter() - start, 1),
        "limit": round(study.limit, 4),
        "by_depth": [
            {"depth": d, "plain": round(p, 4), "kept": round(k, 4), "scale": float(f"{s:.2e}")}
            for d, p, k, s in zip(
                study.depths,
                study.plain.tolist(),
                study.kept.tolist(),
                study.scale.tolist(),
                strict=True,
            )
        ],
    }
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    if options.picture is not None:
        draw_depth(study, options.picture)


if __name__ == "__main__":
    main()
