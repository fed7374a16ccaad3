"""Seconds of a phase diagram over the paper's grid, 30 x 30, each activation in a fresh process.

python benchmarks/regimes.py [--out FILE]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ACTIVATIONS = ("relu", "erf", "sin", "gelu", "tanh", "silu", "hard_tanh")
CODE = """
import time
from nngp import regimes
start = time.perf_counter()
regimes.phase_diagram("{name}")
print(time.perf_counter() - start)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    seconds = {}
    for name in ACTIVATIONS:
        code = CODE.format(name=name)
        done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE)
        seconds[name] = round(float(done.stdout), 2)
    record = {"cores": os.cpu_count(), "machine": platform.machine(), "seconds": seconds}
    print(json.dumps(record, indent=1))
    if options.out is not None:
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
