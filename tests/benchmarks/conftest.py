"""The benchmarks are programs in a folder, not a package: let tests import their parts."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
