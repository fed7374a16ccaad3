"""Benchmarks of tables, other libraries and CIFAR-10 are programs: let tests import their parts."""

import sys
from pathlib import Path

# Not `benchmarks` itself: its distributed.py would be taken for the package of that name.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "tables"))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "peers"))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "ablation"))
