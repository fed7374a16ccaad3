"""The benchmark of other libraries is a program: let tests import its parts."""

import sys
from pathlib import Path

# Not `benchmarks` itself: its distributed.py would be taken for the package of that name.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "peers"))
