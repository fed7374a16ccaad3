"""Benchmarks of tables and of CIFAR-10 are programs: let tests import their parts."""

import sys
from pathlib import Path

# Not `benchmarks` itself: its distributed.py would be taken for the package of that name.
BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
sys.path += [str(BENCHMARKS / name) for name in ("tables", "ablation")]
