"""A store can be read where neither JAX nor matplotlib is installed."""

import subprocess
import sys

CODE = """
import sys
for name in ("jax", "optax", "matplotlib"):
    sys.modules[name] = None  # importing it fails
from nngp_paper import on_dask, parts, published, report, workloads
from nngp_paper.report import goals
from nngp_paper.shared import tables
print(len(published.published_row("mnist", 1000, "relu").setting))
"""


def test_reading_needs_no_extra():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("12", "")
