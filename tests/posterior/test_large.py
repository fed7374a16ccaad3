"""Sizes at which whole-matrix calls of OpenBLAS crash the interpreter, and streamed predictions."""

import subprocess
import sys

import numpy as np
import pytest

import nngp
from nngp._machine import available_memory
from nngp.linsolve import CpuEngine


def solved(n, engine="cpu"):
    """Condition on n points of a smooth function and look at the residual and the predictions."""
    free = available_memory()
    if free is not None and free < 5.5 * n * n:
        pytest.skip(f"n = {n} needs {5.5e-9 * n * n:.1f} GB of memory")
    rng = np.random.default_rng(0)
    X = nngp.normalize(rng.standard_normal((n, 8)))
    target = np.sin(X @ rng.standard_normal(8))
    net = nngp.Architecture(2, "relu", 1.6, 0.1)
    posterior = nngp.condition(net, X, target, noise_var=1e-4, engine=engine, progress=False)
    assert posterior.report.residual < 1e-9
    assert posterior.report.factor_bytes < 0.53 * 8 * n * n
    fitted = posterior.mean(X[:100])
    assert np.abs(fitted - target[:100]).max() < 0.1
    assert posterior.variance(X[:100]).max() < 1e-3


def test_three_thousand_points(monkeypatch):
    """As many tiles as 18,000 points have at the usual size."""
    engine = CpuEngine()
    monkeypatch.setattr(engine, "tile_size", lambda n: 128)
    solved(3000, engine)


@pytest.mark.deep
@pytest.mark.parametrize("n", [16_000, 20_000, 30_000])
def test_many_points(n):
    solved(n)


def peak_growth(points, test_points, call):
    """KiB that a call needs beyond what the process held before."""
    code = (
        "import numpy as np, nngp\n"
        "from pathlib import Path\n"
        "def status(name):\n"
        "    lines = Path('/proc/self/status').read_text().splitlines()\n"
        "    return int(next(l for l in lines if l.startswith(name)).split()[1])\n"
        "rng = np.random.default_rng(0)\n"
        f"X = rng.standard_normal(({points}, 2))\n"
        "Y = rng.standard_normal((len(X), 10))\n"
        "p = nngp.condition(nngp.Architecture(1), X, Y, noise_var=0.1, engine='cpu')\n"
        "p.predict(X)\n"
        f"Xs = rng.standard_normal(({test_points}, 2))\n"
        "before = status('VmHWM')\n"
        f"p.{call}\n"
        "print(status('VmHWM') - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(out.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_many_test_points_need_no_more_memory_than_few():
    """50,000 against 600 points: K* as a matrix would be 240 MB."""
    assert peak_growth(600, 50_000, "predict(Xs)") < 40_000


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_gradient_needs_less_than_two_matrices():
    """Beside the factor, which is half of one: with ten outputs, at n = 3000."""
    assert peak_growth(3000, 1, "evidence_gradient()") * 1024 < 1.0 * 8 * 3000**2
