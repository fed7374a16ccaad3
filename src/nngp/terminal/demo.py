"""`nngp demo`: the main job end to end.

A table of concrete mixtures and their strength goes through the command line: fit, predict,
evaluate, plot. Images of digits go through the classifier: accuracy and calibration.
"""

import shlex
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from nngp import plots
from nngp.estimators import NNGPClassifier
from nngp.plots.uncertainty import calibrations
from nngp.terminal.options import DemoOptions
from nngp.terminal.output import DataError, wrapped
from nngp.terminal.tables import create_folder

HERE = Path(__file__).parent
# In an installed package, and in a clone of the repository.
TABLES = (HERE / "concrete.csv", HERE.parents[2] / "docs" / "data" / "concrete.csv")


def demo(options: DemoOptions) -> None:
    """Fit, predict, evaluate and draw; tables and pictures go to the folder."""
    folder = options.folder
    create_folder(folder)
    _table(folder)
    _digits(folder)
    files = ", ".join(str(p) for p in sorted(folder.glob("*.[ph][nt]*")))
    print("\n" + wrapped(f"pictures and pages: {files}", sys.stdout))


def _table(folder: Path) -> None:
    """The strength of concrete, from the command line."""
    table = next((path for path in TABLES if path.is_file()), None)
    if table is None:
        raise DataError("the table concrete.csv is missing from this installation; reinstall nngp")
    head, *lines = table.read_text("utf-8").splitlines()
    rows = np.array(list(dict.fromkeys(lines)))  # without repeats, which would flatter the test
    for name, part in zip(("train", "test"), train_test_split(rows, random_state=0), strict=True):
        (folder / f"{name}.csv").write_text("\n".join([head, *part]) + "\n", "utf-8")
    train, test, model = (str(folder / name) for name in ("train.csv", "test.csv", "concrete.nngp"))
    report, picture = (str(folder / name) for name in ("report.html", "intervals.png"))
    for words in (
        ["fit", train, "--target", "strength", "-o", model, "--report", report],
        ["predict", model, test, "-o", str(folder / "predictions.csv")],
        ["evaluate", model, test],
        ["plot", model, test, "-o", picture],
    ):
        print("\n$ nngp " + shlex.join(words), flush=True)
        subprocess.run([sys.executable, "-m", "nngp", *words], check=True)


def _digits(folder: Path) -> None:
    """Handwritten digits: half for training, half for the test."""
    X, Xs, y, ys = train_test_split(*load_digits(return_X_y=True), test_size=0.5, random_state=0)
    start = time.perf_counter()
    model = NNGPClassifier().fit(X, y)
    seconds = time.perf_counter() - start
    net = model.network_
    print(f"\ndigits: {len(X)} images, NNGPClassifier().fit(X, y) in {seconds:.1f} s")
    print(f"chosen: {net.activations[0].name}, depth {net.depth}")
    print(f"accuracy on {len(Xs)} held-out images: {model.score(Xs, ys):.4f}")
    for way in calibrations(model, Xs, ys):
        print(f"expected calibration error, {way.name}: {way.error:.4f}")
    plots.reliability(model, Xs, ys, folder / "reliability.png")
