"""`make demo`: two deep networks on scikit-learn's digits: kernels, predictions, a picture."""

import sys
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from nngp import plots
from nngp.architecture import Architecture
from nngp.curve import compile_curve
from nngp.gram import normalize
from nngp.gram.kernel import kernel
from nngp.posterior import condition

NETWORKS = (Architecture(10, "relu", 1.6, 0.1), Architecture(10, "tanh", 1.6, 0.1))


def main(folder: str = "demo") -> None:
    X, y = load_digits(return_X_y=True)
    X = normalize(X)
    print(f"scikit-learn's digits: {X.shape[0]} images of {X.shape[1]} pixels, x·x/d = 1\n")
    print("network                      depth   compile    kernel   variance      error")
    for net in NETWORKS:
        start = time.perf_counter()
        curve = compile_curve(net)
        compiled = time.perf_counter()
        K = kernel(net, X)
        done = time.perf_counter()
        name = f"{net.activation.name}, w {net.weight_var}, b {net.bias_var}"
        print(
            f"{name:<28} {net.depth:>5} {1e3 * (compiled - start):>6.0f} ms "
            f"{1e3 * (done - compiled):>6.0f} ms {curve.variance:>10.6f} {curve.error:>10.1e}"
        )
        assert np.array_equal(K, K.T)
    print("\nerror: the largest, relative to the variance, measured between the curve's nodes")
    infer(X, y)
    Path(folder).mkdir(parents=True, exist_ok=True)
    picture = Path(folder) / "angular-structure.png"
    plots.angular_structure(Architecture(9, "relu", 1.6, 0.1), picture)
    print(f"picture: {picture} (the kernel against the angle, depths 0 to 9; paper, appendix B)")


def infer(X: np.ndarray, y: np.ndarray, train: int = 1000) -> None:
    """Condition on some images, predict the others, and see whether doubt is where errors are."""
    print(f"\nconditioned on the first {train} images, asked about the other {len(X) - train}\n")
    print("network                    condition   predict   accuracy   surest half   other half")
    for net in NETWORKS:
        start = time.perf_counter()
        posterior = condition(net, X[:train], np.eye(10)[y[:train]] - 0.1)
        conditioned = time.perf_counter()
        mean, variance = posterior.predict(X[train:])
        done = time.perf_counter()
        right = mean.argmax(axis=1) == y[train:]
        sure = variance <= np.median(variance)
        name = f"{net.activation.name}, depth {net.depth}"
        print(
            f"{name:<26} {1e3 * (conditioned - start):>6.0f} ms "
            f"{1e3 * (done - conditioned):>6.0f} ms {right.mean():>10.4f} "
            f"{right[sure].mean():>13.4f} {right[~sure].mean():>12.4f}"
        )
    print("\nsurest half: the test images whose predicted variance is below its median\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
