"""The benchmarks of tables and of other libraries are programs: let tests import their parts."""

import sys
from pathlib import Path

# Not `benchmarks` itself: its distributed.py would be taken for the package of that name.
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "tables"))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "peers"))
