"""`nngp demo`: the main job end to end on data that come with scikit-learn.

A table of patients goes through the command line: fit, predict, evaluate. Images of digits go
through the classifier: accuracy and calibration. Three pictures are written.
"""

import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from nngp import plots
from nngp.architecture import Architecture
from nngp.estimators import NNGPClassifier, load
from nngp.plots.uncertainty import calibrations
from nngp.terminal.options import DemoOptions
from nngp.terminal.output import wrapped
from nngp.terminal.tables import create_folder


def demo(options: DemoOptions) -> None:
    """Fit, predict and evaluate, then draw; tables and pictures go to the folder."""
    folder = options.folder
    create_folder(folder)
    _table(folder)
    _digits(folder)
    plots.angular_structure(Architecture(9, "relu", 1.6, 0.1), folder / "angular-structure.png")
    pictures = ", ".join(str(p) for p in sorted(folder.glob("*.png")))
    print("\n" + wrapped(f"pictures: {pictures}", sys.stdout))


def _table(folder: Path) -> None:
    """Progression of diabetes in 442 patients, from the command line."""
    data = load_diabetes()
    X, Xs, y, ys = train_test_split(data.data, data.target, test_size=0.25, random_state=0)
    names = [*data.feature_names, "progression"]
    for name, rows in (("train", np.column_stack([X, y])), ("test", np.column_stack([Xs, ys]))):
        path = folder / f"{name}.csv"
        np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    train, test, model = (str(folder / name) for name in ("train.csv", "test.csv", "diabetes.nngp"))
    for words in (
        ["fit", train, "--target", "progression", "-o", model],
        ["predict", model, test, "-o", str(folder / "predictions.csv")],
        ["evaluate", model, test],
    ):
        print("\n$ nngp " + shlex.join(words), flush=True)
        subprocess.run([sys.executable, "-m", "nngp", *words], check=True)
    plots.intervals(load(model), Xs, ys, folder / "intervals.png")


def _digits(folder: Path) -> None:
    """Handwritten digits: half for training, half for the test."""
    X, Xs, y, ys = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    start = time.perf_counter()
    model = NNGPClassifier().fit(X, y)
    seconds = time.perf_counter() - start
    net = model.network_
    print(f"\ndigits: {len(X)} images, NNGPClassifier().fit(X, y) in {seconds:.1f} s")
    print(f"chosen: {net.activations[0].name}, depth {net.depth}")
    print(f"accuracy on {len(Xs)} others: {model.score(Xs, ys):.4f}")
    for way in calibrations(model, Xs, ys):
        print(f"expected calibration error, {way.name}: {way.error:.4f}")
    plots.reliability(model, Xs, ys, folder / "reliability.png")
