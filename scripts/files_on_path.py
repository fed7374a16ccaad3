"""How many files of the library a reader meets on the way of one call.

    python scripts/files_on_path.py [CHECKOUT ...] [--list]

Counts the files of which some function runs in one `NNGPRegressor().fit`, one `condition`, and one
tangent kernel of a residual network. A call before has imported every module, and the call that is
counted has other data and variances, so that no result is kept from it. Without a checkout it is
this one; several are compared.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parents[1]


def workloads() -> dict[str, Callable[[int], Any]]:
    """The calls, as functions of a seed."""
    import numpy as np

    import nngp

    def data(seed: int) -> tuple[Any, Any]:
        X = np.random.default_rng(seed).normal(size=(100, 4))
        return X, np.sin(X[:, 0]) + 0.1 * X[:, 1]

    def network(seed: int) -> nngp.Architecture:
        return nngp.Architecture(3, "relu", 1.6 + 0.01 * seed, 0.1)

    def residual(seed: int) -> Any:
        block = nngp.Residual(nngp.Act("relu"), nngp.Dense(0.5 + 0.01 * seed, 0.1))
        return nngp.Chain(nngp.Dense(1.6, 0.1), nngp.Repeat(block, 3), nngp.Dense(1.0))

    return {
        "fit": lambda seed: nngp.NNGPRegressor().fit(*data(seed)),
        "condition": lambda seed: nngp.condition(network(seed), *data(seed), noise_var=0.1),
        "residual tangent kernel": lambda seed: nngp.kernel(
            nngp.NTK(residual(seed)), nngp.normalize(data(seed)[0])
        ),
    }


def files_of(work: Callable[[int], Any], package: Path) -> list[str]:
    """The files of the package of which a function runs."""
    work(0)
    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work(1)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = [Path(name) for name in seen if Path(name).is_relative_to(package)]
    return sorted(str(path.relative_to(package)) for path in inside)


def child() -> None:
    """Print the files of every workload as JSON."""
    import nngp

    warnings.simplefilter("ignore")
    package = Path(nngp.__file__).parent
    print(json.dumps({name: files_of(work, package) for name, work in workloads().items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--list", action="store_true", help="print their names as well")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child()
        return
    for checkout in args.checkouts:
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
        command = [sys.executable, __file__, "--child"]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        for name, files in json.loads(done.stdout).items():
            print(f"{checkout.resolve().name:<12} {name:<24} {len(files):>3}")
            if args.list:
                print("\n".join(f"    {file}" for file in files))


if __name__ == "__main__":
    main()
