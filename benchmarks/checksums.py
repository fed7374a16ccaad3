"""Seconds a GB that noticing a change of large inputs costs, beside a sum and a copy of them.

python benchmarks/checksums.py
"""

import time
from collections.abc import Callable

import numpy as np

from nngp._checksums import checksums


def seconds(function: Callable[[], object]) -> float:
    """The least of five times."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


X = np.random.default_rng(0).normal(size=(125_000, 1000))
for name, function in (("checksums", lambda: checksums(X)), ("sum", X.sum), ("copy", X.copy)):
    print(f"{name:10s} {seconds(function) / (X.nbytes / 1e9):.3f} s/GB")
